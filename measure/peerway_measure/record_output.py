"""Writes a benchmark's records to a file or to standard output.

Each record is written at once, so that no record is lost if the measurement is killed.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from peerway_measure import records
from peerway_measure.records import Record, RecordError

if TYPE_CHECKING:
    from collections.abc import Sequence

STANDARD = Path("-")


class WriteFailed(Exception):
    """An output accepts no more records; the message names it and says why."""


class Unusable(ValueError):
    """The file cannot be used as output for records; the message says what it contains, and what to do."""


class Output(Protocol):
    """A destination of records."""

    def add(self, record: Record) -> None:
        """Write one record. Raises WriteFailed."""

    def close(self) -> None:
        """Close the output."""


class StandardOutput:
    """A line for each record on standard output."""

    def add(self, record: Record) -> None:
        """Write one record. Raises WriteFailed."""
        try:
            sys.stdout.write(record.as_json() + "\n")
            sys.stdout.flush()
        except OSError as error:
            drop_standard_output()
            raise WriteFailed(f"cannot write to standard output: {error.strerror}") from None

    def close(self) -> None:
        """Close the output."""


def drop_standard_output() -> None:
    """Discard what Python still buffers for standard output, which accepts no more, so that flushing it at
    the exit does not fail again.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


class RecordFile:
    """A file that is kept open from before the measurement until its end.

    `before` are the records that the file already had. Without `append` it must have none, because
    measurements are not overwritten. Raises Unusable, or OSError if the file cannot be written.
    """

    def __init__(self, path: Path, append: bool) -> None:
        self.path = path
        self._created = not path.exists()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self.before: Sequence[Record] = ()
        try:
            kind = os.fstat(self._descriptor)
            if stat.S_ISREG(kind.st_mode) and kind.st_size:
                self.before = _held(path, append)
            self._try(kind)
        except BaseException:
            self.close()
            raise

    def _try(self, kind: os.stat_result) -> None:
        """Write an empty line to find out early whether writing works, if the line can be removed again or
        does no harm.
        """
        if stat.S_ISREG(kind.st_mode):
            os.write(self._descriptor, b"\n")
            os.ftruncate(self._descriptor, kind.st_size)
        elif stat.S_ISCHR(kind.st_mode) and not os.isatty(self._descriptor):
            os.write(self._descriptor, b"\n")

    def add(self, record: Record) -> None:
        """Write a whole record, or nothing. Raises WriteFailed."""
        text = (record.as_json() + "\n").encode()
        written = 0
        try:
            while written < len(text):
                written += os.write(self._descriptor, text[written:])
        except OSError as error:
            self._take_back(written)
            raise WriteFailed(f"cannot write {self.path}: {error.strerror}") from None

    def _take_back(self, written: int) -> None:
        kind = os.fstat(self._descriptor)
        if written and stat.S_ISREG(kind.st_mode):
            os.ftruncate(self._descriptor, kind.st_size - written)

    def close(self) -> None:
        """Close the file; remove it if it was created and nothing was written."""
        if self._descriptor < 0:
            return
        kind = os.fstat(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        if self._created and stat.S_ISREG(kind.st_mode) and not kind.st_size:
            self.path.unlink(missing_ok=True)


def _held(path: Path, append: bool) -> list[Record]:
    """The records of a file that is not empty. Raises Unusable if they may not be kept or are none."""
    try:
        held = records.read(path)
    except RecordError as error:
        raise Unusable(f"{path} cannot take records: {error}") from None
    if held and not append:
        raise Unusable(
            f"{path} has {len(held)} records already; --append keeps them and measures what they lack, or "
            "name another file with --out"
        )
    return held
