"""The nodes that measure together: a single node, or a team of ranks, one on each node."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from peerway.team import Team


class NodeGroup(Protocol):
    """Collective operations of the nodes."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Wait until all nodes have arrived."""

    def all_gather(self, mine: str) -> list[str]:
        """The text of each node."""

    def from_first_node(self, mine: str) -> str:
        """The text of the first node."""

    def first_problem(self, mine: str) -> str:
        """The first text that is not empty; "" if all are empty."""


def by_node(group: NodeGroup, mine: Sequence[str]) -> list[str]:
    """The distinct texts of all nodes. Each has its nodes in front of it, unless all nodes have the same
    text.
    """
    answers = [json.loads(text) for text in group.all_gather(json.dumps([socket.gethostname(), list(mine)]))]
    everywhere = {host for host, _ in answers}
    hosts: dict[str, set[str]] = {}
    for host, texts in answers:
        for text in texts:
            hosts.setdefault(text, set()).add(host)
    return [t if owners == everywhere else f"{', '.join(sorted(owners))}: {t}" for t, owners in hosts.items()]


class SingleNode:
    """One node."""

    rank, size = 0, 1

    def barrier(self) -> None:
        """Return at once: there is no other node."""

    def all_gather(self, mine: str) -> list[str]:
        """The text of this node."""
        return [mine]

    def from_first_node(self, mine: str) -> str:
        """The text of this node."""
        return mine

    def first_problem(self, mine: str) -> str:
        """The text of this node."""
        return mine


class TeamOfNodes:
    """A team of ranks, one on each node."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.rank, self.size = team.rank, team.size

    def barrier(self) -> None:
        """Wait until all nodes have arrived."""
        self._team.barrier()

    def all_gather(self, mine: str) -> list[str]:
        """The text of each node."""
        return [text.decode() for text in self._team.all_gather(mine.encode())]

    def from_first_node(self, mine: str) -> str:
        """The text of the first node."""
        return self.all_gather(mine)[0]

    def first_problem(self, mine: str) -> str:
        """The first text that is not empty; "" if all are empty."""
        return next(filter(None, self.all_gather(mine)), "")
