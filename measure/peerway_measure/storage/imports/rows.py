"""Handles the rows of a tool's result, one measurement each. A row that cannot be a record is left out with
its line and the reason, and the others are kept.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from peerway_measure.records import Record, RecordError

_INCOMPLETE = (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
# C's printf writes these for values that JSON has no number for; some tools write a dash.
_NO_NUMBER = re.compile(r'"(?:\\.|[^"\\])*"|-?\b(?:nan|inf(?:inity)?)\b|-(?=\s*[,}\]])', re.IGNORECASE)


class BadRow(ValueError):
    """A row cannot be a record; the message says why."""


@dataclass
class Rows:
    """The records of a file's rows, and why rows were left out."""

    records: list[Record] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    _seen: int = 0

    def add(
        self, line: int | Callable[[], int], record_of: Callable[..., Record | None], *row: object
    ) -> None:
        """Keep the record that `record_of` makes of the row at a line. It returns None if the row is not a
        measurement.
        """
        self._seen += 1
        try:
            kept = record_of(*row)
        except (BadRow, RecordError) as error:
            why = str(error)
        except KeyError as error:
            why = f"it has no {error}"
        except _INCOMPLETE as error:
            why = f"{type(error).__name__}: {error}"
        else:
            self.records += [kept] if kept is not None else []
            return
        # A whole JSON file may be one line.
        place = f"line {line}" if isinstance(line, int) else f"line {line()}, row {self._seen}"
        self.omitted.append(f"{place}: {why}")


def number(value: object, name: str) -> float:
    """A finite number of 0 or more, given as text or in JSON. Raises BadRow."""
    text = str(value).strip()
    try:
        result = float(text)
    except ValueError:
        result = math.nan
    if value is None or isinstance(value, bool) or not (math.isfinite(result) and result >= 0):
        shown = "missing" if value is None or not text else text
        raise BadRow(f"{name} is {shown}, not a number of 0 or more")
    return result


def above_zero(value: object, name: str) -> float:
    """A finite number above 0. Raises BadRow."""
    result = number(value, name)
    if result == 0:
        raise BadRow(f"{name} is {value}, which is not a measurement")
    return result


def whole(value: object, name: str, least: int = 1) -> int:
    """A whole number. Raises BadRow."""
    result = number(value, name)
    if result != int(result) or result < least:
        raise BadRow(f"{name} is {value}, not a whole number of {least} or more")
    return int(result)


def read_json(text: str) -> Any:
    """The JSON of a file, or of each of its lines; None if it has none.

    Lines of text before it are skipped, because fio prints some. Words that C prints for missing numbers
    become values that `number` refuses.
    """
    start = text.find("{")
    if start < 0 or text[:start].strip().count("\n") > 20:
        return None
    text = _NO_NUMBER.sub(lambda match: match[0] if match[0].startswith('"') else "NaN", text[start:])
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None


def line_of(text: str, data: Any, row: object) -> int:
    """The line at which an object of a file's JSON begins. Objects begin in the order of their braces."""
    strings_and_braces = re.compile(r'"(?:\\.|[^"\\])*"|\{')
    braces = (match.start() for match in strings_and_braces.finditer(text, text.find("{")) if match[0] == "{")
    for start, each in zip(braces, _objects(data), strict=False):
        if each is row:
            return text.count("\n", 0, start) + 1
    return 1


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(data, dict):
        yield data
    inside: Iterable[Any] = (
        data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    )
    for value in inside:
        yield from _objects(value)
