"""Finds wait states, the time that a rank lost because another one was late, by the place of the call.

    late sender           from the beginning of the receive to the beginning of the send
    late receiver         from the beginning of the send to the beginning of the receive
    rendezvous wait       after that, until the receiver was in a call again, if its receive was posted
    wait at a collective  from this rank's beginning to that of the last rank that it needs
    imbalance             the part of a wait at a collective by which the last rank had computed longer since
                          its previous collective
    late notification     from the beginning of the wait for a signal to that of the notification that ends it
    late wake-up          from the end of that notification to the end of the wait, beyond ten times the usual

For an operation that was only started, the beginning is that of the call that waits for it. If one call waits
for several operations (MPI_Waitall), each part of its time counts once. stalls.py finds the time lost to
proxies and bounce buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace import stalls
from peerway_trace.calls import completed, waiting_call
from peerway_trace.collectives import match_collectives
from peerway_trace.lanes import Lanes, lanes
from peerway_trace.messages import Pairs, size_classes
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

STATES = (
    "late sender", "late receiver", "wait at a collective", "late notification", "imbalance",
    "rendezvous wait", "proxy stall", "staging back-pressure", "late wake-up",
)  # fmt: skip
FEWEST, UNUSUAL = 20, 10  # waits needed to know the usual time; how many times the usual time is late
Part = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # events that waited, events that were late, ns


@dataclass(frozen=True)
class Waits:
    """One entry for each event that lost time."""

    state: NDArray[Any]  # index in STATES
    event: NDArray[Any]  # the event that waited, as an index into the trace's columns
    culprit: NDArray[Any]  # the event that was late
    lost: NDArray[Any]  # ns

    def __len__(self) -> int:
        return len(self.event)


def find(trace: Trace, matched: Pairs, signals: Pairs, outer: Lanes | None = None) -> Waits:
    """All events that lost time."""
    outer = outer or lanes(trace)
    blocking, completed, imbalance = _at_collectives(trace, outer)
    late_sender, late_receiver, rendezvous, completed = _once(
        [_late_sender(trace, matched), *_late_receiver(trace, matched), completed]
    )
    collective = tuple(np.concatenate(both) for both in zip(blocking, completed, strict=True))
    parts = [
        late_sender, late_receiver, collective,
        (signals.second, signals.first, _until(trace, signals.second, trace["begin"][signals.first])),
        imbalance, rendezvous, stalls.of_proxies(trace), stalls.of_staging(trace, outer),
        _late_wake_up(trace, signals),
    ]  # fmt: skip
    state = np.concatenate([np.full(len(part[0]), number, np.int8) for number, part in enumerate(parts)])
    event, culprit, lost = (
        np.concatenate([np.asarray(part[i], np.int64) for part in parts]) for i in range(3)
    )
    some = lost > 0
    return Waits(state[some], event[some], culprit[some], lost[some])


def _once(parts: list[Part]) -> list[Part]:
    """Shorten waits that share a call, so that no time counts twice.

    All waits of a call count from its beginning. A part keeps only the time that the parts before it do not
    have. For example, a call that waits for a receive and a send, such as MPI_Sendrecv, lost their common
    time to the receive. Each part has a call at most once.
    """
    calls = np.unique(np.concatenate([event for event, _, _ in parts]))
    taken = np.zeros(len(calls), np.int64)
    result = []
    for event, culprit, lost in parts:
        at = np.searchsorted(calls, event)
        result.append((event, culprit, np.maximum(0, lost - taken[at])))
        taken[at] = np.maximum(taken[at], lost)
    return result


def _until(trace: Trace, event: NDArray[Any], then: NDArray[Any]) -> NDArray[Any]:
    """How much of the events was before a time."""
    return np.asarray(np.clip(then - trace["begin"][event], 0, trace["duration"][event]))


def _late_wake_up(trace: Trace, signals: Pairs) -> Part:
    """Find late wake-ups. The usual time is the median of waits that had begun when their signal was
    notified, by path and size.
    """
    begin, duration = trace["begin"], trace["duration"]
    notified = begin[signals.first] + duration[signals.first]
    waited = np.flatnonzero(begin[signals.second] < notified)
    first, second, notified = signals.first[waited], signals.second[waited], notified[waited]
    delay = np.maximum(0, begin[second] + duration[second] - notified)
    size = np.where(trace["kind"][first] == Kind.PUT, trace["bytes"][first], 0)
    classes = size_classes(size) + 65 * trace["where"][first].astype(np.int64)
    _, groups = np.unique(classes, return_inverse=True)
    order = np.lexsort((delay, groups))
    count = np.bincount(groups) if len(groups) else np.empty(0, np.int64)
    start = np.cumsum(count) - count
    usual = np.where(count >= FEWEST, delay[order][start + count // 2], np.iinfo(np.int64).max // UNUSUAL)
    return second, second, np.maximum(0, delay - UNUSUAL * usual[groups])


def receives(trace: Trace, matched: Pairs) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each message whose receiver waited for it in a call: that call, and the send."""
    waiting = waiting_call(trace, matched.second)
    known = waiting >= 0
    return waiting[known], matched.first[known]


def sends(trace: Trace, matched: Pairs) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """For each message whose sender was held until the receiver was ready: the call in which the sender was,
    the receive as it was posted, and the receiver's call for which the sender waited. This call is the
    receive, or the call that waited for it.
    """
    begin = trace["begin"]
    # A send that was only started lost its time in the call that waited for it.
    waiting = waiting_call(trace, completed(trace, matched.first))
    # Both halves of an MPI_Sendrecv last as long as the call, so its lost time is counted for the receive.
    exchange = np.array([name.startswith(("MPI_Sendrecv", "MPI_Isendrecv")) for name in trace.names])
    known = (waiting >= 0) & ~exchange[trace["name"][matched.first]]
    event, posted = waiting[known], matched.second[known]
    end = begin[event] + trace["duration"][event]
    held = end >= begin[posted]
    event, posted, end = event[held], posted[held], end[held]
    there = waiting_call(trace, posted)
    there = np.where((there >= 0) & (begin[there] > begin[posted]) & (begin[there] <= end), there, posted)
    return event, posted, there


def _late_sender(trace: Trace, matched: Pairs) -> Part:
    event, culprit = receives(trace, matched)
    return _largest(event, culprit, _until(trace, event, trace["begin"][culprit]))


def _late_receiver(trace: Trace, matched: Pairs) -> tuple[Part, Part]:
    """The time until the receive was posted; and, if counted from the beginning, until the receiver was in a
    call for it.
    """
    event, posted, there = sends(trace, matched)
    late = _until(trace, event, trace["begin"][posted])
    held = _until(trace, event, np.maximum(trace["begin"][posted], trace["begin"][there]))
    event, chosen, _ = _largest(event, np.arange(len(event)), held)
    return (event, posted[chosen], late[chosen]), (event, there[chosen], held[chosen])


def _largest(
    event: NDArray[Any], culprit: NDArray[Any], lost: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """If one call waited for several events, it waited for the one that came last."""
    order = np.lexsort((-lost, event))
    _, first = np.unique(event[order], return_index=True)
    kept = order[first]
    return event[kept], culprit[kept], lost[kept]


def _at_collectives(trace: Trace, outer: Lanes) -> tuple[Part, Part, Part]:
    """Waits at blocking collectives, waits in calls that wait for other collectives, and imbalance."""
    result = match_collectives(trace)
    event, culprit, call = result.event, result.culprit, result.call
    if not len(event):
        return (event, culprit, event), (event, culprit, event), (event, culprit, event)
    lost = np.where(call >= 0, _until(trace, call, trace["begin"][culprit]), 0)
    lost[((result.needs == 2) & ~result.is_root) | (result.needs == 3)] = 0
    # How long each rank had computed since its previous collective, or its first call.
    computed = np.cumsum(outer.begin - outer.before())
    step = outer.step[event]
    lane = np.searchsorted(outer.first, step, "right") - 1
    since = np.where(result.previous >= 0, step[result.previous], outer.first[lane])
    spent = computed[step] - computed[since]
    longer = _scattered(event, spent, culprit) - spent
    blocking = call == event
    imbalance = np.where((result.needs == 0) & blocking, np.clip(longer, 0, lost), 0)
    # One call may wait for several collectives that were started.
    later = (lost > 0) & ~blocking
    waited = _largest(call[later], culprit[later], lost[later])
    own = event[blocking], culprit[blocking], (lost - imbalance)[blocking]
    return own, waited, (event[blocking], culprit[blocking], imbalance[blocking])


def _scattered(event: NDArray[Any], value: NDArray[Any], wanted: NDArray[Any]) -> NDArray[Any]:
    """The values of the wanted events among all events."""
    order = np.argsort(event)
    return np.asarray(value[order][np.searchsorted(event[order], wanted)])
