"""Counts what a run had on nodes that Slurm took from it while it ran (`scontrol update NumNodes=…`).

Slurm's record of the run has only the remaining nodes; the agents know how long the run had the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_jobs.hosts import expand_hosts
from peerway_jobs.measured import Measured


@dataclass
class Former:
    """Sums over the nodes that were taken: their cores, GPUs and memory, and these times the seconds held."""

    nodes: int = 0
    cores: float = 0
    gpus: int = 0
    memory: float = 0
    node_seconds: float = 0
    core_seconds: float = 0
    gpu_seconds: float = 0


def former_part(measured: Measured) -> Former:
    """The sums of a run. Cores and memory that no agent reported are assumed as on its other nodes."""
    run, former = measured.run, Former()
    if not run.former_nodes:
        return former
    taken = expand_hosts(run.former_nodes) - expand_hosts(run.node_list)
    remaining = max(run.nodes, 1)
    for node in taken:
        parts = [part for part in measured.intervals if part["step"] is None and part["node"] == node]
        if not parts:
            continue
        cores = max(part["cpus"] or run.cores / remaining for part in parts)
        gpus = max(len(part["gpus"]) for part in parts)
        former.nodes += 1
        former.cores += cores
        former.gpus += gpus
        former.memory += max(part["memory"] or run.memory / remaining for part in parts)
        seconds = sum(min(part["end"] / 1000, measured.now) - part["start"] / 1000 for part in parts)
        former.node_seconds += seconds
        former.core_seconds += cores * seconds
        former.gpu_seconds += gpus * seconds
    return former
