"""Finds hosts with too few CPUs for their ranks. A rank that waits there for a CPU seems to compute for long
or to come late, so every finding that blames such a rank must say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peerway_trace.store import Trace
from peerway_trace.tables import Analysis, Finding, count_text, percent

NOTICED = 0.25  # a host is busy if programs waited for a CPU during this share of the time


@dataclass(frozen=True)
class BusyHost:
    """A host on which ranks waited for a CPU, or must have waited."""

    host: str
    ranks: frozenset[int]
    cpus: int | None  # the number of CPUs for its ranks, if there are more ranks; else None
    waited: float  # the share of the time


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


def tell(hosts: Sequence[BusyHost], result: Analysis) -> None:
    """A finding for each busy host."""
    for host in hosts:
        if host.cpus is not None:
            cpus = count_text(host.cpus, "CPU", "CPUs")
            text = f"{host.host} ran {len(host.ranks)} ranks on {cpus}, so the ranks took turns."
            todo = (
                f"Start at most {count_text(host.cpus, 'rank', 'ranks')} there, then look for other causes."
            )
        else:
            text = f"In {percent(host.waited)} of the time, programs on {host.host} waited for a CPU."
            todo = "Trace on a host that runs nothing else, with no more threads than CPUs."
        why = "While a rank waited for a CPU, it seems to compute, or to come late, in all that follows."
        result.findings.append(Finding(text, why, todo))


def caution(hosts: Sequence[BusyHost], rank: int) -> str:
    """The words to add to a finding about a rank if its host was busy; otherwise "". They are the same for
    all ranks, and refer to the finding about the host.
    """
    busy = any(rank in host.ranks for host in hosts)
    return "The rank may have waited for a CPU, as its host was busy: see above." if busy else ""
