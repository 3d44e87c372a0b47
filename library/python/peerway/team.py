"""Teams: the processes that communicate."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from peerway import _core
from peerway._arguments.validation import number, of_kind, seconds


class Closing:
    """An object that is closed at the end of a `with` statement."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Team(Closing):
    """The processes that communicate: their ranks, and an out-of-band channel for a few bytes."""

    def __init__(self, core: _core.Team) -> None:
        self._core = core

    @classmethod
    def from_launcher(cls) -> Self:
        """The team that `peerway run`, mpirun or srun started this process in; a team of one if none did."""
        return cls(_core.Team.from_launcher())

    @classmethod
    def create(cls, rank: int, size: int, broadcast: Callable[[memoryview], None]) -> Self:
        """A team of `size` processes over any means that can broadcast. Collective.

        `broadcast(data)` copies what rank 0 has in the writable memoryview `data` into `data` at every other
        rank.
        """
        return cls(_core.Team.create(rank, size, broadcast))

    @classmethod
    def from_mpi(cls, comm: Any) -> Self:
        """The team of an mpi4py communicator. Collective over it."""

        def broadcast(data: memoryview) -> None:
            data[:] = comm.bcast(bytes(data), root=0)

        return cls.create(comm.Get_rank(), comm.Get_size(), broadcast)

    @property
    def rank(self) -> int:
        """This process's number, from 0."""
        return self._core.rank

    @property
    def size(self) -> int:
        """The number of processes."""
        return self._core.size

    def all_gather(self, mine: bytes, timeout: float | None = None) -> list[bytes]:
        """Collective. Returns what every rank passed, in rank order; lengths may differ. Raises Timeout after
        `timeout` seconds (None: no limit), or PeerLost. After a Timeout the same call, repeated, waits for
        the same collective.
        """
        return self._core.all_gather(
            of_kind("all_gather: `mine`", mine, bytes, "give bytes, such as region.key()."), seconds(timeout)
        )

    def barrier(self, timeout: float | None = None) -> None:
        """Collective. Returns once every rank has called it. Raises Timeout after `timeout` seconds (None: no
        limit), or PeerLost. After a Timeout the same call, repeated, waits for the same collective.
        """
        self._core.barrier(seconds(timeout))

    def lost(self, rank: int) -> bool:
        """Whether the rank is known to have died or left. Raises OutOfRange if the team has no such rank."""
        return self._core.lost(number("lost: `rank`", rank))

    def close(self) -> None:
        """Leaves the team. If contexts of it are still open, the rank leaves when the last of them is closed.
        Closing twice does nothing.
        """
        self._core.close()

    def __repr__(self) -> str:
        return (
            "<peerway.Team, closed>"
            if self._core.closed
            else f"<peerway.Team, rank {self.rank} of {self.size}>"
        )
