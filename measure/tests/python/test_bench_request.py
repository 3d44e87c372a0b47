"""What `peerway bench` is asked for becomes these cases, ranks and starts."""

from __future__ import annotations

from typing import Any

import pytest

from peerway_measure.bench import halo, runner
from peerway_measure.bench.kinds import DEFAULT_TESTS, KINDS, PLAN_WAYS, POLICIES
from peerway_measure.bench.peers import choose
from peerway_measure.bench.plan import Plan, Setting
from peerway_measure.bench.request import Request
from peerway_measure.bench.results import Results

HALO = halo.make([3, 1], [8, 4], 8)
HOST = [("host", "host")]


def plan(**options: Any) -> Plan:
    return Request(memories=HOST, **options).plan(Results())


def test_plans_are_measured_when_they_are_named() -> None:
    assert {case.test for case in plan().cases} == set(DEFAULT_TESTS)
    assert not {"exchange", "plan_latency", "kernel_latency", "halo", "async_pingpong"} & set(DEFAULT_TESTS)
    assert {case.shape.bytes for case in plan(tests=["exchange"], sizes=[8, 64]).cases} == {8, 64}


def test_a_halo_is_of_the_ranks_of_its_grid() -> None:
    halo_plan = plan(tests=["halo"], halo=HALO)
    assert halo_plan.ranks == 3
    (case,) = halo_plan.cases
    assert (case.shape.label, case.shape.bytes, case.pairs) == (HALO.label, HALO.bytes, ())
    assert Plan.from_json(halo_plan.as_json()) == halo_plan


def test_paths_are_measured_alone_or_together() -> None:
    of_paths = plan(paths=["peer", "nic:a+nic:b"])
    assert of_paths.settings == [
        Setting("peer", "peer"),
        Setting("nic:a+nic:b", "nic:a,nic:b", "nic:a,nic:b"),
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tests": ["halo"]}, "needs --grid"),
        ({"tests": ["cube"], "halo": HALO}, "needs --grid"),
        ({"tests": ["halo", "cube"], "halo": HALO}, "run it alone"),
        ({"tests": ["halo"], "halo": HALO, "ranks": 2}, "--ranks 2: the grid of the halo has 3 ranks"),
        ({"tests": ["exchange"], "ranks": 3}, "even number"),
        ({"tests": ["async_pingpong"], "computes": [24]}, "--compute 24"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plan(**options)


def test_computations_make_ten_thousand_trips_once_for_each_policy() -> None:
    of_tests = plan(tests=["async_pingpong", "exchange"], sizes=[8])
    cases = [case for case in of_tests.cases if case.test == "async_pingpong"]
    assert [case.shape.label for case in cases] == [f"compute:{4096 << i}" for i in range(5)]
    assert {(case.shape.bytes, case.samples * 20) for case in cases} == {(128, 10000)}
    starts = list(runner.starts_of(of_tests))
    assert sorted((part.policy, {case.test for case in part.cases}) for part, _ in starts) == [
        ("", {"exchange"}),
        *((policy, {"async_pingpong"}) for policy in sorted(POLICIES, reverse=False)),
    ]
    assert {setting for _, settings in starts for setting in settings.values()} == set(POLICIES)


def test_ways_over_plans_have_names_that_can_be_asked_for() -> None:
    assert {"plan", "plan/graph", "sendrecv/stream", "cpu/blocking", "kernel"} <= PLAN_WAYS
    assert "plan/graph" not in KINDS["exchange"].plan_variants("host")
    assert "plan/graph" in KINDS["exchange"].plan_variants("cuda")
    assert KINDS["kernel_latency"].plan_variants("host") == ()


def test_a_peer_that_does_none_of_the_tests_is_said_to() -> None:
    results = Results()
    halo_plan = plan(tests=["halo"], halo=HALO)
    runner.run_peers(choose("ucx"), halo_plan, results, lambda *_: None)
    assert results.notes == ["ucx on host was not measured: it does none of these tests"]
