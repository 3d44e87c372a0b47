"""The interface of what starts keepers. There are two implementations: hosts.py starts processes of this
host, slurm.py submits jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Protocol

from peerway_measure.campaign.plan import Plan, Task

GRACE_S = 30  # for a node to say that its time was over, before its keeper stops waiting


class Unusable(Exception):
    """Nothing can be started here; the message says why, and what to do."""


class Starter(Protocol):
    """Starts keepers, and knows which of them run."""

    def start(self, task: Task) -> None:
        """Start a keeper. Raises OSError."""

    def running(self, names: Set[str]) -> set[str]:
        """Which of these have a keeper, or will get one."""

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        """Which of these it has not started after all, so that they go back to the queue. `others` gives the
        nodes that might take their place.
        """

    def away(self) -> Mapping[str, str]:
        """Nodes on which nothing can be started now, and why."""

    def occupied(self) -> Set[str]:
        """Nodes on which a measurement would have to wait for others' work."""

    def lost(self, name: str) -> str:
        """Why a keeper ended without a report, if it is known."""

    def wait(self) -> None:
        """Wait until a keeper may have ended: as soon as possible if that can be noticed, otherwise until it
        may be queried again.
        """

    def share_busy(self) -> float | None:
        """The share of the cluster's CPUs that is busy; None if it is not known."""


def keeper_request(plan: Plan, task: Task, argv: list[str]) -> dict[str, Any]:
    """What a keeper needs to know about its measurement."""
    return {
        "id": task.id,
        "nodes": task.nodes,
        "type": task.type,
        "round": task.round,
        "campaign": plan.name,
        "factors": dict(task.test.factors),
        "argv": argv,
        "limit_s": plan.time_s + (0 if argv[0] == "sh" else GRACE_S),
    }
