"""The outermost calls of each thread and stream, which do not overlap, and the time between them, in which it
computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.regions import system_threads
from peerway_trace.rings import MADE_OR_FREED, Kind
from peerway_trace.store import Trace

# Kinds of events around calls or beside them.
SPANS = (
    Kind.REGION, Kind.SENT, Kind.CANCELLED, Kind.RECEIVED, Kind.COLLECTIVE_DONE, Kind.PROXY, Kind.NIC,
    Kind.MARK, Kind.RANGE,    *MADE_OR_FREED,
)  # fmt: skip
OF_GPU = (
    Kind.KERNEL, Kind.COPY, Kind.FILL, Kind.STEPS_START, Kind.STEPS_FINISH, Kind.STEPS_BOTH,
)  # fmt: skip


@dataclass(frozen=True)
class Lanes:
    """The outermost calls of all lanes, by lane and time."""

    event: NDArray[Any]  # as an index into the trace's columns
    begin: NDArray[Any]
    duration: NDArray[Any]
    first: NDArray[Any]  # the index of each lane's first call; one more entry has the number of all calls
    rank: NDArray[Any]  # of each lane
    step: NDArray[Any]  # for each event of the trace, the outermost call that contains it; -1: none

    def of_rank(self, rank: int) -> list[slice]:
        """The calls of a rank's lanes."""
        return [slice(int(self.first[n]), int(self.first[n + 1])) for n in np.flatnonzero(self.rank == rank)]

    def before(self) -> NDArray[Any]:
        """The end of the preceding call for each call; 0 for the first of a lane."""
        ends = np.zeros(len(self.begin), np.int64)
        ends[1:] = (self.begin + self.duration)[:-1]
        ends[self.first[:-1][np.diff(self.first) > 0]] = 0
        return ends


def lanes(trace: Trace) -> Lanes:
    """All lanes that have calls."""
    calls = np.ones(256, bool)
    calls[list(SPANS)] = False
    event = np.flatnonzero(calls[trace["kind"]])
    system = system_threads(trace)
    lane = system[trace["thread"][event]]
    begin = trace["begin"][event]
    longer = trace["duration"][event]
    if len(event) and not _in_order(lane, begin, longer):
        order = np.lexsort((-longer, begin, lane))
        event, lane, begin = event[order], lane[order], begin[order]
        longer = longer[order]
        del order
    many = int(system.max()) + 1
    if not len(event):
        none = np.empty(0, np.int64)
        nowhere = np.full(len(trace), -1, np.int32)
        return Lanes(none, none, none, np.zeros(many + 1, np.int64), _ranks(trace, system), nowhere)
    # A call is outermost if all calls before it in its lane have ended; one running maximum serves all lanes.
    end = begin + longer
    far = int(end.max()) + 1
    latest = np.maximum.accumulate(end + lane * far) - lane * far
    outer = np.ones(len(event), bool)
    outer[1:] = (lane[1:] != lane[:-1]) | (begin[1:] >= latest[:-1])
    step = np.full(len(trace), -1, np.int32)
    step[event] = np.cumsum(outer, dtype=np.int32) - 1
    kept = np.flatnonzero(outer)
    # If rounding makes a call end after the one that contains it, that one becomes longer.
    last = np.append(kept[1:], len(event)) - 1
    first = np.searchsorted(lane[kept], np.arange(many + 1))
    return Lanes(event[kept], begin[kept], latest[last] - begin[kept], first, _ranks(trace, system), step)


def _in_order(lane: NDArray[Any], begin: NDArray[Any], duration: NDArray[Any]) -> bool:
    same = lane[1:] == lane[:-1]
    later = begin[1:] > begin[:-1]
    inner = (begin[1:] == begin[:-1]) & (duration[1:] <= duration[:-1])
    return bool(((lane[1:] > lane[:-1]) | (same & (later | inner))).all())


def _ranks(trace: Trace, system: NDArray[Any]) -> NDArray[Any]:
    ranks = np.full(int(system.max()) + 1, -1, np.int32)
    for number, thread in zip(system.tolist(), trace.threads, strict=False):
        ranks[number] = max(ranks[number], thread.rank)
    return ranks


class Cover:
    """Intervals that may overlap. They are stored as how long at least one of them had lasted by a given
    time.
    """

    def __init__(self, begin: NDArray[Any], end: NDArray[Any]) -> None:
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
        latest = np.maximum.accumulate(end) if len(end) else end
        fresh = np.ones(len(begin), bool)
        fresh[1:] = begin[1:] > latest[:-1]
        self.begin = begin[fresh]
        last = np.append(np.flatnonzero(fresh)[1:], len(begin)) - 1 if len(begin) else np.empty(0, np.int64)
        self.end = latest[last]
        self._before = np.concatenate([[0], np.cumsum(self.end - self.begin)])

    @property
    def total(self) -> int:
        """The total length."""
        return int(self._before[-1])

    def until(self, time: NDArray[Any]) -> NDArray[Any]:
        """The length before a time."""
        place = np.searchsorted(self.begin, time, "right")
        if not len(self.begin):
            return np.zeros(len(time), np.int64)
        last = np.maximum(place - 1, 0)
        return np.where(
            place > 0, self._before[last] + np.minimum(time, self.end[last]) - self.begin[last], 0
        )

    def between(self, begin: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
        """The length within other intervals."""
        return np.asarray(self.until(end) - self.until(begin))

    def shared(self, other: Cover) -> int:
        """The length of the overlap with another cover."""
        return int(self.between(other.begin, other.end).sum())
