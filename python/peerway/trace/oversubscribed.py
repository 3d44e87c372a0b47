"""Hosts with more ranks than CPUs. A rank that waits there for a CPU looks like one that computes for long,
or comes late: whatever blames it has to say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peerway.trace.store import Trace
from peerway.trace.tables import Analysis, Finding, count_text


@dataclass(frozen=True)
class Crowded:
    """A host whose ranks took turns."""

    host: str
    ranks: frozenset[int]
    cpus: int  # that its ranks could use

    def __str__(self) -> str:
        return f"{self.host} ran {len(self.ranks)} ranks on {count_text(self.cpus, 'CPU', 'CPUs')}"


def crowded(trace: Trace) -> list[Crowded]:
    """The hosts of a trace that were oversubscribed, of those whose CPUs it knows."""
    known = trace.about.get("cpus", {})
    ranks: dict[str, set[int]] = {}
    for one in trace.threads:
        if one.rank >= 0:
            ranks.setdefault(one.host, set()).add(one.rank)
    return [
        Crowded(host, frozenset(own), known[host])
        for host, own in ranks.items()
        if host in known and len(own) > known[host]
    ]


def tell(found: Sequence[Crowded], result: Analysis) -> None:
    """A finding for each host."""
    for one in found:
        result.findings.append(
            Finding(
                f"{one}, so the ranks took turns.",
                "While a rank waited for a CPU, it seems to compute, or to come late, in all that follows.",
                f"Start at most {count_text(one.cpus, 'rank', 'ranks')} there, then look for other causes.",
            )
        )


def caution(found: Sequence[Crowded], rank: int) -> str:
    """What to do about a rank that is blamed, if its host was oversubscribed; else an empty text."""
    host = next((one for one in found if rank in one.ranks), None)
    return f"Rank {rank} may have waited for a CPU: {host}." if host else ""
