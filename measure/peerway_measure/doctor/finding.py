"""A finding: what a check says about one topic, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

NO_GPU = "no GPU"  # `observed` of a finding that cannot be judged without a GPU
NO_AMD_GPU = "no AMD GPU"


class Status(StrEnum):
    """The state of one topic."""

    OK = "ok"
    OFF = "off"  # this node could have it, but it is not switched on
    WARNING = "warning"  # works worse than it could, or in an unexpected way
    UNKNOWN = "unknown"  # could not be found out
    ABSENT = "absent"  # the hardware or software is not on this node


class Group(StrEnum):
    """The part of the page that a finding belongs to."""

    GPUS = "GPUs"
    AMD = "AMD GPUs"
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
    todo: str = ""  # one line; "" if there is nothing to do


@dataclass(frozen=True)
class Topic:
    """What all findings of one check have in common."""

    id: str
    group: Group
    title: str
    why: str

    def ok(self, observed: str) -> Finding:
        """Make a finding that needs no action."""
        return self._finding(Status.OK, observed, "")

    def off(self, observed: str, todo: str) -> Finding:
        """Make a finding about something that could be switched on."""
        return self._finding(Status.OFF, observed, todo)

    def warning(self, observed: str, todo: str) -> Finding:
        """Make a finding that the user should act on."""
        return self._finding(Status.WARNING, observed, todo)

    def unknown(self, observed: str, todo: str) -> Finding:
        """Make a finding about something that could not be determined."""
        return self._finding(Status.UNKNOWN, observed, todo)

    def absent(self, observed: str, todo: str = "") -> Finding:
        """Make a finding about something that this node does not have."""
        return self._finding(Status.ABSENT, observed, todo)

    def cuda_silent(self) -> Finding:
        """Make the finding that CUDA, which would know, does not answer."""
        return self.unknown("CUDA does not say", "fix CUDA first, see GPUs")

    def no_gpu(self) -> Finding:
        """Make the finding that there is no GPU to check."""
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
