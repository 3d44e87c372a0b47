"""A transport that nothing in Peerway knows of but one line of the list of transports (tests/transport): what
holds over the others holds over it, transfers, plans, halos and the deaths of ranks."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from launching import ROOT
from ranks import Ranks
from test_transfers import LAYOUTS, MEMORY, SIGNALS, expect_right

Library = dict[str, str]


@pytest.fixture(scope="module")
def letters() -> Library:
    """The settings that load the library with one transport more, and restrict ranks to that."""
    build = ROOT / "build" / "editable"
    subprocess.run(["cmake", "--build", str(build), "--target", "peerway_with_letters"], check=True)
    library = build / "with-letters" / "libpeerway.so"
    return {"RANK_LIBRARY": str(library), "PEERWAY_PATHS": "letters"}


def test_it_has_no_more_lines_than_a_newcomer_should_need() -> None:
    text = Path(ROOT / "tests" / "transport" / "letters.cpp").read_text()
    assert len(text.splitlines()) < 250


def test_transfers_of_all_kinds(letters: Library) -> None:
    asked = [*LAYOUTS, *SIGNALS, *MEMORY]
    with Ranks("transfers.py", 2, "letters", *map(",".join, asked), **letters) as ranks:
        for one in asked:
            for found in ranks.read_all():
                expect_right("letters", one, 2, found)
        ranks.end()


@pytest.mark.parametrize("size", [2, 3])
def test_plans(size: int, letters: Library) -> None:
    scenarios = ["ring,50,256", "puts,50,256", "gets,20,4096", "ring,10,200000", "puts,10,200000"]
    with Ranks("posted.py", size, *scenarios, **letters) as ranks:
        for scenario in scenarios:
            assert ranks.read_all() == [[]] * size, scenario
        ranks.end()


def test_halos(letters: Library) -> None:
    case = {"extents": [7, 9], "grid": [2, 2], "corners": True, "rounds": 5}
    cases = [json.dumps({**case, "start": begin}) for begin in ("host", "stream", "run", "ahead")]
    with Ranks("halo.py", 4, *cases, **letters) as ranks:
        for _ in cases:
            found = ranks.read_all()
            assert [one["wrong"] for one in found] == [[]] * 4
        ranks.end()


@pytest.mark.parametrize("begin", ["host", "stream"])
def test_the_neighbours_of_a_killed_rank_are_told(begin: str, letters: Library) -> None:
    with Ranks("halo_lost.py", 3, begin, **letters) as ranks:
        assert ranks.read_all() == ["running"] * 3
        ranks.kill(1)
        for rank in (0, 2):
            kind, message, status = ranks.read(rank)
            assert (kind, status) == ("PeerLost", "peer_lost")
            assert "rank 1" in message
        for rank in (0, 2):
            ranks.tell(rank)
        ranks.end(1)


def test_a_plan_whose_target_stands_still_holds_up_no_other(letters: Library) -> None:
    with Ranks("stalled.py", 3, 1 << 20, 5, **letters) as ranks:
        assert ranks.read_all() == [True] * 3
        ranks.processes[1].send_signal(signal.SIGSTOP)
        ranks.tell(0)
        assert ranks.read(0) == 5
        assert ranks.read(0) is True
        ranks.tell(2)
        assert ranks.read(2) == 1
        ranks.processes[1].send_signal(signal.SIGCONT)
        ranks.tell(0)
        assert ranks.read(2) == 2
        assert ranks.read(0) is True
        assert ranks.read_all() == [True] * 3
        ranks.end()
