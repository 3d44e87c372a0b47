"""The interface for starting keepers. hosts.py starts processes of this host, slurm.py submits jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, Protocol

from peerway_measure.campaign.plan import Plan, Task

GRACE_S = 30  # how much longer a keeper waits, so that the node can report that the time was over


class Unusable(Exception):
    """Nothing can be started here; the message says why, and what to do."""


class Starter(Protocol):
    """Starts keepers, and knows which of them are running."""

    def start(self, task: Task) -> None:
        """Start a keeper. Raises OSError."""

    def running(self, names: Set[str]) -> set[str]:
        """Which of these measurements have a keeper or will get one."""

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        """Which of these measurements were not started after all, so that they return to the queue. `others`
        gives the nodes that might be used instead.
        """

    def away(self) -> Mapping[str, str]:
        """The nodes on which nothing can be started now, with the reason."""

    def occupied(self) -> Set[str]:
        """The nodes on which a measurement would have to wait for jobs of others."""

    def lost(self, name: str) -> str:
        """Why a keeper ended without a report, if it is known."""

    def wait(self) -> None:
        """Wait until a keeper may have ended: as soon as possible if its end can be noticed, otherwise for a
        while.
        """

    def share_busy(self) -> float | None:
        """The share of the cluster's CPUs that is busy; None if it is not known."""


def keeper_request(plan: Plan, task: Task, argv: list[str]) -> dict[str, Any]:
    """What a keeper needs to know about its measurement, as JSON data."""
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
