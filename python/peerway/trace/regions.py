"""Which region of the program an event lies in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.trace.rings import Kind
from peerway.trace.store import Trace


def enclosing(trace: Trace, events: NDArray[Any]) -> NDArray[Any]:
    """The name of the innermost region around each event, as an index into the names; 0: none. Regions that
    a program and a library recorded count for all events of their thread of the operating system.
    """
    result = np.zeros(len(events), np.int64)
    number: dict[tuple[str, int, int], int] = {}
    threads = [number.setdefault((one.host, one.pid, one.tid), len(number)) for one in trace.threads]
    system = np.array(threads or [0], np.int64)
    regions = np.flatnonzero((trace["kind"] == Kind.REGION) & (trace["duration"] > 0))
    if not len(regions):
        return result
    own = system[trace["thread"][regions]]
    begin = trace["begin"][regions]
    end = begin + trace["duration"][regions]
    # Boundaries in order; at one time what ends comes before what begins, and the outer begins before the
    # inner.
    times = np.concatenate([begin, end])
    which = np.concatenate([np.arange(len(regions)), np.arange(len(regions))])
    begins = np.concatenate([np.ones(len(regions), bool), np.zeros(len(regions), bool)])
    tie = np.concatenate([-end, -begin])
    of = np.concatenate([own, own])
    order = np.lexsort((tie, begins, times, of))
    names = trace["name"][regions].astype(np.int64)
    inside = np.zeros(len(order), np.int64)
    stack: list[int] = []
    last = -1
    for place, (at, thread, opens) in enumerate(
        zip(which[order].tolist(), of[order].tolist(), begins[order].tolist(), strict=True)
    ):
        if thread != last:
            stack, last = [], thread
        if opens:
            stack.append(at)
        elif at in stack[-2:]:
            stack.remove(at)
        inside[place] = names[stack[-1]] if stack else 0
    far = int(times.max()) + 1
    keys = of[order] * far + times[order]
    wanted = system[trace["thread"][events]] * far + trace["begin"][events]
    found = np.searchsorted(keys, wanted, "right") - 1
    good = found >= 0
    good[good] = of[order][found[good]] == system[trace["thread"][events[good]]]
    result[good] = inside[found[good]]
    return result
