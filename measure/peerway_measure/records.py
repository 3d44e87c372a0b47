"""Reads and writes files of records, one JSON object on a line.

`bench` and `tune` write them, the other commands read them. record.py defines a record.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from peerway_common import atomic_file
from peerway_measure.record import ALLOWED as ALLOWED
from peerway_measure.record import FIXED as FIXED
from peerway_measure.record import LOAD as LOAD
from peerway_measure.record import NODE_TYPE as NODE_TYPE
from peerway_measure.record import ROUND as ROUND
from peerway_measure.record import RUN as RUN
from peerway_measure.record import STATE_WANTED as STATE_WANTED
from peerway_measure.record import Record as Record
from peerway_measure.record import factor_text as factor_text
from peerway_measure.record import now as now
from peerway_measure.record import parse as parse
from peerway_measure.record_fields import RecordError as RecordError

LONGEST_LINE = 1 << 20  # bytes; a record of `peerway bench` has fewer than 1,000
MOST_BYTES = 128 << 20  # in all files of one call of read(): about 200,000 records


class TruncatedRecordWarning(UserWarning):
    """The last line of a file was cut off and, as requested, skipped."""


def read(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    truncated: Literal["error", "skip"] = "error",
) -> list[Record]:
    """All records of one or several JSON-lines files, in order. Blank lines are skipped.

    Raises RecordError, with file and line, for a line that is not a record or is longer than LONGEST_LINE,
    and if the files have more than MOST_BYTES together. Raises OSError for a file that cannot be read. A last
    line that a killed writer cut off is an error, too; with truncated="skip" it is a TruncatedRecordWarning.
    """
    result, taken = [], 0
    for path in [paths] if isinstance(paths, str | os.PathLike) else paths:
        part, size = _read_file(Path(path), truncated, MOST_BYTES - taken)
        result += part
        taken += size
    return result


def write(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write the file anew, atomically."""
    atomic_file.replace(Path(path), "".join(record.as_json() + "\n" for record in records))


def append(path: str | os.PathLike[str], record: Record) -> None:
    """Append one line in a single write, so that it is kept even if the measurement dies later."""
    try:
        with Path(path).open("ab", buffering=0) as file:
            file.write((record.as_json() + "\n").encode())
    except OSError as error:
        error.filename = os.fspath(path)  # the error of a full disk has no file name
        raise


def _read_file(path: Path, truncated: str, spare: int) -> tuple[list[Record], int]:
    """The records of one file, which may have at most `spare` bytes, and how many bytes it has."""
    result, taken = [], 0
    with path.open("rb") as file:
        for number, raw in enumerate(_lines(file), start=1):
            taken += len(raw)
            where = f"{path}:{number}"
            if len(raw) > LONGEST_LINE:
                raise RecordError(f"{where}: the line is longer than {LONGEST_LINE:,} bytes; no record is")
            if taken > spare:
                raise RecordError(
                    f"{where}: the records are more than {MOST_BYTES:,} bytes together; read fewer at once "
                    "(each line is a record, so a file can be split or filtered by line)"
                )
            record = _record(raw, where, truncated) if raw.strip() else None
            result += [record] if record else []
    return result, taken


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file with their newlines. A line that is too long is cut off."""
    return iter(lambda: file.readline(LONGEST_LINE + 1), b"")


OR_SKIP = "; delete that line, or ask to skip it"


def _record(raw: bytes, where: str, truncated: str) -> Record | None:
    """The record of one line; None for a line that was cut off and is to be skipped."""
    try:
        return parse(raw.decode("utf-8"))
    except RecordError as error:
        raise RecordError(f"{where}: {error}") from None
    except (ValueError, RecursionError) as error:
        if raw.endswith(b"\n"):
            raise RecordError(f"{where}: not a line of JSON ({error})") from None
        why = f"{where}: the last line is cut off after {len(raw)} bytes"
        if truncated != "skip":
            raise RecordError(f"{why}{OR_SKIP}") from None
        warnings.warn(f"{why}; skipped", TruncatedRecordWarning, stacklevel=4)
        return None
