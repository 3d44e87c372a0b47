"""Which share of a run's time transfers take, for hand-written events with known answers."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_trace_analysis import receive, send, trace_of

from peerway_common.cli import command as peerway
from peerway_measure.worth.shares import Transfer
from peerway_measure.worth.shares import read as read_shares
from peerway_trace.rings import Kind
from peerway_trace.shares import COLUMNS, Share, as_csv, shares
from peerway_trace.store import BadTrace, Trace


def end(rank: int = 0, at: int = 1000) -> dict[str, Any]:
    """A call of no length that makes the trace so long."""
    return {"rank": rank, "kind": Kind.CALL, "begin": at, "duration": 0, "name": "end"}


def put(
    begin: int, duration: int, size: int = 4096, rank: int = 0, where: str = "peer/copy"
) -> dict[str, Any]:
    return {"rank": rank, "kind": Kind.PUT, "peer": 1 - rank, "begin": begin, "duration": duration,
            "bytes": size, "where": where}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        # One of two ranks puts for a tenth of the time; the other is in no call meanwhile.
        ([put(0, 100)], [Share("put", "peer/copy", 4096, 0.05, 0)]),
        ([put(0, 100, where="plan, peer/shm")], [Share("put", "peer/shm", 4096, 0.05, 0)]),
        ([put(0, 100) | {"kind": Kind.RMA_PUT}], [Share("put", "openmpi/rma", 4096, 0.05, 0)]),
        # Sizes of one class stand together, with their mean.
        ([put(0, 50, 3000), put(50, 50, 4000)], [Share("put", "peer/copy", 3500, 0.05, 0)]),
        (
            [put(0, 60, 8), put(100, 20, 1 << 20)],
            [Share("put", "peer/copy", 8, 0.03, 0), Share("put", "peer/copy", 1 << 20, 0.01, 0)],
        ),
        # A receive that waits 300 for its send: both ranks are in calls for the 100 that the message moves.
        ([send(0, 1, 300, 100), receive(1, 0, 0, 400)], [Share("send", "openmpi", 8, 0.1, 0.15)]),
        # A send that waits for its receive.
        ([send(0, 1, 0, 400), receive(1, 0, 300, 100)], [Share("send", "openmpi", 8, 0.1, 0.15)]),
        # A message that moves while both compute costs nothing; the call that waits for its end does.
        (
            [
                send(0, 1, 0, 10, kind=Kind.ISEND), receive(1, 0, 0, 10, kind=Kind.IRECV),
                receive(1, 0, 0, 500, kind=Kind.RECEIVED),
                {"rank": 1, "kind": Kind.WAIT, "begin": 400, "duration": 100},
            ],
            [Share("send", "openmpi", 8, 0.06, 0)],
        ),
        # Two messages at once in one wait share its time.
        (
            [
                send(1, 0, 0, 10, tag=1, bytes=8, kind=Kind.ISEND),
                send(1, 0, 10, 10, tag=2, bytes=4096, kind=Kind.ISEND),
                receive(0, 1, 0, 500, tag=1, kind=Kind.RECEIVED),
                receive(0, 1, 0, 500, tag=2, kind=Kind.RECEIVED),
                {"rank": 0, "kind": Kind.WAIT, "begin": 100, "duration": 400},
            ],
            [Share("send", "openmpi", 8, 0.1075, 0), Share("send", "openmpi", 4096, 0.1025, 0)],
        ),
        ([], []),
    ],
)  # fmt: skip
def test_the_time_that_ranks_are_in_calls_while_messages_move(
    events: list[dict[str, Any]], expected: list[Share]
) -> None:
    measured = shares(trace_of(*events, end()))
    assert [(s.test, s.path, s.bytes) for s in measured] == [(s.test, s.path, s.bytes) for s in expected]
    for kind, wanted in zip(measured, expected, strict=True):
        assert kind.share == pytest.approx(wanted.share, abs=1e-3)
        assert kind.waiting == pytest.approx(wanted.waiting, abs=1e-3)


def level(name: str) -> Trace:
    trace = trace_of(put(0, 100), end())
    trace.about["level"] = name
    return trace


def lossy() -> Trace:
    trace = trace_of(put(0, 100), end())
    trace.threads[0] = replace(trace.threads[0], overwritten=7)
    return trace


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (
            level("profile"),
            "level profile, which has no times of single messages; record it with --level full",
        ),
        (
            lossy(),
            "7 of its events are lost, so shares of its time would be wrong; record with more --events",
        ),
        (trace_of(), "it has no events of a rank"),
    ],
)
def test_a_trace_from_which_shares_would_be_wrong_is_refused(trace: Trace, message: str) -> None:
    with pytest.raises(BadTrace, match=message):
        shares(trace)


def test_peerway_worth_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shares.csv"
    several = {"t1": [Share("put", "peer/copy", 8, 0.25, 0.125)], "t2": []}
    path.write_text(as_csv(several, 'heat, "2d"', "a100"))
    with path.open() as file:
        lines = list(csv.reader(file))
    assert lines[0] == list(COLUMNS)
    assert [line[-2] for line in lines[1:]] == ["0.25", "0.625", "1"]
    traces = read_shares([path])['heat, "2d"', "a100"]
    assert traces["t2"] == []
    (part,) = traces["t1"]
    assert (part.transfer, part.share, part.waiting) == (Transfer("put", "peer/copy", 8), 0.25, 0.125)


def test_a_trace_counts_once_and_must_be_one(tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        done = CliRunner().invoke(peerway, ["trace", "shares", *words, "--application", "heat"])
        assert done.exit_code == 2
        return done.output

    folder = str(tmp_path / "heat")
    assert f"there is no folder {folder}" in " ".join(refused(folder).split())
    assert "a trace is named twice, and would count twice" in refused(folder, folder)
