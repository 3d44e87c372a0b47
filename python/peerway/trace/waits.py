"""Wait states: time that a rank lost because another was late, by the place that called.

late sender: from the beginning of the receive, or of the call that waits for it, to that of the send;
late receiver: from the beginning of the send, or of the call that waits for it, to that of the receive;
wait at a collective: from this rank's beginning to that of the last one it needs;
late raise: from the beginning of the wait for a signal to that of the raise that ended it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.trace.messages import Pairs, of_kind
from peerway.trace.rings import Kind
from peerway.trace.store import Trace

STATES = ("late sender", "late receiver", "wait at a collective", "late raise")


@dataclass(frozen=True)
class Waits:
    """One entry for each event that lost time."""

    state: NDArray[Any]  # index in STATES
    event: NDArray[Any]  # that waited, as an index into the trace's columns
    culprit: NDArray[Any]  # the event that was late
    lost: NDArray[Any]  # ns


def find(trace: Trace, matched: Pairs, signals: Pairs) -> Waits:
    """All that was lost."""
    parts = [
        _late_sender(trace, matched),
        _late_receiver(trace, matched),
        _collectives(trace),
        (signals.second, signals.first, _until(trace, signals.second, trace["begin"][signals.first])),
    ]
    state = np.concatenate([np.full(len(part[0]), number, np.int8) for number, part in enumerate(parts)])
    event, culprit, lost = (
        np.concatenate([np.asarray(part[i], np.int64) for part in parts]) for i in range(3)
    )
    some = lost > 0
    return Waits(state[some], event[some], culprit[some], lost[some])


def _until(trace: Trace, event: NDArray[Any], then: NDArray[Any]) -> NDArray[Any]:
    """How much of the events lay before a time."""
    return np.asarray(np.clip(then - trace["begin"][event], 0, trace["duration"][event]))


def _late_sender(trace: Trace, matched: Pairs) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    waiting = waiting_call(trace, matched.second)
    known = waiting >= 0
    event, culprit = waiting[known], matched.first[known]
    return _largest(event, culprit, _until(trace, event, trace["begin"][culprit]))


def _late_receiver(trace: Trace, matched: Pairs) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    event = matched.first.copy()
    sent = of_kind(trace, (Kind.SENT,))
    # A send that was only started lost its time in the call that waited for it.
    thread, begin = trace["thread"], trace["begin"]
    started = np.flatnonzero(trace["kind"][event] == Kind.ISEND)
    if len(started) and len(sent):
        far = int(begin.max()) + 1
        keys = thread[sent].astype(np.int64) * far + begin[sent]
        order = np.argsort(keys, kind="stable")
        at = np.searchsorted(
            keys[order], thread[event[started]].astype(np.int64) * far + begin[event[started]]
        )
        at = np.minimum(at, len(order) - 1)
        found = keys[order][at] == thread[event[started]].astype(np.int64) * far + begin[event[started]]
        event[started[found]] = sent[order][at[found]]
    waiting = waiting_call(trace, event)
    # Both halves of a MPI_Sendrecv last as long as the call: what it lost is its receive's.
    exchange = np.array([name.startswith("MPI_Sendrecv") for name in trace.names])[trace["name"][event]]
    known = (waiting >= 0) & ~exchange
    event, culprit = waiting[known], matched.second[known]
    end = begin[event] + trace["duration"][event]
    needed = end >= begin[culprit]
    lost = np.where(needed, _until(trace, event, begin[culprit]), 0)
    return _largest(event, culprit, lost)


def waiting_call(trace: Trace, event: NDArray[Any]) -> NDArray[Any]:
    """The call that an event's rank was in while it waited: itself, or of a request the call that found it
    complete, which ended when the request did; -1 where there is none.
    """
    result = event.copy()
    requests = np.isin(trace["kind"][event], (Kind.RECEIVED, Kind.SENT))
    result[trace["kind"][event] == Kind.ISEND] = -1  # it did not wait, and nobody completed it
    waits = of_kind(trace, (Kind.WAIT,))
    if not requests.any():
        return result
    result[requests] = -1
    if not len(waits):
        return result
    end = trace["begin"] + trace["duration"]
    far = int(end.max()) + 10
    keys = trace["thread"][waits].astype(np.int64) * far + end[waits]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    wanted = trace["thread"][event[requests]].astype(np.int64) * far + end[event[requests]]
    at = np.minimum(np.searchsorted(keys, wanted - 2), len(keys) - 1)  # times are rounded
    found = np.abs(keys[at] - wanted) <= 2
    result[np.flatnonzero(requests)[found]] = waits[order][at[found]]
    return result


def _largest(
    event: NDArray[Any], culprit: NDArray[Any], lost: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Of what one call waited for, the last to come is what it waited for."""
    order = np.lexsort((-lost, event))
    _, first = np.unique(event[order], return_index=True)
    kept = order[first]
    return event[kept], culprit[kept], lost[kept]


def _collectives(trace: Trace) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    event = of_kind(trace, (Kind.COLLECTIVE,))
    rank, begin, where = trace.rank[event], trace["begin"][event], trace["where"][event]
    if not len(event):
        return event, event, event
    # The k-th collective of a rank in a communicator is the k-th of the others.
    order = np.lexsort((begin, rank, where))
    event, rank, begin, where = event[order], rank[order].astype(np.int64), begin[order], where[order]
    own = where.astype(np.int64) << 32 | rank
    place = np.arange(len(own)) - np.searchsorted(own, own)
    _, instance = np.unique(where.astype(np.int64) << 40 | place, return_inverse=True)
    by_time = np.lexsort((begin, instance))
    last = by_time[np.append(np.flatnonzero(np.diff(instance[by_time])), len(by_time) - 1)]
    latest = last[instance]
    is_root = trace["peer"][event] == rank
    roots = np.full(instance.max() + 1, -1)
    roots[instance[is_root]] = np.flatnonzero(is_root)
    names = np.array([_needs(name) for name in trace.names], np.int8)[trace["name"][event]]
    # Those who receive from the root wait for it alone, and the root waits for all.
    culprit = np.where((names == 1) & (roots[instance] >= 0), roots[instance], latest)
    lost = _until(trace, event, begin[culprit])
    lost[(names == 2) & ~is_root] = 0
    return event, event[culprit], lost


def _needs(name: str) -> int:
    """0: all need all; 1: all need the root; 2: the root needs all."""
    short = name.removeprefix("MPI_").removeprefix("I").lower()
    if short.startswith(("bcast", "scatter")):
        return 1
    return 2 if short in ("reduce", "gather", "gatherv") else 0
