"""The files of the embedded store of samples: one a day with what came, one a month with means of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from peerway_jobs.store.disk import DiskFailed
from peerway_jobs.store.schema import bring_up, opened

DAY_MS = 86_400_000
MONTH_MS = 31 * DAY_MS
INCOMING = "incoming"
_MOST_OPEN = 8
_NAME = re.compile(r"(?:day-\d{4}-\d\d-\d\d|month-\d{4}-\d\d)", re.ASCII)
_TABLES = [
    """
    CREATE TABLE chunks (
      node TEXT NOT NULL, kind TEXT NOT NULL, device TEXT NOT NULL,
      start INTEGER NOT NULL, end INTEGER NOT NULL, body BLOB NOT NULL
    );
    CREATE INDEX chunks_of_node ON chunks (node, kind, start);
    """
]


class Damaged(Exception):
    """A file is no database, not one of samples, or its pages are damaged."""


@contextmanager
def file_errors() -> Iterator[None]:
    """Raises Damaged where SQLite finds a file damaged. Errors that may pass stay as they are: a full
    disk, a lock.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "")
        if not isinstance(error, DiskFailed) and name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise Damaged(f"{error}; restore it from a backup, or move it elsewhere") from None
        if name == "SQLITE_ERROR" and "no such" in str(error):
            raise Damaged(f"{error}: it is no file of samples; move it elsewhere") from None
        raise
    except ValueError as error:  # of bring_up
        raise Damaged(str(error)) from None


def times_of(name: str) -> tuple[int, int] | None:
    """The milliseconds in which the time of the file "day-2026-11-22" or "month-2026-11" begins and ends;
    None for another name.
    """
    if not _NAME.fullmatch(name):
        return None
    parts = [int(part) for part in name.split("-")[1:]]
    try:
        begin = datetime(parts[0], parts[1], parts[2] if len(parts) > 2 else 1, tzinfo=UTC)
    except ValueError:
        return None
    start = int(begin.timestamp() * 1000)
    return start, start + (DAY_MS if len(parts) > 2 else MONTH_MS)


def day_of(time_ms: int) -> str:
    """The name of the file of this time's day."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("day-%Y-%m-%d")


class SampleFiles:
    """The files in a folder; a few stay open. It has no lock of its own."""

    def __init__(self, folder: Path) -> None:
        """Nothing is opened yet."""
        self._folder = folder
        self._open: dict[str, sqlite3.Connection] = {}

    def path(self, name: str) -> Path:
        """Where the file of this name is."""
        return self._folder / f"{name}.db"

    def names(self, kind: str) -> list[str]:
        """The files of days, or of months."""
        return sorted(path.stem for path in self._folder.glob(f"{kind}-*.db") if times_of(path.stem))

    def names_within(self, start_ms: int, end_ms: int) -> Iterator[str]:
        """The files that may have samples of that time; those of months first, so that raw samples win."""
        for name in (*self.names("month"), *self.names("day")):
            start, end = times_of(name) or (0, 0)
            if start <= end_ms and end >= start_ms:
                yield name

    def file(self, name: str) -> sqlite3.Connection:
        """Open it, or make it."""
        base = self._open.pop(name, None)
        if base is None:
            base = opened(self.path(name))
            try:
                bring_up(base, _TABLES)
            except BaseException:
                base.close()
                raise
        self._open[name] = base  # the one used last is last
        while len(self._open) > _MOST_OPEN:
            self._open.pop(next(iter(self._open))).close()
        return base

    def drop(self, name: str) -> None:
        """Remove it with its logs."""
        if base := self._open.pop(name, None):
            base.close()
        path = self.path(name)
        for each in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
            each.unlink(missing_ok=True)

    def close(self) -> None:
        """Close all that is open."""
        for base in self._open.values():
            base.close()
        self._open.clear()
