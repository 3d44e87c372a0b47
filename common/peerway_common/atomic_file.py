"""Writes files atomically, so that a reader never sees half of one, and reads files that should be small."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path


def read(path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes. Raises OSError, or ValueError for a longer one."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return data


def text(path: Path, most: int) -> str:
    """Read the text that a person wrote to a file of at most `most` bytes. Raises OSError, or a ValueError
    that names the file if it is longer or not UTF-8.
    """
    try:
        data = read(path, most)
    except ValueError as wrong:
        raise ValueError(f"{path}: {wrong}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise ValueError(
            f"{path}:{line}: the byte {data[wrong.start]:#04x} is not UTF-8; save the file as text in UTF-8"
        ) from None


def replace(path: Path, text: str) -> None:
    """Write the text as the new content of the file, atomically. Raises OSError."""
    with draft(path) as beside:
        beside.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Give a temporary name next to `path`. When the block ends, the file of that name replaces `path`, if
    one was written.

    A symbolic link stays a link. Anything but a regular file, such as /dev/null or a pipe, is written
    directly. Raises OSError.
    """
    for wrong, number in ((path.is_dir(), errno.EISDIR), (not path.parent.is_dir(), errno.ENOENT)):
        if wrong:
            raise OSError(number, os.strerror(number), str(path))
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        yield beside
        if beside.exists():
            beside.replace(target)
    except OSError as error:
        if error.filename == str(beside):
            error.filename = str(path)
        raise
    finally:
        beside.unlink(missing_ok=True)
