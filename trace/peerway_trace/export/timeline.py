"""A thread's events as nested beginnings and ends in the order of time, as both formats need them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.messages import Messages
from peerway_trace.rings import MADE_OR_FREED, Kind
from peerway_trace.store import Thread, Trace

# Kinds of events that go on beside the calls of their thread, and may overlap.
BESIDE = (
    Kind.SENT, Kind.CANCELLED, Kind.RECEIVED, Kind.COLLECTIVE_DONE, Kind.PROXY, Kind.NIC, Kind.RANGE,
    *MADE_OR_FREED,
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """The beginning or the end of an event of a thread."""

    time: int
    kind: str  # "begin", "end", or "point": the end of a request or of something else beside calls
    event: int  # as an index into the trace's columns


@dataclass(frozen=True)
class SystemThread:
    """A thread of the operating system, which several recorders may have seen."""

    first: Thread
    events: NDArray[Any]


def threads(trace: Trace) -> list[SystemThread]:
    """All threads, by rank; each with its events in the order of time, outer events before inner ones."""
    numbers: dict[tuple[str, int, int], list[int]] = {}
    for number, thread in enumerate(trace.threads):
        numbers.setdefault((thread.host, thread.pid, thread.tid), []).append(number)
    order = np.argsort(trace["thread"], kind="stable")
    starts = np.searchsorted(trace["thread"][order], np.arange(len(trace.threads) + 1))
    result = []
    for several in numbers.values():
        events = np.concatenate([order[starts[n] : starts[n + 1]] for n in several])
        events = events[np.lexsort((-trace["duration"][events], trace["begin"][events]))]
        result.append(SystemThread(trace.threads[several[0]], events))
    return result


def in_flight(trace: Trace, sent: Messages, rank: int) -> tuple[list[int], list[int]]:
    """The number of bytes that a rank has sent and that have not arrived, and when it changes."""
    own = trace.rank[sent.event] == rank
    times = np.concatenate([sent.begin[own], sent.end[own]])
    change = np.concatenate([sent.bytes[own], -sent.bytes[own]])
    order = np.lexsort((-change, times))
    return times[order].tolist(), np.cumsum(change[order]).tolist()


def steps(trace: Trace, events: NDArray[Any]) -> Iterator[Step]:
    """The steps of one thread. If rounding makes an event end after the one that contains it, both end
    together.
    """
    requests = np.isin(trace["kind"][events], BESIDE)
    calls, ended = events[~requests], events[requests]
    point_times = trace["begin"][ended] + trace["duration"][ended]
    in_time = np.argsort(point_times, kind="stable")
    points = list(zip(point_times[in_time].tolist(), ended[in_time].tolist(), strict=True))
    place = 0
    for step in _nested(calls.tolist(), trace["begin"][calls].tolist(), trace["duration"][calls].tolist()):
        while place < len(points) and points[place][0] <= step.time:
            yield Step(points[place][0], "point", points[place][1])
            place += 1
        yield step
    for time, event in points[place:]:
        yield Step(time, "point", event)


def _nested(events: list[int], begins: list[int], durations: list[int]) -> Iterator[Step]:
    stack: list[tuple[int, int]] = []
    for event, begin, duration in zip(events, begins, durations, strict=True):
        while stack and stack[-1][0] <= begin:
            end, ended = stack.pop()
            yield Step(end, "end", ended)
        end = min(begin + duration, stack[-1][0]) if stack else begin + duration
        yield Step(begin, "begin", event)
        stack.append((end, event))
    while stack:
        end, ended = stack.pop()
        yield Step(end, "end", ended)
