"""Collectives: which calls of different ranks form one collective, which ranks each call needs, and in which
call its rank waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.calls import waiting_call
from peerway_trace.messages import of_kind
from peerway_trace.rings import Kind
from peerway_trace.store import Trace


@dataclass(frozen=True)
class Collectives:
    """One entry for each call of a collective, by communicator, rank and time."""

    event: NDArray[Any]
    instance: NDArray[Any]  # the number of the collective
    culprit: NDArray[Any]  # the last of the calls that it needs, as an index into the trace's columns
    needs: NDArray[Any]  # 0: all ranks; 1: the root; 2: none, but the root needs all; 3: not known
    is_root: NDArray[Any]
    call: NDArray[Any]  # in which the rank waited: this one, or the one that completed its request; -1: none
    previous: NDArray[Any]  # the rank's previous collective in this communicator, as an entry here; -1: none


def match_collectives(trace: Trace) -> Collectives:
    """All collectives. The k-th call of a rank in a communicator matches the k-th call of the others.

    Collectives of a team are numbered (tag), so that a rank may have begun to record later than others.
    """
    event = of_kind(trace, (Kind.COLLECTIVE,))
    rank, begin, where = trace.rank[event], trace["begin"][event], trace["where"][event]
    if not len(event):
        none = event.astype(np.int64)
        return Collectives(none, none, none, none, none.astype(bool), none, none)
    order = np.lexsort((begin, rank, where))
    event, rank, begin, where = event[order], rank[order].astype(np.int64), begin[order], where[order]
    own = where.astype(np.int64) << 32 | rank
    place = np.arange(len(own)) - np.searchsorted(own, own)
    number = np.where(trace["tag"][event] >= 0, trace["tag"][event], place)
    _, instance = np.unique(where.astype(np.int64) << 40 | number, return_inverse=True)
    by_time = np.lexsort((begin, instance))
    last = by_time[np.append(np.flatnonzero(np.diff(instance[by_time])), len(by_time) - 1)]
    is_root = trace["peer"][event] == rank
    roots = np.full(instance.max() + 1, -1)
    roots[instance[is_root]] = np.flatnonzero(is_root)
    needs = np.array([_needs(name) for name in trace.names], np.int8)[trace["name"][event]]
    # Ranks that receive from the root wait only for the root, and the root of a reduction waits for all.
    culprit = np.where((needs == 1) & (roots[instance] >= 0), roots[instance], last[instance])
    previous = np.where(place > 0, np.arange(len(own)) - 1, -1)
    return Collectives(event, instance, event[culprit], needs, is_root, _calls(trace, event), previous)


def _calls(trace: Trace, event: NDArray[Any]) -> NDArray[Any]:
    """For each collective the call in which its rank waited for the others."""
    started = starts(trace, event)
    result = np.where(started, -1, event)
    done = of_kind(trace, (Kind.COLLECTIVE_DONE,))
    if not len(done):
        return result
    # A start and its request begin at the same time. If several begin at once, the k-th belongs to the k-th.
    first, both = event[started], np.concatenate([event[started], done])
    side = np.repeat((0, 1), (len(first), len(done)))
    keys = (trace["begin"][both], trace["where"][both], trace.rank[both])
    order = np.lexsort((side, *keys))
    fresh = np.any([np.diff(key[order], prepend=-2) != 0 for key in (*keys, side)], axis=0)
    place = np.arange(len(both)) - np.maximum.accumulate(np.where(fresh, np.arange(len(both)), 0))
    order = order[np.lexsort((side[order], place, *(key[order] for key in keys)))]
    pair = np.flatnonzero((side[order[:-1]] == 0) & (side[order[1:]] == 1))
    pair = pair[np.all([key[order[pair]] == key[order[pair + 1]] for key in keys], axis=0)]
    result[np.flatnonzero(started)[order[pair]]] = waiting_call(trace, both[order[pair + 1]])
    return result


def starts(trace: Trace, event: NDArray[Any]) -> NDArray[Any]:
    """Whether calls only start their collective."""
    of_name = np.array([name.startswith(("MPI_I", "start of ")) for name in trace.names])
    return np.asarray(of_name[trace["name"][event]])


def _needs(name: str) -> int:
    """Which ranks a collective makes wait for which: 0: all need all; 1: all need the root; 2: the root needs
    all; 3: each needs some others.
    """
    short = name.removeprefix("start of ").removeprefix("MPI_").removeprefix("I").removesuffix("_c").lower()
    if short.startswith("neighbor"):
        return 3
    if short.startswith(("bcast", "scatter")):
        return 1
    return 2 if short in ("reduce", "gather", "gatherv") else 0
