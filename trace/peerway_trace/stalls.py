"""Finds time lost to what works for a rank in the background: proxies, and the bounce buffers of staged
messages.

    proxy stall            from when a proxy saw that a plan was triggered until it began to work for the plan
    staging back-pressure  between two fills of bounce buffers in one call, if that took longer than the fill
                           before: the receiver had not emptied a buffer yet
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.messages import of_kind
from peerway_trace.rings import Kind

if TYPE_CHECKING:
    from peerway_trace.lanes import Lanes
    from peerway_trace.store import Trace

Part = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def of_proxies(trace: Trace) -> Part:
    """The start that a proxy served, the first work that it did for it, and ns. Any thread of a rank may be
    its proxy.
    """
    event = of_kind(trace, (Kind.PROXY,))
    work = of_kind(trace, (Kind.PUT, Kind.NOTIFY, Kind.NIC))
    if not len(event) or not len(work):
        none = np.empty(0, np.int64)
        return none, none, none
    begin, end = trace["begin"][event], trace["begin"][event] + trace["duration"][event]
    rank, own = (trace.rank[which].astype(np.int64) + 1 for which in (event, work))
    far = int(max(end.max(), trace["begin"][work].max())) + 1
    keys = own * far + trace["begin"][work]
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], rank * far + begin)
    first = work[order[np.minimum(at, len(order) - 1)]]
    inside = (at < len(order)) & (trace.rank[first] + 1 == rank) & (trace["begin"][first] <= end)
    return event[inside], first[inside], (trace["begin"][first] - begin)[inside]


def of_staging(trace: Trace, outer: Lanes) -> Part:
    """The call that filled bounce buffers, the drain that emptied the buffer that it waited for, and ns."""
    staged = of_kind(trace, (Kind.STAGED,))
    is_fill = np.array([name == "fill" for name in trace.names])[trace["where"][staged]]
    fill, drain = staged[is_fill], staged[~is_fill]
    step = outer.step[fill]
    order = np.lexsort((trace["begin"][fill], step))
    fill, step = fill[order], step[order]
    begin, duration = trace["begin"][fill], trace["duration"][fill]
    pause = begin[1:] - begin[:-1] - duration[:-1]
    long = np.flatnonzero((step[1:] == step[:-1]) & (step[1:] >= 0) & (pause > duration[:-1]))
    if not len(long):
        none = np.empty(0, np.int64)
        return none, none, none
    keys, groups = np.unique(step[1:][long], return_inverse=True)
    lost = np.bincount(groups, pause[long]).astype(np.int64)
    longest = long[np.lexsort((-pause[long], groups))][np.searchsorted(np.sort(groups), np.arange(len(keys)))]
    event = outer.event[keys]
    culprit = event.copy()
    if len(drain):
        # The last drain of the receiver that had begun when the fill went on.
        far = int(max(trace["begin"][drain].max(), begin.max())) + 1
        of = trace.rank[drain].astype(np.int64) * far + trace["begin"][drain]
        in_time = np.argsort(of, kind="stable")
        peer = trace["peer"][fill[longest]].astype(np.int64)
        at = np.searchsorted(of[in_time], peer * far + begin[longest + 1], "right") - 1
        result = at >= 0
        result[result] = trace.rank[drain[in_time[at[result]]]] == peer[result]
        culprit[result] = drain[in_time[at[result]]]
    return event, culprit, lost
