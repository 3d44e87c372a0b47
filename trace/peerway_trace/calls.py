"""Finds the call in which a rank waited for an event: the event itself, or the call that completed its
request.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.messages import of_kind
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

REQUESTS = (Kind.RECEIVED, Kind.SENT, Kind.COLLECTIVE_DONE)


def completed(trace: Trace, sent: NDArray[Any]) -> NDArray[Any]:
    """For a send that was only started, the event of its request; for any other send, the send itself."""
    result = sent.copy()
    requests = of_kind(trace, (Kind.SENT,))
    started = np.flatnonzero(trace["kind"][sent] == Kind.ISEND)
    if not len(started) or not len(requests):
        return result
    far = int(trace["begin"].max()) + 1
    keys, wanted = (
        trace["thread"][which].astype(np.int64) * far + trace["begin"][which]
        for which in (requests, sent[started])
    )
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    matches = keys[order][at] == wanted
    result[started[matches]] = requests[order][at[matches]]
    return result


def waiting_call(trace: Trace, event: NDArray[Any]) -> NDArray[Any]:
    """For each event, the call in which its rank waited; -1 if there is none.

    For most events it is the event itself. For a request it is the call that found the request complete,
    which ended when the request did. For a message that was probed it is the probe, which posted its receive.
    """
    result = event.copy()
    requests = np.isin(trace["kind"][event], REQUESTS)
    result[trace["kind"][event] == Kind.ISEND] = -1  # it did not wait, and no call completed it
    waits = of_kind(trace, (Kind.WAIT,))
    if not requests.any():
        return result
    result[requests] = -1
    if not len(waits):
        return result
    end = trace["begin"] + trace["duration"]
    far = int(end.max()) + 10
    lane = trace["thread"][waits].astype(np.int64) * far
    own = trace["thread"][event[requests]].astype(np.int64) * far
    ended = _nearest(lane + end[waits], own + end[event[requests]], 2)  # allows for rounded times
    probed = _nearest(lane + trace["begin"][waits], own + trace["begin"][event[requests]], 0)
    probed[trace["kind"][event[requests]] != Kind.RECEIVED] = -1
    which = np.where(probed >= 0, probed, ended)
    result[requests] = np.where(which >= 0, waits[which], -1)
    return result


def _nearest(keys: NDArray[Any], wanted: NDArray[Any], most: int) -> NDArray[Any]:
    """For each wanted value, the index of the nearest key within `most`; -1 if there is none."""
    order = np.argsort(keys, kind="stable")
    at = np.minimum(np.searchsorted(keys[order], wanted - most), len(keys) - 1)
    return np.where(np.abs(keys[order][at] - wanted) <= most, order[at], -1)
