"""Samples that cannot be read: whole files, chunks and batches. A store leaves them out, remembers them
here, and reads on.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from peerway_jobs.store.sample_files import INCOMING, Damaged, file_errors, times_of
from peerway_jobs.store.schema import opened
from peerway_jobs.store.stored import (
    BYTES,
    LAST_MS,
    TEXT,
    TIME_MS,
    WHOLE,
    is_damaged,
    number,
    readable,
)
from peerway_jobs.untrusted import MOST_NUMBER

LOG = logging.getLogger("peerway_jobs")
MOST = 1000  # that one server remembers
MOST_OF_FILE = 20
DAY_MS = 86_400_000
# The columns of the tables. The body of a chunk is looked at by those who read it.
CHUNKS = {"node": TEXT, "kind": TEXT, "device": TEXT, "start": TIME_MS, "end": TIME_MS, "body": BYTES}
BATCHES = {
    "node": TEXT, "stream": TEXT, "seq": WHOLE, "stretch": number(0, MOST_NUMBER - 1, whole=True),
    "shift": number(-LAST_MS, LAST_MS, whole=True), "period": number(1, DAY_MS, whole=True), "payload": BYTES,
}  # fmt: skip
_IN_INDEX = ("node", "kind", "start")  # of chunks: a day of a large cluster has gigabytes beside them


@dataclass(frozen=True)
class SampleDamage:
    """A row, or a whole file, that cannot be read. Without a node it may be of any."""

    file: str
    why: str
    row: int = 0
    node: str = ""
    start_ms: int = 0
    end_ms: int = LAST_MS

    @property
    def place(self) -> tuple[str, int]:
        """The file and the row, which is 0 for the whole file."""
        return self.file, self.row

    def __str__(self) -> str:
        row = f" (row {self.row}{f' of {self.node}' if self.node else ''})" if self.row else ""
        return f"samples/{self.file}{row}: {self.why}"

    def concerns(self, node: str, start_ms: int, end_ms: int) -> bool:
        """Whether samples of this node and time may be in it."""
        return self.node in ("", node) and self.start_ms <= end_ms and self.end_ms >= start_ms


class DamageLog:
    """What a store could not read, each row once; any thread may add to it."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], SampleDamage] = {}

    def add(self, damage: SampleDamage) -> None:
        """Remember it, and tell it in the server's log the first time."""
        with self._lock:
            key = damage.place
            is_new = key not in self._known and len(self._known) < MOST
            if is_new:
                self._known[key] = damage
        if is_new:
            LOG.error("%s; it is left out", damage)

    def add_chunk(self, name: str, node: str, row: int, error: Exception) -> None:
        """Remember a chunk of the file of this name."""
        start, end = times_of(name) or (0, LAST_MS)
        self.add(SampleDamage(f"{name}.db", str(error), row, node, start, end))

    @contextmanager
    def of_file(self, path: Path) -> Iterator[None]:
        """Remember a file if it is damaged, and forget that once it can be used. Raises Damaged."""
        try:
            with file_errors():
                yield
        except Damaged as error:
            start, end = times_of(path.stem) or (0, LAST_MS)
            self.add(SampleDamage(path.name, str(error), start_ms=start, end_ms=end))
            raise
        self.forget(path.name, row=0)

    def forget(self, file: str, row: int | None = None) -> None:
        """A file is gone, or, with row 0, can be read as a whole again."""
        with self._lock:
            for key in [key for key in self._known if key[0] == file and row in (None, key[1])]:
                del self._known[key]

    def entries(self) -> list[SampleDamage]:
        """All that is known, the files in order."""
        with self._lock:
            return sorted(self._known.values(), key=lambda each: (each.file, each.row))


def damaged_samples(folder: Path) -> Iterator[SampleDamage]:
    """What of the files in this folder cannot be read, as far as their tables tell; nothing is written. The
    first rows of each file.
    """
    for path in sorted(folder.glob("*.db")):
        times = times_of(path.stem)
        if times is None and path.stem not in (INCOMING, "ahead"):
            yield SampleDamage(path.name, "no file of samples has such a name: move it elsewhere")
            continue
        start, end = times or (0, LAST_MS)
        table, kinds = ("chunks", CHUNKS) if times else ("batches", BATCHES)
        names = (
            [*_IN_INDEX] if times else [name for name in kinds if path.stem == INCOMING or name != "stretch"]
        )
        columns = ", ".join(names)
        try:
            with file_errors(), closing(opened(path, readonly=True)) as base:
                rows = base.execute(
                    f"SELECT rowid, {columns} FROM {table} WHERE {is_damaged(kinds, *names)} LIMIT ?",
                    (MOST_OF_FILE,),
                ).fetchall()
        except Damaged as error:
            yield SampleDamage(path.name, str(error), start_ms=start, end_ms=end)
        except sqlite3.Error as error:  # locked, say
            yield SampleDamage(path.name, f"it could not be looked at: {error}", start_ms=start, end_ms=end)
        else:
            for row in rows:
                _, unreadable = readable(kinds, row)
                yield SampleDamage(path.name, ", ".join(unreadable), row["rowid"])
