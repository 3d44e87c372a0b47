"""Describes the free space on a file system, for messages: "No space left on device" names neither the device
nor its size.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from peerway_common.units import about_text

_LEAST_FREE = 64 << 20  # with less, a single large write may not fit
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class Room:
    """The free space on the file system of a file, which need not exist yet. Raises OSError."""

    def __init__(self, path: Path) -> None:
        path = Path(os.path.realpath(path))
        while not path.exists():
            path = path.parent
        while not path.is_mount():
            path = path.parent
        result = os.statvfs(path)
        self.at = path
        self.free, self.total = result.f_bavail * result.f_frsize, result.f_blocks * result.f_frsize
        self.files = result.f_favail if result.f_files else None  # None: as many as fit

    @property
    def is_full(self) -> bool:
        """Whether a database may run out of space."""
        return self.free < _LEAST_FREE or self.files == 0

    def __str__(self) -> str:
        free = f"{about_text(self.free)} of {about_text(self.total)} are free"
        return f"of its file system, {self.at}, {free}" + (", but no inode" if self.files == 0 else "")


def why(path: Path, error: OSError) -> str:
    """The system's message. If the disk is full, also which disk, and how much is free there."""
    text = error.strerror or str(error)
    if error.errno not in _NO_ROOM:
        return text
    try:
        return f"{text}; {Room(path)}"
    except OSError:
        return text
