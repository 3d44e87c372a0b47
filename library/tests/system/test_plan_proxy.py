"""Plans and halos between processes that do not map one another's memory: by staging on one host, by UCX, and
by UCX between ranks that take themselves for different hosts. The host runs far ahead; ranks die."""

from __future__ import annotations

import json
import signal
from typing import Any

import nics
import pytest
from ranks import Ranks
from ucx_builds import TCP, needs_some

# Plans lean on signals, which each combination of guarantees makes in its own way, and on every datagram.
FAR_NICS = ["nic:example", "nic:torus-udp", "nic:torus-none"]
# whether every rank is on a host of its own, and the settings
TRANSPORTS: dict[str, tuple[bool, dict[str, str]]] = {
    "staged": (False, {"PEERWAY_PATHS": "staged"}),
    "cma": (False, {"PEERWAY_PATHS": "peer/cma"}),
    "ucx/direct": (False, {"PEERWAY_PATHS": "ucx/direct", **TCP}),
    "ucx/staged": (False, {"PEERWAY_PATHS": "ucx/staged", **TCP}),
    **{path: (False, {"PEERWAY_PATHS": path}) for path in nics.PATHS},
    **{f"far, {path}": (True, {"PEERWAY_PATHS": path}) for path in FAR_NICS},
    "far": (True, TCP),
    "far, ucx/staged": (True, {"PEERWAY_PATHS": "ucx/staged", **TCP}),
}
POLICIES = ("busy-poll", "blocking")
FAR_TRANSPORTS = [
    pytest.param(name, marks=[needs_some] if "UCX_TLS" in settings else [])
    for name, (_, settings) in TRANSPORTS.items()
    if name != "cma"
]


def some_of(transports: list[Any], first: int = 0) -> list[Any]:
    """The same parameters, of which every second one counts in short runs, too."""
    return [
        transport
        if at % 2 == first
        else pytest.param(*transport.values, marks=[*transport.marks, pytest.mark.long])
        for at, transport in enumerate(transports)
    ]


def start(transport: str, program: str, size: int, *arguments: object, **settings: str) -> Ranks:
    far, environment = TRANSPORTS[transport]
    # Each transport waits by one policy in one test and by the other in the next: pairs for the price of one.
    policy = POLICIES[(list(TRANSPORTS).index(transport) + (program == "halo.py")) % 2]
    environment = {"PEERWAY_WAIT": policy, **environment}
    programs = ["far.py", program] if far else [program]
    settings |= nics.settings_of(environment.get("PEERWAY_PATHS", ""))
    return Ranks(programs[0], size, *programs[1:], *arguments, **environment, **settings)


# Short runs have three transports with two ranks and three others with three.
EPOCHS = {
    "two ranks": (2, ["ring,200,256", "puts,200,256", "gets,30,4096"]),
    "three ranks": (3, ["ring,50,200000", "puts,50,200000"]),
    "two ranks for long": (2, ["ring,1000,256", "puts,1000,256"]),
}
IN_SHORT_RUNS = {(0, 3), (0, 6), (0, 9), (1, 0), (1, 4), (1, 8)}  # of EPOCHS and of FAR_TRANSPORTS


@pytest.mark.parametrize(
    ("size", "scenarios", "transport"),
    [
        pytest.param(
            size, scenarios, *transport.values, id=f"{name}-{transport.values[0]}",
            marks=[*transport.marks, *([] if (number, at) in IN_SHORT_RUNS else [pytest.mark.long])],
        )
        for number, (name, (size, scenarios)) in enumerate(EPOCHS.items())
        for at, transport in enumerate(FAR_TRANSPORTS)
    ],
)  # fmt: skip
def test_every_epoch_brings_its_own_data_however_far_the_host_runs_ahead(
    size: int, scenarios: list[str], transport: str
) -> None:
    expect_own_data(transport, size, scenarios)


@pytest.mark.parametrize(
    "transport",
    [
        "staged",
        pytest.param("ucx/direct", marks=needs_some),
        pytest.param("ucx/staged", marks=needs_some),
        "far, nic:torus-udp",
    ],
)
def test_a_plan_whose_target_stands_still_holds_up_no_other(transport: str) -> None:
    rounds = 20
    larger_than_any_queue = 12 << 20
    with start(transport, "stalled.py", 3, larger_than_any_queue, rounds) as ranks:
        assert ranks.read_all() == [True] * 3
        ranks.processes[1].send_signal(signal.SIGSTOP)
        ranks.send_line(0)
        assert ranks.read(0) == rounds
        assert ranks.read(0) is True, "a put to it is started, and does not wait either"
        ranks.send_line(2)
        assert ranks.read(2) == 1, "the signal comes after the data"
        ranks.processes[1].send_signal(signal.SIGCONT)
        ranks.send_line(0)
        assert ranks.read(2) == 2
        assert ranks.read(0) is True
        assert ranks.read_all() == [True] * 3
        ranks.end()


def test_puts_into_memory_that_cannot_be_mapped_go_by_the_proxy() -> None:
    expect_own_data("cma", 2, ["puts,100,4096"])


def expect_own_data(transport: str, size: int, scenarios: list[str]) -> None:
    with start(transport, "posted.py", size, *scenarios) as ranks:
        for scenario in scenarios:
            assert ranks.read_all() == [[]] * size, scenario
        ranks.end()


@pytest.mark.parametrize("transport", some_of(FAR_TRANSPORTS))
def test_halos_hold_what_the_neighbours_own_however_they_are_started(transport: str) -> None:
    rounds = {"host": 5, "stream": 5, "run": 5, "ahead": 40}
    case = {"extents": [7, 9], "grid": [2, 2], "corners": True}
    cases = [json.dumps({**case, "start": begin, "rounds": count}) for begin, count in rounds.items()]
    with start(transport, "halo.py", 4, *cases) as ranks:
        for begin in rounds:
            answers = ranks.read_all()
            assert [answer["wrong"] for answer in answers] == [[]] * 4, begin
            assert sum(answer["filled"] for answer in answers) == 80, begin
        ranks.end()


@pytest.mark.parametrize(
    ("begin", "transport"),
    [
        ("host", "staged"),
        ("host", "nic:torus"),
        *(
            pytest.param("stream", *transport.values, marks=transport.marks)
            for transport in some_of(FAR_TRANSPORTS, 1)
        ),
    ],
)
def test_the_neighbours_of_a_killed_rank_are_told(begin: str, transport: str) -> None:
    with start(transport, "halo_lost.py", 3, begin) as ranks:
        ranks.expect_all_told_of_a_kill(1)


# On a driver and a GPU that are not there: the doubles of the unit tests.
@pytest.mark.parametrize("begin", ["host", "stream", "run"])
def test_halos_of_gpu_memory(begin: str, doubles: dict[str, str]) -> None:
    case = {"extents": [6, 7], "grid": [2, 1], "memory": "cuda", "start": begin, "corners": True}
    with start("staged", "halo.py", 2, json.dumps(case), **doubles) as ranks:
        for answer in ranks.read_all():
            assert answer["wrong"] == []
        ranks.end()


@pytest.mark.parametrize("begin", ["host", "stream"])
def test_without_a_way_between_hosts_prepare_says_what_to_do(begin: str) -> None:
    with Ranks("far.py", 2, "halo_lost.py", begin, PEERWAY_UCX="off") as ranks:
        for process in ranks.processes:
            process.wait(60)
        for rank in range(2):
            assert "PEERWAY_UCX=off" in ranks.errors(rank)
