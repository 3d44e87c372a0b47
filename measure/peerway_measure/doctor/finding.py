"""A finding: what a check says about one thing, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_GPU = "no GPU"  # `observed` of every finding that has nothing to judge without one


class Status(StrEnum):
    """How it stands with one thing."""

    OK = "ok"
    OFF = "off"  # this node could have it, but it is not switched on
    WARNING = "warning"  # works worse than it could, or will surprise
    UNKNOWN = "unknown"  # could not be found out
    ABSENT = "absent"  # the hardware or software is not on this node


class Group(StrEnum):
    """The part of the page that a finding belongs to."""

    GPUS = "GPUs"
    BETWEEN = "Between GPUs"
    CPU = "GPU and CPU"
    NETWORK = "GPU and network"
    STORAGE = "GPU and storage"
    HOST = "Host"
    LIBRARIES = "Libraries"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of a check."""

    id: str  # "network.gpudirect_rdma": stable
    group: Group
    title: str
    status: Status
    observed: str
    why: str  # why it matters
    todo: str = ""  # one line; "" only where there is nothing to do


@dataclass(frozen=True)
class Topic:
    """What every finding of one check has in common."""

    id: str
    group: Group
    title: str
    why: str

    def ok(self, observed: str) -> Finding:
        """Make a finding that needs nothing."""
        return self._finding(Status.OK, observed, "")

    def off(self, observed: str, todo: str) -> Finding:
        """Make one of something that could be switched on."""
        return self._finding(Status.OFF, observed, todo)

    def warning(self, observed: str, todo: str) -> Finding:
        """Make one that the user should act on."""
        return self._finding(Status.WARNING, observed, todo)

    def unknown(self, observed: str, todo: str) -> Finding:
        """Make one of something that could not be found out."""
        return self._finding(Status.UNKNOWN, observed, todo)

    def absent(self, observed: str, todo: str = "") -> Finding:
        """Make one of something that is not here."""
        return self._finding(Status.ABSENT, observed, todo)

    def cuda_silent(self) -> Finding:
        """Make the finding that CUDA, which knows, cannot be asked."""
        return self.unknown("CUDA does not say", "fix CUDA first, see GPUs")

    def no_gpu(self) -> Finding:
        """Make the finding that there is no GPU to judge."""
        return self._finding(Status.ABSENT, NO_GPU, "see GPUs")

    def _finding(self, status: Status, observed: str, todo: str) -> Finding:
        return Finding(
            id=self.id,
            group=self.group,
            title=self.title,
            status=status,
            observed=observed,
            why=self.why,
            todo=todo,
        )
