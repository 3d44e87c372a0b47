"""GPUs that had nothing to do between their first and their last work: for how long, and before which
work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.lanes import OF_GPU, Cover
from peerway_trace.store import Trace
from peerway_trace.tables import MOST_ROWS, Analysis, Finding, Table, count_text, ns_text, percent

IDLE = 0.05  # a smaller share of the time is no finding


@dataclass(frozen=True)
class Idle:
    """The gaps of one GPU, in which no stream of a recording process had work."""

    gpu: str
    busy: int  # ns
    begin: NDArray[Any]  # ns, for each gap
    length: NDArray[Any]  # ns
    before: NDArray[Any]  # the event that ended it
    rank: int

    @property
    def total(self) -> int:
        """The sum of all gaps, in ns."""
        return int(self.length.sum())

    @property
    def share(self) -> float:
        """The share of the time from the first to the last work."""
        return self.total / max(1, self.busy + self.total)


def find(trace: Trace) -> list[Idle]:
    """The gaps of each GPU that did any work."""
    own = np.flatnonzero(np.isin(trace["kind"], OF_GPU))
    hosts = {thread.host for thread in trace.threads}
    names = [
        (f"{recorded.host}:" if len(hosts) > 1 else "") + recorded.thread.partition("/")[0]
        if recorded.source == "gpu"
        else ""
        for recorded in trace.threads
    ]
    of_event = np.array(names, dtype=object)[trace["thread"][own]] if len(own) else np.empty(0, object)
    result = []
    for gpu in sorted(set(of_event) - {""}):
        events = own[of_event == gpu]
        events = events[np.argsort(trace["begin"][events], kind="stable")]
        work = Cover(trace["begin"][events], trace["begin"][events] + trace["duration"][events])
        next_one = events[np.searchsorted(trace["begin"][events], work.begin[1:])]
        gaps = work.begin[1:] - work.end[:-1]
        result.append(Idle(gpu, work.total, work.end[:-1], gaps, next_one, int(trace.rank[events[0]])))
    return result


def tell(trace: Trace, result: Analysis) -> None:
    """A table of all GPUs, and a finding for each that was idle for long."""
    gpus = find(trace)
    if not gpus:
        return
    rows = [
        [entry.gpu, ns_text(entry.busy), ns_text(entry.total), percent(entry.share), f"{len(entry.length):,}",
         ns_text(float(entry.length.max(initial=0)))]
        for entry in gpus[:MOST_ROWS]
    ]  # fmt: skip
    note = "Idle: no kernel and no copy of a traced process, between the first work and the last."
    columns = ["GPU", "busy", "idle", "share", "gaps", "longest"]
    result.tables.append(Table("GPUs", columns, rows, note))
    for entry in gpus:
        if entry.share >= IDLE:
            result.findings.append(_finding(trace, entry))


def _finding(trace: Trace, idle: Idle) -> Finding:
    longest = int(idle.length.argmax())
    names, groups = np.unique(trace["name"][idle.before], return_inverse=True)
    by_name = np.bincount(groups, idle.length)
    most = int(by_name.argmax())
    begin, length = int(idle.begin[longest]), int(idle.length[longest])
    mostly, then = _name(trace, int(names[most])), _name(trace, int(trace["name"][idle.before[longest]]))
    return Finding(
        f"{idle.gpu} had nothing to do for {ns_text(idle.total)}, {percent(idle.share)} of the time from its "
        f"first work to its last, in {count_text(len(idle.length), 'gap', 'gaps')}.",
        f"{ns_text(float(by_name[most]))} of it was before {mostly}; the longest gap was {ns_text(length)}, "
        f"at {ns_text(begin)}, before {then}.",
        "See what the host did then: did it wait before it launched more, allocate pinned memory, or load a "
        "kernel at its first use (CUDA_MODULE_LOADING=EAGER loads them at the start)?",
        (begin, begin + length),
        idle.rank if idle.rank >= 0 else None,
    )


def _name(trace: Trace, number: int) -> str:
    name = trace.names[number] or "unnamed work"
    return name if len(name) <= 60 else name[:59] + "…"
