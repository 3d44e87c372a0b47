"""The nodes that measure together: one alone, or a team of ranks, one on each node."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from peerway.team import Team


class NodeGroup(Protocol):
    """What the nodes agree by."""

    rank: int
    size: int

    def barrier(self) -> None:
        """Until all nodes are here."""

    def all_gather(self, mine: str) -> list[str]:
        """What each node has."""

    def from_first_node(self, mine: str) -> str:
        """What the first node has."""

    def first_problem(self, mine: str) -> str:
        """The first text that is not empty; "" where all are."""


def by_node(group: NodeGroup, mine: Sequence[str]) -> list[str]:
    """The texts of all nodes, each once, in front of it the nodes that have it unless all have."""
    answers = [json.loads(text) for text in group.all_gather(json.dumps([socket.gethostname(), list(mine)]))]
    everywhere = {host for host, _ in answers}
    hosts: dict[str, set[str]] = {}
    for host, texts in answers:
        for text in texts:
            hosts.setdefault(text, set()).add(host)
    return [t if of == everywhere else f"{', '.join(sorted(of))}: {t}" for t, of in hosts.items()]


class SingleNode:
    """One node."""

    rank, size = 0, 1

    def barrier(self) -> None:
        """Nobody else is there."""

    def all_gather(self, mine: str) -> list[str]:
        """Its own."""
        return [mine]

    def from_first_node(self, mine: str) -> str:
        """Its own."""
        return mine

    def first_problem(self, mine: str) -> str:
        """Its own."""
        return mine


class TeamOfNodes:
    """A team of ranks, one on each node."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.rank, self.size = team.rank, team.size

    def barrier(self) -> None:
        """Until all nodes are here."""
        self._team.barrier()

    def all_gather(self, mine: str) -> list[str]:
        """What each node has."""
        return [text.decode() for text in self._team.all_gather(mine.encode())]

    def from_first_node(self, mine: str) -> str:
        """What the first node has."""
        return self.all_gather(mine)[0]

    def first_problem(self, mine: str) -> str:
        """The first text that is not empty; "" where all are."""
        return next(filter(None, self.all_gather(mine)), "")
