"""The interface of a storage engine: it writes and reads files, and reports how long that took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from peerway_measure.storage.operation import Together
from peerway_measure.storage.request import Files

Operation = str  # write, read, random_write, random_read


@dataclass(frozen=True)
class Job:
    """One operation on the files PATH.0, PATH.1, ... of a stream each, or with `files.shared` on parts of
    PATH.0. These may be some of all nodes: `first` is the number of the first one. `together` is called
    once, before the operation begins, also where it fails; it returns when all nodes are ready.
    """

    path: Path
    files: Files
    seed: int
    limit_s: float
    block: int
    count: int = 0  # random: blocks a stream
    first: int = 0
    together: Together | None = None

    def paths(self) -> list[str]:
        """The paths of its files."""
        return [f"{self.path}.{number}" for number in range(1 if self.files.shared else self.files.streams)]

    def part(self) -> dict[str, int]:
        """The place of its bytes in each of its files."""
        f = self.files
        return {"offset": self.first * f.size, "length": f.size * (f.streams if f.shared else 1)}

    def words(self) -> dict[str, object]:
        """Arguments for the program peerway-storage."""
        f = self.files
        return {
            "path": self.path,
            "size": f.size,
            "block": self.block,
            "streams": f.streams,
            "depth": f.depth,
            "direct": f.direct,
            "fsync": f.fsync,
            "shared": f.shared,
            "first": self.first,
            "parts": f.streams * f.nodes,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Outcome:
    """How long all streams took together, and CPU time meanwhile: all, and that of the program alone, without
    the kernel's; `times` has that of each random operation, or `quantiles` p50, p99,
    min and mean of them. `fetched`: bytes from below the page cache, by the process's own count. `right`:
    None where nothing was checked. `all_ns`: how long the slowest of the nodes took that share a file.
    """

    ns: int
    cpu_us: int = 0
    user_us: int = 0
    fetched: int | None = None
    right: bool | None = None
    times: Sequence[int] = ()
    quantiles: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    all_ns: int = 0


class Engine(Protocol):
    """A way to move bytes between memory and files."""

    name: str
    memory: str  # where the bytes are that are written: "host", "cuda:0"
    can: frozenset[Operation]
    takes_direct: bool  # whether O_DIRECT can be asked of it

    def missing(self) -> str:
        """What to install; "" if nothing is missing."""

    def run(self, operation: Operation, job: Job) -> Outcome:
        """Carry out the job. Raises OperationFailed."""
