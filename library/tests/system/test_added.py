"""A transport and a kind of device of which Peerway knows no more than one line of a list each (../added).
What holds over the other transports holds over the one, and what holds on GPUs on the other, whose memory the
CPU cannot touch: transfers, plans, halos and the deaths of ranks."""

from __future__ import annotations

import json
import signal
import subprocess
from itertools import product
from pathlib import Path

import pytest
from launching import ROOT
from ranks import Ranks
from test_transfers import LAYOUTS, MEMORY, SIGNALS, expect_right

Library = dict[str, str]


@pytest.fixture(scope="module")
def more() -> Library:
    """The settings that load the library with both."""
    build = ROOT / "build" / "editable"
    subprocess.run(["cmake", "--build", str(build), "--target", "peerway_with_more"], check=True)
    return {"RANK_LIBRARY": str(build / "with-more" / "libpeerway.so")}


@pytest.fixture(scope="module")
def letters(more: Library) -> Library:
    """The settings that restrict ranks to the transport."""
    return {**more, "PEERWAY_PATHS": "letters"}


def test_it_has_no_more_lines_than_a_newcomer_should_need() -> None:
    text = (ROOT / "library" / "tests" / "added" / "letters.cpp").read_text()
    assert len(text.splitlines()) < 250


def test_transfers_of_all_kinds(letters: Library) -> None:
    requests = [*LAYOUTS, *SIGNALS, *MEMORY]
    with Ranks("transfers.py", 2, "letters", *map(",".join, requests), **letters) as ranks:
        for request in requests:
            for answer in ranks.read_all():
                expect_right("letters", request, 2, answer)
        ranks.end()


@pytest.mark.parametrize("size", [2, 3])
def test_plans(size: int, letters: Library) -> None:
    scenarios = ["ring,50,256", "puts,50,256", "gets,20,4096", "ring,10,200000", "puts,10,200000"]
    with Ranks("posted.py", size, *scenarios, **letters) as ranks:
        for scenario in scenarios:
            assert ranks.read_all() == [[]] * size, scenario
        ranks.end()


def test_collectives(letters: Library) -> None:
    with Ranks("collectives.py", 3, "allocated", "stream", "few", **letters) as ranks:
        assert ranks.read_all() == [[[], 11]] * 3
        ranks.end()


def test_halos(letters: Library) -> None:
    case = {"extents": [7, 9], "grid": [2, 2], "corners": True, "rounds": 5}
    cases = [json.dumps({**case, "start": begin}) for begin in ("host", "stream", "run", "ahead")]
    with Ranks("halo.py", 4, *cases, **letters) as ranks:
        for _ in cases:
            answers = ranks.read_all()
            assert [answer["wrong"] for answer in answers] == [[]] * 4
        ranks.end()


@pytest.mark.parametrize("begin", ["host", "stream"])
def test_the_neighbours_of_a_killed_rank_are_told(begin: str, letters: Library) -> None:
    with Ranks("halo_lost.py", 3, begin, **letters) as ranks:
        ranks.expect_all_told_of_a_kill(1)


def test_a_plan_whose_target_stands_still_holds_up_no_other(letters: Library) -> None:
    with Ranks("stalled.py", 3, 1 << 20, 5, **letters) as ranks:
        assert ranks.read_all() == [True] * 3
        ranks.processes[1].send_signal(signal.SIGSTOP)
        ranks.send_line(0)
        assert ranks.read(0) == 5
        assert ranks.read(0) is True
        ranks.send_line(2)
        assert ranks.read(2) == 1
        ranks.processes[1].send_signal(signal.SIGCONT)
        ranks.send_line(0)
        assert ranks.read(2) == 2
        assert ranks.read(0) is True
        assert ranks.read_all() == [True] * 3
        ranks.end()


@pytest.mark.long
def test_transfers_of_the_device_by_every_path_that_reaches_it(more: Library) -> None:
    requests = [
        *product(["peer/copy", "staged"], ["put", "get"], ["mock", "host"], ["mock", "host"]),
        ("mapped", "put", "host", "mock"),
        ("mapped", "get", "mock", "host"),
        ("letters", "put", "mock", "host"),
        ("peer/shm", "put", "mock", "mock"),
        ("peer/store", "put", "mock", "mock"),
    ]
    refused = {
        "letters": "memory of the host",
        "peer/shm": "to or from GPU memory",
        "peer/store": "a mock has no copy kernels",
    }
    with Ranks(
        "other_device.py", 2, "mock", *(",".join(("transfers", *request)) for request in requests), **more
    ) as ranks:
        for request in requests:
            for answer in ranks.read_all():
                if request[0] in refused:
                    assert refused[request[0]] in answer, request
                elif request[2:] == ("host", "host") and request[0] == "peer/copy":
                    assert isinstance(answer, str), request
                else:
                    assert answer == [], request
        ranks.end()


def test_collectives_of_the_device(more: Library) -> None:
    settings = {**more, "PEERWAY_COLLECTIVE_METHOD": "two-shot"}
    with Ranks("collectives.py", 2, "mock", "stream", "few", **settings) as ranks:
        assert ranks.read_all() == [[[], 11]] * 2
        ranks.end()


def test_plans_of_the_device(more: Library) -> None:
    requests = [
        ",".join(request) for request in product(["ring", "puts"], ["256", "200000"], ["host", "ahead"])
    ]
    requests += ["between,200000", "conditional,200000"]
    with Ranks("other_device.py", 2, "mock", *requests, **more) as ranks:
        for request in requests:
            assert ranks.read_all() == [[]] * 2, request
        ranks.end()


@pytest.mark.parametrize(
    ("device", "small", "two"),
    [("mock", "plan/packets", "plan/straight"), ("host", "plan/slots", "plan/slots")],
)
def test_all_sends_of_a_plan_on_a_device_decide_the_method(
    device: str, small: str, two: str, tmp_path: Path, more: Library
) -> None:
    """The device's blocks share the sends, while the host runs one after another."""
    rules = tmp_path / "rules.json"
    below = {"op": "send", "bytes": "0:6000", "use": small}
    above = {"op": "send", "bytes": "6000:", "use": "plan/straight"}
    rules.write_text(json.dumps({"rules": [below, above]}))
    expected = {
        "methods,4000,right": [small],
        "methods,4000,right,right": [two, two],
        "methods,8000,right": ["plan/straight"],
        "methods,4000,right,self": [small, "plan/straight"],  # data that stays on the device crosses no link
        "methods,4000,right,put": [small],
    }
    with Ranks("other_device.py", 2, device, *expected, **more, PEERWAY_RULES=str(rules)) as ranks:
        for request, methods in expected.items():
            assert ranks.read_all() == [methods] * 2, request
        ranks.end()


def test_halos_on_the_device(more: Library) -> None:
    with Ranks("other_device.py", 3, "mock", "halo,host", "halo,stream", **more) as ranks:
        for _ in range(2):
            assert ranks.read_all() == [[]] * 3
        ranks.end()


def test_the_neighbour_on_the_device_of_a_killed_rank_is_told(more: Library) -> None:
    with Ranks("other_device.py", 2, "mock", "lost", **more) as ranks:
        assert ranks.read_all() == ["running"] * 2
        ranks.kill(1)
        kind, message = ranks.read(0)
        assert kind == "PeerLost"
        assert "rank 1" in message
        ranks.end(1)


def test_python_names_the_device_as_any_other(more: Library) -> None:
    """In a message that lists all devices."""
    with Ranks("other_device.py", 1, "mok", "halo,host", **more) as ranks:
        ranks.processes[0].wait()
        assert "'hip:N', 'mock' and 'mock:N'" in ranks.errors(0)
