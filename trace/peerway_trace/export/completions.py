"""For puts and gets that go on after their call, finds the call at their own rank that completed them."""

from __future__ import annotations

import numpy as np

from peerway_trace.rings import Kind
from peerway_trace.store import BadTrace, Trace

NO_PATH = ("none", "failed")  # nothing was to be moved, or could not be
OF_PEERWAY = (Kind.PUT, Kind.GET)
OF_MPI = (Kind.RMA_PUT, Kind.RMA_GET)
WITH = {Kind.PUT: Kind.FLUSH, Kind.GET: Kind.FLUSH, Kind.RMA_PUT: Kind.RMA_SYNC, Kind.RMA_GET: Kind.RMA_SYNC}


def completions(trace: Trace) -> dict[int, list[int]]:
    """For each completing call, a flush or the synchronisation of a window, the puts and gets that its thread
    had started before towards that rank.

    Operations that no call completed are not in it. Raises BadTrace.
    """
    kind, peer, where = trace["kind"], trace["peer"], trace["where"]
    at_start_paths = trace.about.get("paths_complete_at_start")
    if at_start_paths is None and np.isin(kind, OF_PEERWAY).any():
        raise BadTrace(
            "an older Peerway collected this trace, which does not say which paths complete within the call; "
            "export it by that Peerway, or record it anew"
        )
    # Left out: operations whose path completes them in their call, as the recorders said, and those of plans,
    # which the plan's finish completes.
    over = {*NO_PATH, *(at_start_paths or ())}
    at_start = np.array([name in over or name.startswith("plan") for name in trace.names])
    started = np.isin(kind, list(WITH)) & (np.isin(kind, OF_MPI) | ~at_start[where])
    events = np.flatnonzero(started | np.isin(kind, list(set(WITH.values()))))
    events = events[np.lexsort((trace["begin"][events], trace["thread"][events]))]
    result: dict[int, list[int]] = {}
    under_way: dict[tuple[int, int, int], dict[int, list[int]]] = {}
    for event in events.tolist():
        own, to = int(kind[event]), int(peer[event])
        # A flush completes all paths, MPI's synchronisation one window.
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
