"""Why messages were slow and ranks waited, and what overlapped: synthetic traces with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_trace_analysis import lost, receive, send, trace_of

from peerway_trace import overlap
from peerway_trace.analysis import analyse
from peerway_trace.curve import Curve
from peerway_trace.lanes import lanes
from peerway_trace.messages import match, match_signals, messages
from peerway_trace.rings import Kind

Event = dict[str, Any]
FLAT = np.array([1.0, 1e9]), np.array([100.0, 100.0])  # each message should take 100 ns
WORLD: Event = {"where": "world", "name": "MPI_Send"}
STAGED: Event = {"where": "staged", "name": "put", "bytes": 4096}


def good(begin: int) -> list[Event]:
    """A message that takes the expected time, as the first of its pair does."""
    return [send(0, 1, begin, 90, **WORLD), receive(1, 0, begin, 100, **WORLD)]


def put(rank: int, begin: int, duration: int, **more: Any) -> Event:
    return {
        "rank": rank,
        "kind": Kind.PUT,
        "peer": 1 - rank,
        "begin": begin,
        "duration": duration,
        **STAGED,
        **more,
    }


def chunk(rank: int, where: str, begin: int, duration: int) -> Event:
    return {
        "rank": rank, "kind": Kind.STAGED, "name": "chunk", "where": where, "begin": begin,
        "duration": duration, "peer": 1 - rank, "bytes": 1024,
    }  # fmt: skip


def held(kind: Kind) -> list[Event]:
    """A send of 1,000 ns whose receive is posted at once, with the receiver in its wait from 800 on."""
    return [
        send(0, 1, 1000, 1000, kind=kind, **WORLD),
        receive(1, 0, 990, 5, kind=Kind.IRECV, **WORLD),
        receive(1, 0, 990, 1010, kind=Kind.RECEIVED, **WORLD),
        {"rank": 1, "kind": Kind.WAIT, "name": "MPI_Wait", "begin": 1800, "duration": 200},
    ]  # fmt: skip


SLOW: dict[str, tuple[str, list[Event]]] = {
    "late receiver": ("send", [*good(0), send(0, 1, 1000, 1000, **WORLD), receive(1, 0, 1900, 100, **WORLD)]),
    "late receiver of a message in a buffer": (
        "send", [*good(0), send(0, 1, 1000, 50, **WORLD), receive(1, 0, 1900, 100, **WORLD)],
    ),
    "rendezvous wait": ("send", [*good(0), *held(Kind.SEND)]),
    "first use": ("send", [send(0, 1, 1000, 900, **WORLD), receive(1, 0, 1000, 900, **WORLD)]),
    "contention": (
        "send",
        [*good(0), receive(1, 0, 900, 1100, **WORLD), send(0, 1, 1000, 1000, **WORLD),
         # another message of the same sender, to a third rank, on its way all the time
         {**send(0, 2, 500, 90, tag=9, **WORLD), "kind": Kind.ISEND},
         receive(2, 0, 500, 2000, tag=9, **WORLD)],
    ),
    "preempted or unknown": (
        "send", [*good(0), send(0, 1, 1000, 1000, **WORLD), receive(1, 0, 900, 1100, **WORLD)],
    ),
    "staging back-pressure": (
        "put",
        [put(0, 0, 90), put(0, 1000, 1000), chunk(0, "fill", 1000, 50), chunk(0, "fill", 1900, 50),
         chunk(1, "drain", 1850, 40)],
    ),
    "proxy stall": (
        "put",
        [put(0, 0, 90), {"rank": 0, "kind": Kind.PROXY, "name": "proxy", "begin": 500, "duration": 1500},
         put(0, 1500, 400)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", SLOW)
def test_each_cause_of_a_slow_message_is_found(title: str) -> None:
    op, events = SLOW[title]
    path = "world" if op == "send" else "staged"
    analysis = analyse(
        trace_of(*events, ranks=3), [Curve(path, op, *FLAT, "openmpi" if op == "send" else "")]
    )
    (table,) = [one for one in analysis.tables if one.title == "Slow messages by cause"]
    cause = title.split(" of a ")[0]
    found = {row[1]: row[2] for row in table.rows}
    assert found.pop(cause) == "1"
    assert set(found) <= {"first use"} if cause == "contention" else not found
    assert any(f"of these is: {cause}." in str(one) for one in analysis.findings) or cause == "contention"


def test_a_message_as_quick_as_the_curve_has_no_cause() -> None:
    analysis = analyse(trace_of(*good(0)), [Curve("world", "send", *FLAT, "openmpi")])
    assert not [one for one in analysis.tables if one.title == "Slow messages by cause"]


def test_a_send_that_was_held_until_its_receiver_looked_is_a_rendezvous_wait() -> None:
    assert lost(trace_of(*held(Kind.SEND))) == [("rendezvous wait", 0, 800)]


def test_before_the_receive_is_posted_the_receiver_is_late_and_then_it_is_a_rendezvous() -> None:
    trace = trace_of(
        send(0, 1, 0, 1000), receive(1, 0, 300, 700, kind=Kind.RECEIVED),
        {"rank": 1, "kind": Kind.WAIT, "begin": 900, "duration": 100},
    )  # fmt: skip
    assert lost(trace) == [("late receiver", 0, 300), ("rendezvous wait", 0, 600)]


def barrier(rank: int, begin: int, duration: int) -> Event:
    return {
        "rank": rank, "kind": Kind.COLLECTIVE, "name": "MPI_Barrier", "where": "world", "begin": begin,
        "duration": duration,
    }  # fmt: skip


def test_who_computed_longer_is_imbalance_and_who_waited_itself_is_not() -> None:
    computed = [barrier(0, 0, 10), barrier(1, 0, 10), barrier(0, 100, 310), barrier(1, 400, 10)]
    assert lost(trace_of(*computed)) == [("imbalance", 0, 300)]
    # Rank 1 computed as long as rank 0, and then waited for a message of rank 2.
    waited = [
        *computed, barrier(2, 0, 10), receive(1, 2, 110, 285), send(2, 1, 390, 5), barrier(2, 399, 11),
    ]  # fmt: skip
    found = lost(trace_of(*waited, ranks=3))
    assert ("wait at a collective", 0, 285) in found
    assert ("imbalance", 0, 15) in found  # what rank 1 did besides waiting


def test_a_proxy_that_came_late_and_a_receiver_that_emptied_slowly_are_lost_time() -> None:
    assert lost(trace_of(*SLOW["proxy stall"][1])) == [("proxy stall", 0, 1000)]
    assert lost(trace_of(*SLOW["staging back-pressure"][1])) == [("staging back-pressure", 0, 850)]


def test_a_wait_that_lasts_though_its_signal_was_notified_is_a_late_wake_up() -> None:
    events = []
    for i in range(30):
        at = 10_000 * i
        asleep = 5_000 if i == 17 else 0
        events.append(
            {"rank": 0, "kind": Kind.NOTIFY, "bytes": 1, "peer": 1, "tag": 3, "begin": at, "duration": 10}
        )
        wait = {"kind": Kind.SIGNAL, "bytes": i + 1, "tag": 3, "begin": at, "duration": 30 + asleep}
        events.append({"rank": 1, **wait})
    assert lost(trace_of(*events)) == [("late wake-up", 1, 20 + 5_000 - 10 * 20)]


def test_a_request_overlaps_the_time_between_calls() -> None:
    trace = trace_of(
        send(0, 1, 0, 10, kind=Kind.ISEND), send(0, 1, 0, 1000, kind=Kind.SENT, name="sent"),
        {"rank": 0, "kind": Kind.CALL, "begin": 100, "duration": 200},
        {"rank": 0, "kind": Kind.WAIT, "begin": 700, "duration": 300},
        {"rank": 0, "kind": Kind.KERNEL, "thread": 2, "begin": 50, "duration": 100},
        {"rank": 0, "kind": Kind.KERNEL, "thread": 2, "begin": 900, "duration": 500},
        ranks=3,
    )  # fmt: skip
    trace.threads[2] = trace.threads[2].__class__(0, "a", 0, 0x40000000, "gpu", "cuda:0/7", 0, 0, 0, 0, 0, 0)
    sent = messages(trace, match(trace), match_signals(trace))
    spans, ranks = overlap.find(trace, sent, lanes(trace))
    (request,) = np.flatnonzero(spans.end - spans.begin == 1000)
    assert spans.computing[request] == 90 + 400
    assert spans.waiting[request] == 300
    assert spans.kernels[request] == 100 + 100
    assert (ranks[0].under_way, ranks[0].computing, ranks[0].kernels) == (1000, 490, 200)


def test_the_time_under_way_of_requests_that_overlap_counts_once() -> None:
    """A hundred requests run at once from 0 to 1000; the last 900 ns are in the call that waits for all."""
    events = [
        event
        for i in range(100)
        for event in (
            send(0, 1, i, 1, tag=i, kind=Kind.ISEND, name="MPI_Isend"),
            send(0, 1, i, 1000 - i, tag=i, kind=Kind.SENT, name="send, until complete"),
            receive(1, 0, 10 * i, 10, tag=i, name="MPI_Recv"),
        )
    ]
    events.append({"rank": 0, "kind": Kind.WAIT, "name": "MPI_Waitall", "begin": 100, "duration": 900})
    analysis = analyse(trace_of(*events), [])
    (finding,) = [one for one in analysis.findings if "Non-blocking" in one.text]
    assert "were under way in 50 % of the ranks' time" in finding.text
    assert "only 0 % of that was hidden" in finding.text
    assert "in 90 % of it a call waited" in finding.text
    (table,) = [one for one in analysis.tables if one.title == "Overlap by call site"]
    assert table.rows[0][2:] == ["100", "1.00 µs", "0 %", "90 %"]


def test_requests_that_nothing_hides_are_a_finding() -> None:
    events = [
        event
        for i in range(20)
        for event in (
            send(0, 1, 1000 * i, 10, kind=Kind.ISEND, name="MPI_Isend"),
            send(0, 1, 1000 * i, 900, kind=Kind.SENT, name="send, until complete"),
            {"rank": 0, "kind": Kind.WAIT, "name": "MPI_Wait", "begin": 1000 * i + 20, "duration": 880},
            receive(1, 0, 1000 * i, 900),
        )
    ]
    (finding,) = [one for one in analyse(trace_of(*events), []).findings if "Non-blocking" in one.text]
    assert "only 1.11 % of that was hidden behind computing" in finding.text
    assert finding.link.startswith("#t=")
