"""Brings the times of several hosts to one clock, by the messages themselves: none arrives before it was
sent.

The quickest message from one host to another takes its latency plus the difference of the two clocks. The
quickest one back takes its latency minus that difference. If both have the same latency, half of what
separates the two is the difference of the clocks.

It is determined for stretches of the trace, because clocks run at different rates, and a line is fitted
through the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.messages import Pairs, match, match_signals
from peerway_trace.store import Trace

STRETCHES = 8


@dataclass(frozen=True)
class Correction:
    """What to subtract from a host's times: `offset` ns at the beginning of the trace, plus `drift` ns for
    each ns since.
    """

    host: str
    offset: float
    drift: float
    messages: int  # the number of messages used; 0: there were none both ways, and the times are unchanged

    def of(self, times: NDArray[Any]) -> NDArray[Any]:
        """How much to subtract from these times."""
        rounded: NDArray[Any] = np.rint(self.offset + self.drift * (times - self.offset)).astype(np.int64)
        return rounded


def corrections(trace: Trace) -> list[Correction]:
    """The corrections of all hosts. The clock of the lowest rank's host needs none: all others are aligned to
    it.
    """
    names = list(dict.fromkeys(thread.host for thread in trace.threads))
    if len(names) < 2:
        return []
    host = np.array([names.index(thread.host) for thread in trace.threads])[trace["thread"]]
    arrows = _between(trace, host, [match(trace), match_signals(trace)])
    known = {0: Correction(names[0], 0.0, 0.0, 0)}
    # A host without messages to the first host is aligned through others.
    for _ in names:
        for there in range(len(names)):
            for here in [] if there in known else list(known):
                if line := _line(arrows, here, there):
                    offset, drift, count = line
                    known[there] = Correction(
                        names[there], known[here].offset + offset, known[here].drift + drift, count
                    )
                    break
    return [known.get(i, Correction(name, 0.0, 0.0, 0)) for i, name in enumerate(names)][1:]


def correct(trace: Trace, corrections: Sequence[Correction]) -> None:
    """Bring the times of a trace to one clock. The earliest time becomes 0."""
    by_host = {correction.host: correction for correction in corrections}
    for place, operation in enumerate(trace.open):
        if (host := trace.threads[operation.thread].host) in by_host:
            begin = operation.begin - int(by_host[host].of(np.array(operation.begin)))
            trace.open[place] = replace(operation, begin=begin)
    for number, thread in enumerate(trace.threads):
        if thread.host in by_host:
            own = trace["thread"] == number
            trace.columns["begin"][own] -= by_host[thread.host].of(trace["begin"][own])
    if len(trace):
        first = int(trace["begin"].min())
        trace.columns["begin"] -= first
        trace.open[:] = [replace(operation, begin=operation.begin - first) for operation in trace.open]


@dataclass(frozen=True)
class _Arrows:
    """Messages from one host to another: when each began on the first host, and how much later it ended on
    the second.
    """

    source: NDArray[Any]
    target: NDArray[Any]
    begin: NDArray[Any]
    took: NDArray[Any]


def _between(trace: Trace, host: NDArray[Any], pairs: Sequence[Pairs]) -> _Arrows:
    first = np.concatenate([pair.first for pair in pairs])
    second = np.concatenate([pair.second for pair in pairs])
    begin = trace["begin"][first]
    end = trace["begin"][second] + trace["duration"][second]
    apart = host[first] != host[second]
    return _Arrows(host[first][apart], host[second][apart], begin[apart], (end - begin)[apart])


def _line(arrows: _Arrows, here: int, there: int) -> tuple[float, float, int] | None:
    """How far `there` is ahead of `here` at time 0, and how this grows."""
    to = (arrows.source == here) & (arrows.target == there)
    back = (arrows.source == there) & (arrows.target == here)
    if not (to.any() and back.any()):
        return None
    times = arrows.begin[to]
    edges = np.linspace(times.min(), times.max() + 1, STRETCHES + 1)
    ahead = float(np.median(arrows.took[to]) - np.median(arrows.took[back])) / 2
    count = int(to.sum() + back.sum())
    points = []  # time, difference, and the possible error of the difference
    for low, high in pairwise(edges.tolist()):
        forth = arrows.took[to & (arrows.begin >= low) & (arrows.begin < high)]
        home = arrows.took[back & (arrows.begin - ahead >= low) & (arrows.begin - ahead < high)]
        if len(forth) and len(home):
            there_and_back = float(forth.min() + home.min())
            points.append(((low + high) / 2, float(forth.min() - home.min()) / 2, there_and_back / 2))
    if not points:
        return float(arrows.took[to].min() - arrows.took[back].min()) / 2, 0.0, count
    at, difference, wrong = np.array(points).T
    best = float(difference[wrong.argmin()])
    quick = wrong <= 3 * wrong.min()
    # If the differences agree within their errors, the difference does not grow.
    if quick.sum() < 3 or np.all(np.abs(difference - best)[quick] <= wrong[quick]):
        return best, 0.0, count
    drift, offset = np.polyfit(at[quick], difference[quick], 1)
    return float(offset), float(drift), count
