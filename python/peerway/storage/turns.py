"""The nodes that measure together: one alone, or a team of ranks, one on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from peerway.team import Team


class Turns(Protocol):
    """What the nodes agree by."""

    rank: int
    size: int

    def wait(self) -> None:
        """Until all nodes are here."""

    def from_first(self, mine: str) -> str:
        """What the first node has."""

    def worst(self, mine: str) -> str:
        """The first text that is not empty; "" where all are."""


class Alone:
    """One node."""

    rank, size = 0, 1

    def wait(self) -> None:
        """Nobody else is there."""

    def from_first(self, mine: str) -> str:
        """Its own."""
        return mine

    def worst(self, mine: str) -> str:
        """Its own."""
        return mine


class Several:
    """A team of ranks, one on each node."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.rank, self.size = team.rank, team.size

    def wait(self) -> None:
        """Until all nodes are here."""
        self._team.barrier()

    def from_first(self, mine: str) -> str:
        """What the first node has."""
        return self._team.all_gather(mine.encode())[0].decode()

    def worst(self, mine: str) -> str:
        """The first text that is not empty; "" where all are."""
        return next((text.decode() for text in self._team.all_gather(mine.encode()) if text), "")
