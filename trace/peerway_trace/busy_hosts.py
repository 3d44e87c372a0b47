"""Find hosts with too few CPUs for their ranks. A rank that waits there for a CPU looks as if it computed for
long or came late, so every finding that blames such a rank must say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peerway_trace.store import Trace
from peerway_trace.tables import Analysis, Finding, count_text, percent

NOTICED = 0.25  # of the time, in which programs waited for a CPU


@dataclass(frozen=True)
class BusyHost:
    """A host on which ranks waited for a CPU, or must have."""

    host: str
    ranks: frozenset[int]
    cpus: int | None  # that its ranks could use, if they were more
    waited: float  # of the time


def find(trace: Trace) -> list[BusyHost]:
    """The busy hosts among those whose CPUs the trace knows."""
    known, waits = trace.about.get("cpus", {}), trace.about.get("cpu_waits", {})
    ranks: dict[str, set[int]] = {}
    for thread in trace.threads:
        if thread.rank >= 0:
            ranks.setdefault(thread.host, set()).add(thread.rank)
    result = []
    for host, own in ranks.items():
        cpus, waited = known.get(host, len(own)), waits.get(host, 0.0)
        if len(own) > cpus or waited > NOTICED:
            result.append(BusyHost(host, frozenset(own), cpus if len(own) > cpus else None, waited))
    return result


def tell(findings: Sequence[BusyHost], result: Analysis) -> None:
    """A finding for each busy host."""
    for entry in findings:
        if entry.cpus is not None:
            cpus = count_text(entry.cpus, "CPU", "CPUs")
            text = f"{entry.host} ran {len(entry.ranks)} ranks on {cpus}, so the ranks took turns."
            todo = (
                f"Start at most {count_text(entry.cpus, 'rank', 'ranks')} there, then look for other causes."
            )
        else:
            text = f"In {percent(entry.waited)} of the time, programs on {entry.host} waited for a CPU."
            todo = "Trace on a host that runs nothing else, with no more threads than CPUs."
        why = "While a rank waited for a CPU, it seems to compute, or to come late, in all that follows."
        result.findings.append(Finding(text, why, todo))


def caution(hosts: Sequence[BusyHost], rank: int) -> str:
    """What a finding about a rank must add if its host was busy; otherwise an empty text. It is the same for
    all ranks, and refers to the finding about the host.
    """
    busy = any(rank in host.ranks for host in hosts)
    return "The rank may have waited for a CPU, as its host was busy: see above." if busy else ""
