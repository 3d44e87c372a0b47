"""The interface of a storage engine, which writes and reads files and reports how long that took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from peerway_measure.storage.operation import WaitForNodes
from peerway_measure.storage.request import Files

Operation = str  # write, read, random_write, random_read


@dataclass(frozen=True)
class FileOperation:
    """One operation on files.

    Each stream has a file, PATH.0, PATH.1, ..., or with `files.shared` a part of PATH.0. If the streams are
    only some of those of all nodes, `first_stream` is the number of the first one. `wait_for_nodes` is called
    once before the operation begins, even if it fails; it returns when all nodes are ready.
    """

    path: Path
    files: Files
    seed: int
    limit_s: float
    block_bytes: int
    blocks_per_stream: int = 0  # for random operations
    first_stream: int = 0
    wait_for_nodes: WaitForNodes | None = None

    def paths(self) -> list[str]:
        """The paths of its files."""
        return [f"{self.path}.{number}" for number in range(1 if self.files.shared else self.files.streams)]

    def byte_range(self) -> dict[str, int]:
        """The offset of its bytes in each of its files."""
        f = self.files
        return {"offset": self.first_stream * f.size, "length": f.size * (f.streams if f.shared else 1)}

    def program_arguments(self) -> dict[str, object]:
        """Arguments for the program peerway-storage."""
        f = self.files
        return {
            "path": self.path,
            "size": f.size,
            "block": self.block_bytes,
            "streams": f.streams,
            "depth": f.depth,
            "direct": f.direct,
            "fsync": f.fsync,
            "shared": f.shared,
            "first": self.first_stream,
            "parts": f.streams * f.nodes,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class Outcome:
    """How long all streams took together, and the CPU time meanwhile: that of everything, and that of the
    program alone, without the kernel.

    `times` has the time of each random operation, or `quantiles` their p50, p99, min and mean.
    `bytes_below_cache` is the number of bytes from below the page cache, as counted for the process.
    `data_is_correct` is None if nothing was checked. `slowest_node_ns` is the time of the slowest of the
    nodes that share a file.
    """

    elapsed_ns: int
    cpu_us: int = 0
    user_us: int = 0
    bytes_below_cache: int | None = None
    data_is_correct: bool | None = None
    times: Sequence[int] = ()
    quantiles: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    slowest_node_ns: int = 0


class Engine(Protocol):
    """A method of moving bytes between memory and files."""

    name: str
    memory: str  # where the engine's data lies in memory: "host", "cuda:0"
    operations: frozenset[Operation]
    takes_direct: bool  # whether it can open files with O_DIRECT

    def missing(self) -> str:
        """What to install; "" if nothing is missing."""

    def run(self, operation: Operation, job: FileOperation) -> Outcome:
        """Carry out the job. Raises OperationFailed."""
