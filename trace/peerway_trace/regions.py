"""Finds the region of the program that contains an event."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.rings import Kind
from peerway_trace.store import Trace


class Regions:
    """The regions of all threads. Regions that a program and a library recorded apply to all events of their
    operating-system thread.
    """

    def __init__(self, trace: Trace) -> None:
        self.system = system_threads(trace)
        regions = np.flatnonzero((trace["kind"] == Kind.REGION) & (trace["duration"] > 0))
        self._far = 0
        if not len(regions):
            return
        own = self.system[trace["thread"][regions]]
        begin = trace["begin"][regions]
        end = begin + trace["duration"][regions]
        # Boundaries in order. At the same time, ends come before beginnings, and outer regions begin before
        # inner ones.
        times = np.concatenate([begin, end])
        which = np.concatenate([np.arange(len(regions)), np.arange(len(regions))])
        begins = np.concatenate([np.ones(len(regions), bool), np.zeros(len(regions), bool)])
        tie = np.concatenate([-end, -begin])
        of = np.concatenate([own, own])
        order = np.lexsort((tie, begins, times, of))
        self._far = int(times.max()) + 1
        self._thread, self._keys = of[order], of[order] * self._far + times[order]
        names = trace["name"][regions].astype(np.int64)
        self._inside = _innermost(names, which[order], self._thread, begins[order])

    def at(self, thread: NDArray[Any], time: NDArray[Any]) -> NDArray[Any]:
        """The name of the innermost region around each moment of a thread, as an index into the names; 0:
        none.
        """
        result = np.zeros(len(time), np.int64)
        if not self._far:
            return result
        own = self.system[thread]
        matches = np.searchsorted(self._keys, own * self._far + np.minimum(time, self._far - 1), "right") - 1
        good = matches >= 0
        good[good] = self._thread[matches[good]] == own[good]
        result[good] = self._inside[matches[good]]
        return result


def system_threads(trace: Trace) -> NDArray[Any]:
    """A number for each entry of the trace's threads; several recorders may have seen the same thread."""
    number: dict[tuple[str, int, int], int] = {}
    return np.array(
        [number.setdefault((thread.host, thread.pid, thread.tid), len(number)) for thread in trace.threads]
        or [0],
        np.int64,
    )


def _innermost(
    names: NDArray[Any], which: NDArray[Any], of: NDArray[Any], begins: NDArray[Any]
) -> NDArray[Any]:
    """The innermost open region after each boundary. Without nesting, it is the region that the boundary
    opened.
    """
    alternate = len(begins) and begins[::2].all() and not begins[1::2].any()
    if alternate and np.array_equal(which[::2], which[1::2]):
        return np.where(begins, names[which], 0)
    inside = np.zeros(len(which), np.int64)
    stack: list[int] = []
    last = -1
    for place, (at, thread, opens) in enumerate(
        zip(which.tolist(), of.tolist(), begins.tolist(), strict=True)
    ):
        if thread != last:
            stack, last = [], thread
        if opens:
            stack.append(at)
        elif at in stack[-2:]:
            stack.remove(at)
        inside[place] = names[stack[-1]] if stack else 0
    return inside


def enclosing(trace: Trace, events: NDArray[Any], regions: Regions | None = None) -> NDArray[Any]:
    """The name of the innermost region around the beginning of each event."""
    return (regions or Regions(trace)).at(trace["thread"][events], trace["begin"][events])


def places(trace: Trace, events: NDArray[Any], regions: Regions | None = None) -> NDArray[Any]:
    """The call sites as indices into the names; if a call has none, the region around it."""
    known = np.array([name != "" for name in trace.names])
    site = trace["site"][events].astype(np.int64)
    site[~known[site]] = 0
    missing = np.flatnonzero(site == 0)
    if len(missing):
        site[missing] = enclosing(trace, events[missing], regions)
    return np.asarray(site)


def call_text(trace: Trace, name: int, place: int) -> str:
    """An operation and its call site, as a sentence says it."""
    operation = trace.names[name] or "an operation"
    return f"{operation} at {trace.names[place]}" if place > 0 and trace.names[place] else operation
