"""The analysis of a trace, for hand-written events with known answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from peerway_trace import bursts, waits
from peerway_trace.curve import Curve, ambiguous, curve_of, streamed_ns
from peerway_trace.messages import match, match_signals, messages
from peerway_trace.rings import Kind
from peerway_trace.store import COLUMNS, SUM_COLUMNS, Thread, Trace


def trace_of(*events: dict[str, Any], ranks: int = 2) -> Trace:
    """A trace with one thread per rank. Events have `rank`, `kind`, `begin` and `duration` (ns),
    and any column.
    """
    names = [
        "",
        *dict.fromkeys(text for event in events for text in (event.get("name"), event.get("where")) if text),
    ]
    ordered = sorted(events, key=lambda event: (event["rank"], event["begin"]))
    rows = []
    for event in ordered:
        row = {"peer": -1, "tag": -1, "bytes": 0, "duration": 0, "thread": event["rank"], "site": 0, **event}
        row["name"] = names.index(event.get("name", ""))
        row["where"] = names.index(event.get("where", ""))
        rows.append(row)
    columns = {name: np.array([row[name] for row in rows], kind) for name, kind in COLUMNS.items()}
    threads = [Thread(rank, "a", rank, rank, "openmpi", "", 0, 0, 0, 0, 0, 0) for rank in range(ranks)]
    sums = {name: np.empty(0, kind) for name, kind in SUM_COLUMNS.items()}
    return Trace({"paths_complete_at_start": []}, names, threads, columns, sums)


def send(rank: int, peer: int, begin: int, duration: int = 10, tag: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "rank": rank,
        "kind": Kind.SEND,
        "peer": peer,
        "begin": begin,
        "duration": duration,
        "tag": tag,
        "bytes": 8,
        **more,
    }


def receive(
    rank: int, peer: int, begin: int, duration: int = 10, tag: int = 0, **more: Any
) -> dict[str, Any]:
    return {**send(rank, peer, begin, duration, tag), "kind": Kind.RECV, **more}


def test_a_send_that_was_cancelled_has_no_receive() -> None:
    request: dict[str, Any] = {"kind": Kind.ISEND, "name": "MPI_Isend"}
    trace = trace_of(
        send(0, 1, 0, **request), send(0, 1, 20, **request),
        send(0, 1, 0, 15, kind=Kind.CANCELLED, name="send, until cancelled"),
        send(0, 1, 20, 30, kind=Kind.SENT, name="send, until complete"), receive(1, 0, 5, 40),
    )  # fmt: skip
    pairs = match(trace)
    assert [int(trace["begin"][i]) for i in pairs.first] == [20]
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0


def test_messages_match_in_order_for_each_pair_tag_and_communicator() -> None:
    trace = trace_of(
        send(0, 1, 0, tag=1), send(0, 1, 10, tag=2), send(0, 1, 20, tag=1),
        send(0, 1, 30, tag=1, where="other"),
        receive(1, 0, 100, tag=2), receive(1, 0, 110, tag=1, where="other"), receive(1, 0, 120, tag=1),
        receive(1, 0, 130, tag=1),
    )  # fmt: skip
    pairs = match(trace)
    found = {
        (int(trace["begin"][a]), int(trace["begin"][b]))
        for a, b in zip(pairs.first, pairs.second, strict=True)
    }
    assert found == {(0, 120), (10, 100), (20, 130), (30, 110)}
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0


def test_sends_without_a_receive_and_receives_without_a_send_are_told() -> None:
    trace = trace_of(send(0, 1, 0), send(0, 1, 10), receive(1, 0, 5), receive(1, 0, 50, tag=9))
    pairs = match(trace)
    assert list(trace["begin"][pairs.alone_first]) == [10]
    assert list(trace["tag"][pairs.alone_second]) == [9]


def test_a_wait_ends_with_the_notification_that_brought_the_sum() -> None:
    put = {"kind": Kind.PUT, "peer": 0, "tag": 5, "bytes": 8, "duration": 5}
    trace = trace_of(
        {"rank": 1, "begin": 0, **put},
        {"rank": 2, "begin": 10, "kind": Kind.NOTIFY, "peer": 0, "tag": 5, "bytes": 3, "duration": 5},
        {"rank": 1, "begin": 20, **put},
        {"rank": 1, "begin": 30, **put, "tag": 6},
        {"rank": 0, "begin": 0, "kind": Kind.SIGNAL, "bytes": 4, "tag": 5, "duration": 15},
        {"rank": 0, "begin": 16, "kind": Kind.SIGNAL, "bytes": 5, "tag": 5, "duration": 10},
        {"rank": 0, "begin": 40, "kind": Kind.SIGNAL, "bytes": 6, "tag": 5, "duration": 100},
        ranks=3,
    )
    pairs = match_signals(trace)
    found = {
        (int(trace["begin"][a]), int(trace["begin"][b]))
        for a, b in zip(pairs.first, pairs.second, strict=True)
    }
    assert found == {(10, 0), (20, 16)}
    assert list(trace["bytes"][pairs.alone_second]) == [6]


def lost(trace: Trace) -> list[tuple[str, int, int]]:
    """The state, the waiting rank, and the time."""
    found = waits.find(trace, match(trace), match_signals(trace))
    return sorted(
        (waits.STATES[state], int(trace.rank[event]), int(ns))
        for state, event, ns in zip(found.state, found.event, found.lost, strict=True)
    )


def test_a_late_sender_costs_what_the_receive_waited_for_it() -> None:
    assert lost(trace_of(send(0, 1, 100), receive(1, 0, 30, 85))) == [("late sender", 1, 70)]
    assert lost(trace_of(send(0, 1, 10), receive(1, 0, 30, 85))) == []


def test_a_late_receiver_costs_only_a_send_that_waited() -> None:
    assert lost(trace_of(send(0, 1, 0, 60), receive(1, 0, 50, 20))) == [("late receiver", 0, 50)]
    assert lost(trace_of(send(0, 1, 0, 5), receive(1, 0, 50, 20))) == []


def test_a_request_loses_its_time_in_the_call_that_waits_for_it() -> None:
    trace = trace_of(
        send(0, 1, 100, kind=Kind.ISEND), send(0, 1, 200, tag=1, kind=Kind.ISEND),
        receive(1, 0, 0, 230, kind=Kind.RECEIVED), receive(1, 0, 5, 225, tag=1, kind=Kind.RECEIVED),
        {"rank": 1, "kind": Kind.WAIT, "begin": 80, "duration": 150},
    )  # fmt: skip
    assert lost(trace) == [("late sender", 1, 120)]  # because of the later of the two


def waits_for_both(receive_begins: int, send_begins: int) -> Trace:
    """Rank 0 waits from 10 to 210 for a receive and a send in one call; rank 1 begins its two later."""
    both = [
        receive(0, 1, 0, 210, kind=Kind.RECEIVED), send(0, 1, 5, 1, kind=Kind.ISEND),
        send(0, 1, 5, 205, kind=Kind.SENT), {"rank": 0, "kind": Kind.WAIT, "begin": 10, "duration": 200},
    ]  # fmt: skip
    return trace_of(*both, send(1, 0, send_begins, 5), receive(1, 0, receive_begins, 5))


def test_one_call_that_waits_for_a_receive_and_a_send_loses_each_of_its_times_once() -> None:
    assert lost(waits_for_both(receive_begins=110, send_begins=120)) == [("late sender", 0, 110)]
    assert lost(waits_for_both(receive_begins=190, send_begins=120)) == [
        ("late receiver", 0, 70),
        ("late sender", 0, 110),
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MPI_Allreduce", [("wait at a collective", 0, 90), ("wait at a collective", 2, 70)]),
        ("MPI_Bcast", [("wait at a collective", 2, 0)]),
        ("MPI_Reduce", [("wait at a collective", 0, 90)]),
    ],
)
def test_a_collective_waits_for_whom_it_needs(name: str, expected: list[tuple[str, int, int]]) -> None:
    root = -1 if name == "MPI_Allreduce" else 0
    call = {"kind": Kind.COLLECTIVE, "name": name, "where": "world", "peer": root, "duration": 200}
    trace = trace_of(
        {"rank": 0, "begin": 10, **call},
        {"rank": 1, "begin": 100, **call},
        {"rank": 2, "begin": 30, **call},
        ranks=3,
    )
    assert lost(trace) == [one for one in expected if one[2] > 0]


def test_collectives_of_two_communicators_are_counted_apart() -> None:
    call = {"kind": Kind.COLLECTIVE, "name": "MPI_Barrier", "duration": 50}
    trace = trace_of(
        {"rank": 0, "begin": 0, **call, "where": "a"}, {"rank": 1, "begin": 20, **call, "where": "a"},
        {"rank": 1, "begin": 100, **call, "where": "b"}, {"rank": 0, "begin": 130, **call, "where": "b"},
    )  # fmt: skip
    # Before the second, rank 0 had computed for longer.
    assert lost(trace) == [("imbalance", 1, 30), ("wait at a collective", 0, 20)]


def started(rank: int, name: str, begin: int, end: int, **more: Any) -> list[dict[str, Any]]:
    """A nonblocking collective, from its start until its request was found complete."""
    call = {"rank": rank, "where": "world", "begin": begin, **more}
    return [
        {**call, "kind": Kind.COLLECTIVE, "name": f"MPI_{name}", "duration": 5},
        {
            **call,
            "kind": Kind.COLLECTIVE_DONE,
            "name": f"MPI_{name}, until complete",
            "duration": end - begin,
        },
    ]


def waiting(rank: int, begin: int, end: int) -> dict[str, Any]:
    return {
        "rank": rank, "kind": Kind.WAIT, "name": "MPI_Waitall", "begin": begin, "duration": end - begin
    }  # fmt: skip


def test_a_collective_that_does_not_block_loses_its_time_in_the_call_that_waits_for_it() -> None:
    trace = trace_of(
        *started(0, "Iallreduce", 10, 200), waiting(0, 80, 200),
        *started(1, "Iallreduce", 150, 210), waiting(1, 160, 210),
    )  # fmt: skip
    assert lost(trace) == [("wait at a collective", 0, 70)]


def test_of_several_collectives_that_one_call_waits_for_the_last_to_come_counts() -> None:
    trace = trace_of(
        *started(0, "Ibarrier", 0, 200), *started(0, "Iallreduce", 10, 200), waiting(0, 20, 200),
        *started(1, "Ibarrier", 50, 210), *started(1, "Iallreduce", 120, 210), waiting(1, 160, 210),
    )  # fmt: skip
    assert lost(trace) == [("wait at a collective", 0, 100)]


def test_collectives_of_a_team_are_told_by_their_numbers_where_a_rank_was_recorded_later() -> None:
    def barrier(rank: int, number: int, begin: int, end: int) -> dict[str, Any]:
        team = {"kind": Kind.COLLECTIVE, "name": "barrier", "where": "team", "tag": number}
        return {"rank": rank, "begin": begin, "duration": end - begin, **team}

    trace = trace_of(
        barrier(0, 4, 0, 20), barrier(0, 5, 100, 200), barrier(1, 5, 180, 200),
        {"rank": 1, "kind": Kind.CALL, "name": "call", "begin": 100, "duration": 5},
    )  # fmt: skip
    found = waits.find(trace, match(trace), match_signals(trace))
    assert int(found.lost.sum()) == 80
    assert {int(trace.rank[event]) for event in found.event} == {0}


def test_a_collective_that_only_some_need_or_that_nobody_completed_costs_nothing() -> None:
    of_neighbours = {"kind": Kind.COLLECTIVE, "name": "MPI_Neighbor_alltoall", "where": "ring"}
    trace = trace_of(
        {"rank": 0, "begin": 0, "duration": 100, **of_neighbours},
        {"rank": 1, "begin": 90, "duration": 20, **of_neighbours},
        started(0, "Ibarrier", 200, 0)[0], started(1, "Ibarrier", 300, 0)[0],
    )  # fmt: skip
    assert lost(trace) == []


def test_a_message_that_was_probed_loses_its_time_in_the_probe() -> None:
    trace = trace_of(
        send(0, 1, 100),
        {"rank": 1, "kind": Kind.WAIT, "name": "MPI_Mprobe", "begin": 30, "duration": 85},
        receive(1, 0, 30, 90, kind=Kind.RECEIVED),
        {"rank": 1, "kind": Kind.WAIT, "name": "MPI_Mrecv", "begin": 116, "duration": 4},
    )
    found = waits.find(trace, match(trace), match_signals(trace))
    assert [trace.names[trace["name"][event]] for event in found.event] == ["MPI_Mprobe"]
    assert lost(trace) == [("late sender", 1, 70)]


def test_bursts_end_at_a_gap_and_a_message_alone_is_none() -> None:
    trace = trace_of(
        *(send(0, 1 + i % 2, 100 * i, 40) for i in range(4)),  # gaps of 60
        send(0, 1, 5000, 40),
        *(send(1, 0, 100 + 50 * i, 40) for i in range(3)),
        ranks=3,
    )
    found = bursts.find(trace, messages(trace, match(trace), match_signals(trace)), 61)
    assert list(found.rank) == [0, 1]
    assert list(found.messages) == [4, 3]
    assert list(found.bytes) == [32, 24]
    assert list(found.peers) == [2, 1]
    assert list(found.length) == [340, 140]
    assert list(found.stall) == [5000 - 340, -1]
    assert found.share == 7 / 8
    assert len(bursts.find(trace, messages(trace, match(trace), match_signals(trace)), 60)) == 1


def put(begin: int, duration: int, size: int, where: str = "peer/shm") -> dict[str, Any]:
    return {
        "rank": 0, "kind": Kind.PUT, "name": "put", "peer": 1, "where": where, "begin": begin,
        "duration": duration, "bytes": size,
    }  # fmt: skip


def curve(path: str, ns: float, streamed: bool = False, op: str = "put", stack: str = "") -> Curve:
    """A curve by which every message takes `ns`."""
    return Curve(path, op, np.array([1.0, 1e6]), np.array([ns, ns]), stack, streamed)


def of_curve(trace: Trace, *curves: Curve) -> list[float]:
    sent = messages(trace, match(trace), match_signals(trace))
    return list(bursts.find(trace, sent, 100, streamed_ns(trace, sent, curves)).of_curve)


def test_a_burst_is_judged_by_what_its_messages_take_in_a_stream() -> None:
    # Two bursts of 200 and 400 ns, each with two messages of 50 ns one after another.
    trace = trace_of(put(0, 90, 8), put(100, 100, 1000), put(1000, 90, 8), put(1100, 300, 1000))
    latency, streamed = curve("peer/shm", 80), curve("peer/shm", 50, streamed=True)
    assert of_curve(trace, latency, streamed) == [0.5, 0.25]
    assert of_curve(trace, latency) == [0.8, 0.4]  # no bandwidth test was measured
    assert of_curve(trace, curve("peer/copy", 50)) == pytest.approx([np.nan] * 2, nan_ok=True)


def test_a_burst_with_a_message_that_no_curve_judges_is_not_judged() -> None:
    trace = trace_of(put(0, 90, 8), put(100, 100, 8, "staged"), put(1000, 50, 8), put(1050, 50, 8))
    assert of_curve(trace, curve("peer/shm", 25)) == pytest.approx([np.nan, 0.5], nan_ok=True)


def test_puts_of_plans_and_splits_are_judged_by_the_paths_that_carried_them() -> None:
    halves = "peer/shm 50 % + staged 50 %"
    for where, path in (
        ("plan, peer/shm", "peer/shm"),
        ("plan slots, peer/shm", "peer/shm"),
        (f"split, {halves}", halves),
    ):
        trace = trace_of(put(0, 50, 8, where), put(50, 50, 8, where))
        assert of_curve(trace, curve("other", 10), curve(path, 25)) == [0.5]
    of_gpu = trace_of(put(0, 50, 8, "plan"), put(50, 50, 8, "plan"))
    assert of_curve(of_gpu, curve("peer/shm", 25)) == pytest.approx([np.nan], nan_ok=True)


def test_messages_of_an_mpi_are_judged_by_records_of_that_one_alone() -> None:
    trace = trace_of(*(send(0, 1, 100 * i, 50, where="world") for i in range(2)))
    trace.threads = [replace(one, source="mpich") for one in trace.threads]
    own = curve("mpich", 75, op="send", stack="mpich")
    others = [
        curve("openmpi", 10, op="send", stack="openmpi"),
        curve("plan/packets", 10, op="send"),
    ]
    assert of_curve(trace, *others, own) == [1.0]
    assert of_curve(trace, *others) == pytest.approx([np.nan], nan_ok=True)
    assert curve_of(trace, [*others, own], "send", "world") is own
    # It is unknown which of two paths the program used.
    several = [own, curve("tcp", 80, op="send", stack="mpich")]
    assert curve_of(trace, several, "send", "world") is None
    assert ambiguous(trace, several) == ["mpich", "tcp"]


def test_messages_in_flight_are_counted_until_they_arrive() -> None:
    trace = trace_of(
        *(send(0, 1, 10 * i, 5) for i in range(5)), *(receive(1, 0, 1000 + i, 1) for i in range(5))
    )
    found = bursts.find(trace, messages(trace, match(trace), match_signals(trace)), 100)
    assert list(found.in_flight) == [5]


def test_matching_finds_what_a_simple_loop_finds() -> None:
    random = np.random.default_rng(3)
    events = []
    for _ in range(3000):
        a, b = random.integers(0, 4, 2)
        make = send if random.random() < 0.5 else receive
        time, tag = int(random.integers(0, 10**6)), int(random.integers(0, 3))
        events.append(make(int(a), int(b), time, tag=tag, where=str(random.integers(0, 2))))
    trace = trace_of(*events, ranks=4)
    waiting: dict[Any, list[int]] = {}
    for i in np.argsort(trace["begin"], kind="stable"):
        if trace["kind"][i] == Kind.SEND:
            key = (trace["where"][i], trace.rank[i], trace["peer"][i], trace["tag"][i])
            waiting.setdefault(key, []).append(int(i))
    expected = set()
    for i in np.argsort(trace["begin"], kind="stable"):
        if trace["kind"][i] == Kind.RECV:
            key = (trace["where"][i], trace["peer"][i], trace.rank[i], trace["tag"][i])
            if waiting.get(key):
                expected.add((waiting[key].pop(0), int(i)))
    pairs = match(trace)
    assert set(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == expected
