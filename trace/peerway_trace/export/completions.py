"""For puts and gets that go on after their call, find the call that found them complete at their own rank."""

from __future__ import annotations

import numpy as np

from peerway_trace.rings import Kind
from peerway_trace.store import BadTrace, Trace

NO_PATH = ("none", "failed")  # nothing was to be moved, or could be
OF_PEERWAY = (Kind.PUT, Kind.GET)
OF_MPI = (Kind.RMA_PUT, Kind.RMA_GET)
WITH = {Kind.PUT: Kind.FLUSH, Kind.GET: Kind.FLUSH, Kind.RMA_PUT: Kind.RMA_SYNC, Kind.RMA_GET: Kind.RMA_SYNC}


def completions(trace: Trace) -> dict[int, list[int]]:
    """By the flush, or the synchronisation of a window, the puts and gets that its thread had started before
    towards that rank. What none of them completed is not in here. Raises BadTrace.
    """
    kind, peer, where = trace["kind"], trace["peer"], trace["where"]
    at_start_paths = trace.about.get("paths_complete_at_start")
    if at_start_paths is None and np.isin(kind, OF_PEERWAY).any():
        raise BadTrace(
            "an older Peerway collected this trace, which does not say which paths complete within the call; "
            "export it by that Peerway, or record it anew"
        )
    # As the recorders said of their paths; of a plan's operations its finish tells.
    over = {*NO_PATH, *(at_start_paths or ())}
    at_start = np.array([name in over or name.startswith("plan") for name in trace.names])
    started = np.isin(kind, list(WITH)) & (np.isin(kind, OF_MPI) | ~at_start[where])
    events = np.flatnonzero(started | np.isin(kind, list(set(WITH.values()))))
    events = events[np.lexsort((trace["begin"][events], trace["thread"][events]))]
    result: dict[int, list[int]] = {}
    under_way: dict[tuple[int, int, int], dict[int, list[int]]] = {}
    for event in events.tolist():
        own, to = int(kind[event]), int(peer[event])
        # A flush is of all paths, and MPI's synchronisation of one window.
        window = int(where[event]) if own in (*OF_MPI, Kind.RMA_SYNC) else -1
        key = (int(trace["thread"][event]), WITH.get(Kind(own), Kind(own)), window)
        started_here = under_way.setdefault(key, {})
        if own in WITH:
            started_here.setdefault(to, []).append(event)
            continue
        ended = [started_here.pop(rank, []) for rank in (list(started_here) if to < 0 else [to])]
        if several := sorted(completion for part in ended for completion in part):
            result[event] = several
    return result
