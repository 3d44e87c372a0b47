"""Reads the CSV files of `peerway worth`. An error names the file, the line and the column, what was there,
and what must be there.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from peerway_common import atomic_file
from peerway_common.printable import printable, shortened
from peerway_common.suggestion import did_you_mean

MOST_BYTES = 256 << 20
MOST_HOURS = 1e12  # of a row: a hundred million GPUs for a year


class BadFile(ValueError):
    """A file that cannot be used; the message names it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file: how its cells are parsed, and what they hold where the file does not have it.
    A column without `absent` is necessary.
    """

    parse: Callable[[str], Any]
    absent: Any = None
    necessary: bool = True


def text(cell: str) -> str:
    """A name, printable."""
    return printable(cell.strip())


def number(least: float, most: float) -> Callable[[str], float]:
    """A parser for a number between two bounds, which it includes."""

    def parse(cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            value = math.nan
        if not least <= value <= most:
            raise ValueError(f"a number from {least:g} to {most:g}")
        return value

    return parse


def optional(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """The parser for a column whose cells may be empty, which is None."""
    return lambda cell: parse(cell) if cell.strip() else None


def whole(cell: str) -> int:
    """A whole number of at least 0."""
    value = number(0, 2.0**63 - 1)(cell)
    if value != int(value):
        raise ValueError("a whole number")
    return int(value)


def day(cell: str) -> date:
    """A date."""
    try:
        return date.fromisoformat(cell.strip())
    except ValueError:
        raise ValueError("a date such as 2026-01-31") from None


def rows(path: Path, columns: Mapping[str, Column], writer: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows of a file with their line numbers. `writer` is the command that writes such a file. Raises
    BadFile and OSError.
    """
    try:
        content = atomic_file.text(path, MOST_BYTES)
    except ValueError as error:
        raise BadFile(str(error)) from None
    reader = csv.reader(io.StringIO(content.removeprefix("\ufeff")), strict=True)
    try:
        names = [name.strip() for name in next(reader, [])]
        _check_names(path, names, columns, writer)
        count = 0
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            count += 1
            if len(cells) != len(names):
                raise BadFile(
                    f"{path}:{reader.line_num}: {len(cells)} cells, but the first line names {len(names)} "
                    "columns; write one cell for each, and quote cells that have commas"
                )
            yield reader.line_num, _row(path, reader.line_num, dict(zip(names, cells, strict=True)), columns)
    except csv.Error as error:
        raise BadFile(f"{path}:{reader.line_num}: not CSV: {error}") from None
    if not count:
        raise BadFile(f"{path} has no rows below its first line; {writer} writes them")


def _check_names(path: Path, names: Sequence[str], columns: Mapping[str, Column], writer: str) -> None:
    if not any(names):
        raise BadFile(f"{path} is empty; {writer} writes such a file")
    for name in names:
        if name not in columns:
            raise BadFile(
                f"{path}:1: there is no column {shortened(printable(name), 60)!r}"
                f"{did_you_mean(name, columns) or '.'} There are {', '.join(columns)}"
            )
        if names.count(name) > 1:
            raise BadFile(f"{path}:1: the column {name} is there twice; delete one")
    missing = [name for name, column in columns.items() if column.necessary and name not in names]
    if missing:
        raise BadFile(
            f"{path}:1: the column {missing[0]} is missing; its first line names {', '.join(names)}. "
            f"{writer} writes such a file"
        )


def _row(path: Path, line: int, cells: Mapping[str, str], columns: Mapping[str, Column]) -> dict[str, Any]:
    values = {}
    for name, column in columns.items():
        if name not in cells:
            values[name] = column.absent
            continue
        try:
            values[name] = column.parse(cells[name])
        except ValueError as error:
            shown = shortened(printable(cells[name]), 60)
            raise BadFile(f"{path}:{line}: {name} is {shown!r}, but must be {error}") from None
    return values
