"""The request of a measurement, and its cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from peerway_common.units import counted, size_text
from peerway_measure.storage import stripes
from peerway_measure.storage.states import STATES

TESTS = ("write", "read", "shared", "random", "metadata")
MODES = ("buffered", "fsync", "direct", "direct+fsync")
RANDOM_BLOCK = 4096
SPARE = 1.1  # the free space that is needed, relative to the size of the files


class BadRequest(ValueError):
    """The request cannot be measured; the message has the numbers."""


@dataclass(frozen=True)
class Files:
    """Files that are written once, and how they are measured: in `streams` at once, of `size` bytes each."""

    size: int
    block: int
    streams: int
    mode: str
    shared: bool
    tests: frozenset[str]
    stripes: str = ""  # Lustre's layout (stripes.py); "": the file system's default
    nodes: int = 1  # the number of nodes that share one file

    @property
    def direct(self) -> bool:
        """Whether the page cache is bypassed."""
        return "direct" in self.mode

    @property
    def fsync(self) -> bool:
        """Whether a write ends with an fsync."""
        return "fsync" in self.mode

    @property
    def depth(self) -> int:
        """How many blocks of a stream are in flight. Buffered blocks go one after the other, because
        read-ahead expects that.
        """
        return 8 if self.direct else 1

    def shape(self, op: str) -> str:
        """The shape in records of a write or read of whole files: "sequential 1 MiB fsync"."""
        kind = "sequential"
        if self.shared:
            kind = f"shared by {self.nodes} nodes" if self.nodes > 1 else "shared"
        return " ".join(filter(None, [kind, size_text(self.block), *self._mode_words(op)]))

    def random_shape(self, op: str) -> str:
        """The shape in records of blocks at random places: "random 4 KiB in 1 GiB direct"."""
        words = ["random", size_text(RANDOM_BLOCK), "in", size_text(self.size)]
        return " ".join(filter(None, [*words, *self._mode_words(op)]))

    def _mode_words(self, op: str) -> list[str]:
        """The last words of a shape. A read has no fsync."""
        words = ["direct"] if self.direct else []
        words += ["fsync"] if self.fsync and op == "write" else []
        return [*words, stripes.name(self.stripes)]

    @property
    def name(self) -> str:
        """The name in progress and notes."""
        kind = "one shared file" if self.shared else "a file for each"
        kind += f" of {self.nodes} nodes" if self.nodes > 1 else ""
        words = [f"{counted(self.streams, 'stream')} of {size_text(self.size)}", kind, self.mode]
        words.append(f"blocks of {size_text(self.block)}")
        return ", ".join(filter(None, [*words, stripes.name(self.stripes)]))


@dataclass(frozen=True)
class Request:
    """One measurement of a place. Raises BadRequest."""

    place: Path
    tests: Sequence[str] = TESTS
    sizes: Sequence[int] = (1 << 30,)
    blocks: Sequence[int] = (1 << 20,)
    streams: Sequence[int] = (1,)
    modes: Sequence[str] = ("buffered",)
    stripes: Sequence[str] = ("",)
    states: Sequence[str] = STATES
    engines: Sequence[str] = ("posix",)
    small_files: int = 1000
    random_blocks: int = 1000
    repeat: int = 1
    limit_s: float = 600
    drop_server: str = ""
    node_type: str = ""
    launch: Sequence[str] = field(default=())

    def __post_init__(self) -> None:
        for name, values in (("--size", self.sizes), ("--block", self.blocks)):
            for value in values:
                if value < RANDOM_BLOCK or value % RANDOM_BLOCK:
                    raise BadRequest(f"{name} is {value} bytes; it must be a multiple of {RANDOM_BLOCK}")
        for block in self.blocks:
            if block & (block - 1) or block > 1 << 30:
                raise BadRequest(f"--block is {block} bytes; it must be a power of two, at most 1 GiB")
        for layout in filter(None, self.stripes):
            try:
                stripes.parse(layout)
            except ValueError as error:
                raise BadRequest(f"--stripes: {error}") from None
        for size, block in product(self.sizes, self.blocks):
            if size % block:
                raise BadRequest(f"--size {size} is not a multiple of --block {block}")

    def files(self, nodes: int = 1) -> Iterator[Files]:
        """All files to be written, one for each combination of the factors.

        Random blocks have a size of their own, so they are measured only with the first --block. Several
        nodes share one file.
        """
        wanted = frozenset(self.tests)
        both = frozenset({"write", "read"})
        factors = product(self.modes, self.streams, self.stripes, self.sizes, self.blocks)
        for mode, streams, layout, size, block in factors:
            own = wanted & (both | ({"random"} if block == self.blocks[0] else set()))
            shared = "shared" in wanted and streams * nodes > 1
            if own or shared:
                yield Files(size, block, streams, mode, False, own or both, layout)
            if shared:
                yield Files(size, block, streams, mode, True, both, layout, nodes)

    def most_bytes(self, nodes: int) -> int:
        """The most bytes on the file system at any time, with a margin."""
        largest = max(
            (f.size * f.streams * (2 if "random" in f.tests else 1) for f in self.files(nodes)), default=0
        )
        small = self.small_files * 4096 * max(self.streams, default=1) if "metadata" in self.tests else 0
        return int(max(largest, small) * nodes * SPARE)
