"""Halos between processes on the host: every element of every rank is compared with the global array."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from launching import ranks as launched
from ranks import Ranks

# ranks, the case, and the number of halo elements on all ranks together
Table = dict[str, tuple[int, dict[str, Any], int]]

CASES: Table = {
    "one process, periodic": (1, {"extents": [5, 6], "grid": [1, 1]}, 22),
    "one process, periodic, with corners": (1, {"extents": [5, 6], "grid": [1, 1], "corners": True}, 26),
    "one process, not periodic": (1, {"extents": [5, 6], "grid": [1, 1], "periodic": False}, 0),
    "rows of two": (2, {"extents": [6, 7], "grid": [2], "periodic": False}, 14),
    "columns of two": (2, {"extents": [6, 7], "grid": [2], "dims": [1]}, 24),
    "one dimension over two, periodic": (2, {"extents": [8], "grid": [2]}, 4),
    "uneven over three": (3, {"extents": [7, 5], "grid": [3]}, 30),
    "an empty part": (4, {"extents": [5, 3], "grid": [4]}, 18),
    "faces of four": (4, {"extents": [7, 9], "grid": [2, 2]}, 64),
    "corners of four": (4, {"extents": [7, 9], "grid": [2, 2], "corners": True}, 80),
    "corners at fixed borders": (
        4,
        {"extents": [7, 9], "grid": [2, 2], "corners": True, "periodic": [False, True]},
        18 + 28 + 8,
    ),
    "layers on one side": (
        2,
        {"extents": [8, 5], "grid": [2], "shadow": [[0, 1], 0], "periodic": False},
        5,
    ),
    "outer layers stay untouched": (
        2,
        {"extents": [8, 5], "grid": [2], "shadow": [[3, 2], 1], "width": [[1, 2], 0]},
        30,
    ),
    "a dimension that is not distributed": (
        2,
        {"extents": [4, 3, 6], "grid": [2], "dims": [0], "shadow": [1, 0, 2], "corners": True},
        2 * (2 * 30 + 24),
    ),
    "four dimensions over two": (
        4,
        {"extents": [4, 4, 3, 2], "grid": [2, 2], "shadow": [1, 1, 0, 0]},
        4 * 8 * 6,
    ),
    "seven dimensions": (
        4,
        {
            "extents": [2, 2, 2, 2, 2, 2, 4],
            "grid": [2, 2],
            "dims": [6, 0],
            "shadow": [1, [1, 0], [0, 1], 1, [0, 1], [1, 0], 1],
            "width": [1, 0, 0, 0, 0, 0, 1],
        },
        4 * (2 * 64 + 2 * 32),
    ),
    "structs of 192 bytes": (4, {"extents": [4, 6, 3], "grid": [2, 2], "dtype": "V192"}, 4 * 30),
    "structs of 192 bytes in allocated memory": (
        4,
        {"extents": [4, 6, 3], "grid": [2, 2], "dtype": "V192", "memory": "allocated"},
        4 * 30,
    ),
    "several arrays": (4, {"extents": [7, 9], "grid": [2, 2], "arrays": 3, "corners": True}, 240),
    "more places than dimensions": (4, {"extents": [8, 3], "grid": [2, 2], "dims": [0, None]}, 24),
}

MEMORY = ["numpy", "allocated", "strided", "fortran", "dlpack"]
START = ["host", "stream", "run", "ahead"]


def refreshed(size: int, *cases: dict[str, Any], **settings: str) -> list[list[Any]]:
    """The result of each rank in each case."""
    with Ranks("halo.py", size, *map(json.dumps, cases), **settings) as ranks:
        answers = [ranks.read_all() for _ in cases]
        ranks.end()
    return answers


def expect_right(size: int, *cases: dict[str, Any]) -> list[int]:
    """Check all cases; returns the number of halo elements of each case on all ranks."""
    filled = []
    for case, answers in zip(cases, refreshed(size, *cases), strict=True):
        for answer in answers:
            assert answer["wrong"] == [], case
            assert answer["extents"] == [case["extents"]] * case.get("arrays", 1), case
        filled.append(sum(answer["filled"] for answer in answers))
    return filled


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_halos_hold_what_the_neighbours_own(size: int) -> None:
    """One after another in one context."""
    named = {name: (case, filled) for name, (ranks, case, filled) in CASES.items() if ranks == size}
    filled = expect_right(size, *(case for case, _ in named.values()))
    assert dict(zip(named, filled, strict=True)) == {name: wanted for name, (_, wanted) in named.items()}


def test_halos_of_ranks_whose_number_is_no_power_of_two() -> None:
    expect_right(
        7,
        {"extents": [20, 3], "grid": [7, 1]},
        {"extents": [3, 13], "grid": [1, 7], "corners": True},
    )
    expect_right(6, {"extents": [7, 9], "grid": [3, 2], "arrays": 2}, {"extents": [5, 7], "grid": [2, 3]})


def test_ranks_that_talk_to_others_of_unlike_grids_are_all_refused() -> None:
    launched(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            try:
                ctx.halo(np.zeros((4, 4)), grid=(2, 3) if ctx.rank < 4 else (3, 2))
            except peerway.InvalidArgument as error:
                assert "grid is" in str(error) or "do both make the same calls" in str(error), error
            else:
                raise AssertionError("refused nothing")
            ctx.team.barrier(60)
        """,
        count=6,
    )


def test_every_kind_of_array_every_way_to_start() -> None:
    case = {"extents": [6, 7], "grid": [2, 1], "corners": True, "rounds": 5}
    expect_right(2, *({**case, "memory": memory, "start": start} for memory in MEMORY for start in START))


def test_a_thousand_rounds_in_a_stream() -> None:
    expect_right(4, {"extents": [7, 9], "grid": [2, 2], "start": "ahead", "rounds": 1000})


@pytest.mark.parametrize("start", ["host", "stream"])
def test_the_neighbours_of_a_killed_rank_are_told(start: str) -> None:
    with Ranks("halo_lost.py", 3, start) as ranks:
        assert ranks.read_all() == ["running"] * 3
        ranks.kill(1)
        for rank in (0, 2):
            kind, message, status = ranks.read(rank)
            assert (kind, status) == ("PeerLost", "peer_lost")
            assert "rank 1 was lost" in message
        for rank in (0, 2):
            ranks.send_line(rank)
        ranks.end(1)


# On a fake driver and GPU: the doubles of the unit tests.
@pytest.mark.parametrize("start", ["host", "stream", "run"])
def test_halos_of_gpu_memory(start: str, doubles: dict[str, str]) -> None:
    case = {"extents": [6, 7], "grid": [2, 1], "memory": "cuda", "start": start, "corners": True}
    for answer in refreshed(2, case, **doubles)[0]:
        assert answer["wrong"] == []


def test_a_rank_that_owns_nothing_starts_the_plan_on_a_stream_of_the_gpu(doubles: dict[str, str]) -> None:
    case = {"extents": [5, 3], "grid": [4], "memory": "cuda", "start": "run"}
    for answer in refreshed(4, case, **doubles)[0]:
        assert answer["wrong"] == []


def test_arrays_of_two_devices_are_refused(doubles: dict[str, str]) -> None:
    with Ranks("halo_devices.py", 2, **doubles) as ranks:
        for kind, message in ranks.read_all():
            assert kind == "InvalidArgument"
            # The rank's own message, or that of the rank that aborted first.
            assert re.search("array 1 of a halo is memory of cuda:[01], those before it of host", message)
        ranks.end()


# What halo_errors.py tries: the exception that every rank must raise, and what its message must contain.
ERRORS = {
    "shadow wider than the neighbour's block": ("InvalidArgument", ["3 layers", "part 0 of 3 has 2 of 6"]),
    "shadow wider than the last block": ("InvalidArgument", ["2 layers", "part 2 of 3 has 1 of 7"]),
    "width over the shadow": ("InvalidArgument", ["width 2", "larger than its shadow, 1"]),
    "more processes than elements": ("InvalidArgument", ["2 elements", "3 processes"]),
    "two dimensions of the grid over one": ("InvalidArgument", ["dims=(0, 0)"]),
    "a grid that is not the team": ("InvalidArgument", ["(2, 2) has 4 places", "3 ranks"]),
    "no grid": ("InvalidArgument", ["has 0 places"]),
    "mismatched dtype": ("InvalidArgument", ["dtype of array 0", "<f8", "<f4", "rank 1"]),
    "mismatched shadow": (
        "InvalidArgument",
        ["the shadow of array 0", "[[1, 1], [0, 0]] on rank", "[[2, 2], [0, 0]] on rank 1"],
    ),
    "mismatched width": ("InvalidArgument", ["width", "1 on rank", "0 on rank 2"]),
    "mismatched corners": ("InvalidArgument", ["corners", "0 on rank", "1 on rank 1"]),
    "mismatched numbers of arrays": ("InvalidArgument", ["number of arrays", "1 on rank 0", "2 on rank 1"]),
    "mismatched grids": ("InvalidArgument", ["(1, 3)", "(3, 1)"]),
    "parts of no block distribution": (
        "InvalidArgument",
        ["array 0 is not a block distribution over the process grid (3,)", "8 elements along dimension 0"],
    ),
    "rows of different lengths": ("InvalidArgument", ["5 or 6", "rank 2 (4, 6)"]),
    "negative strides": ("InvalidArgument", ["(-40, 8)", "positive"]),
    "strides in no order": ("InvalidArgument", ["strides of (", "first"]),
    "negative strides by DLPack": ("InvalidArgument", ["(-40, 8)", "positive"]),
    "a read-only array": ("InvalidArgument", ["read-only"]),
    "one rank's read-only array": ("InvalidArgument", ["read-only"]),
    "no array": ("InvalidArgument", ["exposes no memory"]),
    "no dimensions": ("InvalidArgument", ["0 dimensions; 1 to 7"]),
    "eight dimensions": ("InvalidArgument", ["8 dimensions; 1 to 7"]),
    "an empty list": ("InvalidArgument", ["0 arrays"]),
    "fewer elements than the shadow": ("InvalidArgument", ["1 elements in dimension 0", "1:1"]),
    "shadow for another number of dimensions": ("InvalidArgument", ["shadow=(1, 1, 1)", "2 dimensions"]),
    "negative shadow": ("InvalidArgument", ["shadow=-1"]),
    "periodic for another number of dimensions": ("InvalidArgument", ["3 entries", "2 dimensions"]),
    "a stream that is none": ("InvalidArgument", ["is not a stream"]),
    "a stream of another device": ("InvalidArgument", ["a plan of host", "a stream of cuda"]),
    "a timeout in a stream": ("InvalidArgument", ["2 s", "set_timeout"]),
    "a finish of what was not started": ("InvalidArgument", ["not started"]),
    "a second start": ("InvalidArgument", ["not finished"]),
    "a closed halo": ("Closed", ["halo was closed"]),
}


@pytest.fixture(scope="module")
def raised() -> list[dict[str, list[str]]]:
    """The errors of each of three ranks; the ranks end normally and can still refresh a halo."""
    with Ranks("halo_errors.py", 3) as ranks:
        errors: list[dict[str, list[str]]] = ranks.read_all()
        ranks.end()
    return errors


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_is_refused_by_every_rank_with_the_numbers(
    raised: list[dict[str, list[str]]], name: str
) -> None:
    kind, words = ERRORS[name]
    for errors in raised:
        assert errors[name][0] == kind, errors[name]
        for word in words:
            assert word in errors[name][1]


def test_every_error_that_is_tried_is_expected(raised: list[dict[str, list[str]]]) -> None:
    for errors in raised:
        assert list(errors) == list(ERRORS)
