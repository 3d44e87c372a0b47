"""What is wrong when SQLite cannot write or read its file: of a full disk it says "disk I/O error", and names
neither the file nor the disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from peerway.units import about_text

_OF_THE_DISK = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")
_LEAST_FREE = 64 << 20  # with less, a log of SQLite and a checkpoint may not fit
_OTHERWISE = "look at its permissions, mount options and quotas, and at the kernel's messages (dmesg)"
MAKE_ROOM = "make room there: move other files away, enlarge it, or keep samples less long (serve --raw-days)"


class DiskFailed(sqlite3.OperationalError):
    """The message says which file, what is free on its file system, and what to do. `brief` names no folder
    of the server, for people who are not its administrators.
    """

    def __init__(self, path: Path, error: sqlite3.OperationalError) -> None:
        room = Room(path)
        advice = MAKE_ROOM if room.is_full else _OTHERWISE
        super().__init__(f"{path}: {error}; {room}; {advice}")
        self.sqlite_errorcode, self.sqlite_errorname = error.sqlite_errorcode, error.sqlite_errorname
        self.brief = f"{error}, the server's disk is full" if room.is_full else str(error)


class Room:
    """What is free on the file system of a file, which need not be there yet. Raises OSError."""

    def __init__(self, path: Path) -> None:
        path = Path(os.path.realpath(path))
        while not path.exists():
            path = path.parent
        while not path.is_mount():
            path = path.parent
        found = os.statvfs(path)
        self.at = path
        self.free, self.total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
        self.files = found.f_favail if found.f_files else None  # None: as many as there is room for

    @property
    def is_full(self) -> bool:
        """Whether a database may find no room."""
        return self.free < _LEAST_FREE or self.files == 0

    def __str__(self) -> str:
        free = f"{about_text(self.free)} of {about_text(self.total)} are free"
        return f"of its file system, {self.at}, {free}" + (", but no inode" if self.files == 0 else "")


class Connection(sqlite3.Connection):
    """One whose errors name the file and its disk. Set `path` once it is open."""

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
    """The error itself where it is not of the disk, such as "database is locked"."""
    name = getattr(error, "sqlite_errorname", "")
    if not isinstance(error, DiskFailed) and name.startswith(_OF_THE_DISK):
        with suppress(OSError):  # where not even the folder can be looked at
            return DiskFailed(path, error)
    return error
