"""What was asked for, and the cases that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from peerway.storage import stripes
from peerway.storage.states import STATES
from peerway.units import counted, size_text

TESTS = ("write", "read", "shared", "random", "metadata")
MODES = ("buffered", "fsync", "direct")
RANDOM_BLOCK = 4096
SPARE = 1.1  # times the files, which must be free


class BadRequest(ValueError):
    """What cannot be measured as asked: with the numbers."""


@dataclass(frozen=True)
class Files:
    """Files that are written once, and what is measured with them: `streams` at once, `size` bytes each."""

    size: int
    block: int
    streams: int
    mode: str
    shared: bool
    tests: frozenset[str]
    stripes: str = ""  # Lustre's layout (stripes.py); "": what the file system gives

    @property
    def direct(self) -> bool:
        """Whether the page cache is passed by."""
        return self.mode == "direct"

    @property
    def depth(self) -> int:
        """How many blocks a stream has under way. Buffered ones go one after the other, as read-ahead expects
        them.
        """
        return 8 if self.direct else 1

    def shape(self, kind: str, block: int) -> str:
        """How a record spells it: "sequential 1 MiB fsync"."""
        words = [kind, size_text(block), self.mode if self.mode != "buffered" else ""]
        return " ".join(filter(None, [*words, stripes.name(self.stripes)]))

    @property
    def name(self) -> str:
        """For progress and notes."""
        kind = "one shared file" if self.shared else "a file for each"
        words = [f"{counted(self.streams, 'stream')} of {size_text(self.size)}", kind, self.mode]
        return ", ".join(filter(None, [*words, stripes.name(self.stripes)]))


@dataclass(frozen=True)
class Request:
    """One measurement of a place. Raises BadRequest."""

    place: Path
    tests: Sequence[str] = TESTS
    size: int = 1 << 30
    block: int = 1 << 20
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
        for name, value in (("--size", self.size), ("--block", self.block)):
            if value < RANDOM_BLOCK or value % RANDOM_BLOCK:
                raise BadRequest(f"{name} is {value} bytes; it must be a multiple of {RANDOM_BLOCK}")
        if self.block & (self.block - 1) or self.block > 1 << 30:
            raise BadRequest(f"--block is {self.block} bytes; it must be a power of two, at most 1 GiB")
        for layout in filter(None, self.stripes):
            try:
                stripes.parse(layout)
            except ValueError as error:
                raise BadRequest(f"--stripes: {error}") from None
        if self.size % self.block:
            raise BadRequest(f"--size {self.size} is not a multiple of --block {self.block}")

    def files(self) -> Iterator[Files]:
        """All files that are to be written, in order."""
        wanted = frozenset(self.tests)
        for mode, streams, layout in product(self.modes, self.streams, self.stripes):
            own = wanted & {"write", "read", "random"}
            both = frozenset({"write", "read"})
            if own or ("shared" in wanted and streams > 1):
                yield Files(self.size, self.block, streams, mode, False, own or both, layout)
            if "shared" in wanted and streams > 1:
                yield Files(self.size, self.block, streams, mode, True, both, layout)

    def most_bytes(self, nodes: int) -> int:
        """What lies on the file system at the same time, with something to spare."""
        largest = max(
            (f.size * f.streams * (2 if "random" in f.tests else 1) for f in self.files()), default=0
        )
        small = self.small_files * 4096 * max(self.streams, default=1) if "metadata" in self.tests else 0
        return int(max(largest, small) * nodes * SPARE)
