"""Reads small files of /proc, /sys and cgroups, cheaply: the agent reads thousands of them a minute."""

from __future__ import annotations

import errno
import os

NO_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # errors that say nothing about the file itself
_MOST = 1 << 20


def read(path: str, most: int = _MOST) -> bytes:
    """The file's content, up to `most` bytes. Raises OSError."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A short read is not the end: the kernel returns as many whole lines as fit into its buffer.
        parts: list[bytes] = []
        remaining = most
        while remaining > 0 and (data := os.read(file, min(remaining, 65536))):
            parts.append(data)
            remaining -= len(data)
        return b"".join(parts)
    finally:
        os.close(file)


def text(path: str, most: int = _MOST) -> str | None:
    """The file's text, or None if it does not exist or cannot be read."""
    try:
        return read(path, most).decode(errors="replace")
    except OSError:
        return None


def number(path: str) -> int | None:
    """The integer in a file; None if there is no file or no number in it (such as "max" in a cgroup)."""
    content = text(path, 64)
    try:
        return None if content is None else int(content)
    except ValueError:
        return None


def names(path: str) -> list[str]:
    """The names in a folder, sorted; empty if there is no such folder."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 - no Path for each name
    except OSError:
        return []


def keyed(path: str) -> dict[str, int]:
    """The lines "name number" of a file as a dictionary; empty if there is no such file."""
    numbers: dict[str, int] = {}
    for line in (text(path) or "").splitlines():
        name, _, value = line.partition(" ")
        if value.isdigit():
            numbers[name] = int(value)
    return numbers
