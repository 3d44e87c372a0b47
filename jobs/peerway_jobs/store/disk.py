"""Explains SQLite's errors of reading and writing files.

For a full disk SQLite says "disk I/O error", and names neither the file nor the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from peerway_common.disk_space import Room

_OF_THE_DISK = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")
_OTHERWISE = "look at its permissions, mount options and quotas, and at the kernel's messages (dmesg)"
MAKE_ROOM = "make room there: move other files away, enlarge it, or keep samples less long (serve --raw-days)"


class DiskFailed(sqlite3.OperationalError):
    """A file cannot be read or written; the message says which, the free space, and what to do.

    `brief` names no folder of the server, for people who are not its administrators.
    """

    def __init__(self, path: Path, error: sqlite3.OperationalError) -> None:
        room = Room(path)
        advice = MAKE_ROOM if room.is_full else _OTHERWISE
        super().__init__(f"{path}: {error}; {room}; {advice}")
        self.sqlite_errorcode, self.sqlite_errorname = error.sqlite_errorcode, error.sqlite_errorname
        self.brief = f"{error}, the server's disk is full" if room.is_full else str(error)


class Connection(sqlite3.Connection):
    """A connection whose errors name the file and its disk. Set `path` once it is open."""

    path = Path()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        try:
            return super().execute(sql, parameters)
        except sqlite3.OperationalError as error:
            raise explained(self.path, error) from None

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        try:
            return super().executemany(sql, parameters)
        except sqlite3.OperationalError as error:
            raise explained(self.path, error) from None

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        try:
            return super().executescript(sql_script)
        except sqlite3.OperationalError as error:
            raise explained(self.path, error) from None


def explained(path: Path, error: sqlite3.OperationalError) -> sqlite3.OperationalError:
    """A DiskFailed for an error of the disk; any other error, such as "database is locked", unchanged."""
    name = getattr(error, "sqlite_errorname", "")
    if not isinstance(error, DiskFailed) and name.startswith(_OF_THE_DISK):
        with suppress(OSError):  # not even the folder can be read
            return DiskFailed(path, error)
    return error
