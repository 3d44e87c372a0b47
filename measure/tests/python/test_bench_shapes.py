"""Sizes, shapes and plans of the benchmark: what is asked for becomes exactly these bytes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from peerway_measure.bench import halo, shapes
from peerway_measure.bench.kinds import DEFAULT_TESTS, KINDS
from peerway_measure.bench.plan import Plan, Setting, make_cases, pairs_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8", [8]),
        ("8:64", [8, 16, 32, 64]),
        ("4K,8,1M", [8, 4096, 1 << 20]),
        ("1k:4KiB", [1024, 2048, 4096]),
        ("8T", [8 << 40]),
    ],
)
def test_sizes_are_read(text: str, expected: list[int]) -> None:
    assert shapes.parse_sizes(text) == expected


@pytest.mark.parametrize("text", ["", "0", "-8", "8:", "64:8", "eight", "8P", "1.5K"])
def test_bad_sizes_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        shapes.parse_sizes(text)


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("across", ["i", "j", "k"])
def test_a_face_touches_the_face_of_the_array(n: int, across: str) -> None:
    cube = np.arange(n**3, dtype=np.float64).reshape(n, n, n)
    wanted = np.take(cube, 0, axis="ijk".index(across)).ravel()
    shape = shapes.face(n, across)
    raw = np.frombuffer(cube.tobytes(), np.uint8)
    starts = [block * shape.pitch for block in range(shape.blocks)]
    touched = np.concatenate([raw[start : start + shape.block_bytes] for start in starts]).view(np.float64)
    assert np.array_equal(touched, wanted)
    assert shape.bytes == 8 * n * n
    assert shape.extent <= cube.nbytes


def test_a_whole_cube_is_its_three_faces() -> None:
    assert shapes.parse_shapes("contiguous,cube:4") == ["contiguous", "cube:4/i", "cube:4/j", "cube:4/k"]
    with pytest.raises(ValueError, match="cube:0"):
        shapes.parse_shapes("cube:0")


def test_every_test_has_a_case_and_a_plan_survives_its_journey() -> None:
    own = {
        "halo": [shapes.of_halo(halo.make([4], [8], 8))],
        "async_pingpong": [shapes.around_computing(4096)],
    }
    all_cases = make_cases(
        list(KINDS), [8, 4096], ["contiguous"], [2], [("host", "host:malloc"), ("host", "host")], 4, own
    )
    assert {case.test for case in all_cases} == set(KINDS)
    assert {case.test for case in all_cases if case.target == "host:malloc"} == set(DEFAULT_TESTS)
    plan = Plan(4, all_cases, [Setting("route", "route")], known={"host": "n01"})
    assert Plan.from_json(plan.as_json()) == plan


def test_only_the_message_rate_runs_all_pairs() -> None:
    assert pairs_for(KINDS["put_mbw_mr"], 6) == ((0, 3), (1, 4), (2, 5))
    assert pairs_for(KINDS["put_latency"], 6) == ((0, 3),)


@pytest.mark.parametrize("power", range(0, 31, 3))
def test_windows_shrink_with_the_size_but_never_vanish(power: int) -> None:
    window = KINDS["put_bw"].window(1 << power)
    assert 4 <= window <= 64
    assert KINDS["put_latency"].window(1 << power) == 1
    assert window == 64 or window * (1 << power) <= max(math.prod((4, 1 << power)), 64 << 20)
