"""The database of jobs in a file of SQLite, which one server uses."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.schema import RESTORE, advising, bring_up, emptied, opened
from peerway_jobs.store.transaction import transaction


class SqliteDatabase:
    """The database in a file."""

    is_shared = False
    trouble = ""  # errors of writing are in the log and in the answers to agents

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises sqlite3.DatabaseError, with advice for a damaged file."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it contains password hashes
        self.path, self.name = path, path.name
        if remains := emptied(path):
            raise sqlite3.DatabaseError(
                f"{path.name} is empty (0 bytes), but the folder has {remains}: it lost its content; "
                f"{RESTORE}"
            )
        with advising(path, RESTORE):
            self._writer = opened(path)
        self.writer: Connection = self._writer
        self._lock = threading.Lock()
        self._local = threading.local()
        self._readers: dict[threading.Thread, sqlite3.Connection] = {}

    @property
    def reader(self) -> Connection:
        """This thread's connection for reading; it never waits for the writer."""
        base: sqlite3.Connection | None = getattr(self._local, "base", None)
        if base is None:
            base = self._local.base = opened(self.path, readonly=True)
            with self._lock:  # close the connections of threads that have ended
                for thread in [each for each in self._readers if not each.is_alive()]:
                    self._readers.pop(thread).close()
                self._readers[threading.current_thread()] = base
        return base

    def bring_up(self, versions: list[str]) -> None:
        """Migrate to the newest version; each step is all or nothing. Raises ValueError for a file of a newer
        version.
        """
        with advising(self.path, RESTORE):
            bring_up(self._writer, versions)

    def version(self) -> int:
        """The version of its schema; 0 if it has none yet."""
        return int(self._writer.execute("PRAGMA user_version").fetchone()[0])

    def leads(self) -> bool:
        """Whether this server is the one that judges: no other can use the file."""
        return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Do nothing: the folder's lock file keeps servers out."""
        yield

    def types(self, table: str) -> dict[str, tuple[str, bool]]:
        """The declared type of each column, and whether it needs a value."""
        rows = self._writer.execute(f"PRAGMA table_info({table})")
        return {row["name"]: (row["type"], bool(row["notnull"] or row["pk"])) for row in rows}

    @contextmanager
    def snapshot(self) -> Iterator[Callable[[str], Iterator[Sequence[Any]]]]:
        """In the block, statements read the database as it was when the block began."""
        with closing(opened(self.path, readonly=True)) as base:
            base.execute("BEGIN")
            yield lambda sql: iter(base.execute(sql))

    @contextmanager
    def filling(self) -> Iterator[Callable[[str, Sequence[str], Iterable[Sequence[Any]]], None]]:
        """In the block, add rows to tables. All of it or nothing is kept."""
        with transaction(self._writer) as base:

            def fill(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
                places = ",".join("?" * len(columns))
                base.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

            yield fill

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            # The writer last, because the last connection writes the log into the file.
            for base in (*self._readers.values(), self._writer):
                base.close()
