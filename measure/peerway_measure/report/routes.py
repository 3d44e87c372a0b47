"""Finds which path the route takes at which size, from records of the route or from a route table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from peerway_common import atomic_file
from peerway_common.printable import printable, shortened
from peerway_common.units import size_text
from peerway_measure.bench.kinds import ROUTE
from peerway_measure.file_kinds import TABLE_FORMAT, has_records
from peerway_measure.record_fields import NUMBERS

if TYPE_CHECKING:
    from pathlib import Path

    from peerway_measure.records import Record

CHOSEN = "chosen"  # the key in `extra` for the path or paths that a record with via "route" took
_VERSION = 2
_MOST_BYTES = 16 << 20  # of a table's file; that of `peerway tune` has about 100,000
_NEAR = 1.2  # two sizes that differ by less than this factor are one border
_STEPS = 8  # sizes that are tried between a power of two and the next


class TableError(ValueError):
    """The file is not a usable route table; the message names it and says what is wrong."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of sizes (bytes) that takes one path.

    `seen` are the first and the last size for which the path is known. The ends of the span are halfway to
    those of its neighbours.
    """

    first: float
    last: float
    path: str
    seen: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A path that could not be measured for a pair class, and why."""

    source: str
    target: str
    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Line:
    """The measured cost of one path in one case: points (bytes, µs) joined by straight lines."""

    op: str
    shape: str
    source: str
    target: str
    path: str
    corners: tuple[tuple[float, float], ...]

    def cost(self, size: float) -> float:
        """The cost in µs for `size` bytes. Beyond the last point it grows as on the last line."""
        corners = self.corners
        if size <= corners[0][0] or len(corners) == 1:
            return corners[0][1] * (max(1.0, size / corners[0][0]) if len(corners) == 1 else 1)
        i = next((i for i in range(1, len(corners)) if size <= corners[i][0]), len(corners) - 1)
        (x0, y0), (x1, y1) = corners[i - 1], corners[i]
        return y0 + (size - x0) * (y1 - y0) / (x1 - x0)


@dataclass(frozen=True, slots=True)
class Table:
    """The parts of a route table that a page shows."""

    lines: list[Line]
    unavailable: list[Unavailable]


def spans_from_records(records: Iterable[Record]) -> list[Span]:
    """The spans according to records of the route itself."""
    known = {r.bytes: str(r.extra[CHOSEN]) for r in records if r.full_via == ROUTE and r.extra.get(CHOSEN)}
    return _spans(sorted((size, path) for size, path in known.items() if size > 0))


def spans_from_fastest(times: Mapping[int, Mapping[str, float]]) -> list[Span]:
    """The fastest path for each size that was measured (bytes -> path -> µs)."""
    known = {size: min(row, key=row.__getitem__) for size, row in times.items() if size > 0 and row}
    return _spans(sorted(known.items()))


def spans_from_table(lines: Sequence[Line], record: Record, sizes: Sequence[int]) -> list[Span]:
    """The path with the least cost for each size, from the table's lines for the case of a record.

    Empty if the table has no line for the case, or has several classes of links between such devices.
    """
    fitting = [line for line in lines if _fits(line, record)]
    positive = [size for size in sizes if size > 0]
    if not fitting or not positive or len({(line.source, line.target) for line in fitting}) > 1:
        return []
    low, high = math.log2(min(positive)), math.log2(max(positive))
    count = max(1, round((high - low) * _STEPS))
    looked_at = [2 ** (low + (high - low) * i / count) for i in range(count + 1)]
    return _spans([(size, min(fitting, key=lambda line: line.cost(size)).path) for size in looked_at])


def in_words(spans: Sequence[Span]) -> str:
    """Spans as text, "peer/store to 64 KiB, peer/copy from 1 MiB", with the sizes that were tried."""
    parts = []
    for before, span, after in zip([None, *spans], spans, [*spans[1:], None], strict=False):
        first, last = (size_text(_rounded(size)) for size in span.seen)
        near = before is not None and span.seen[0] < _NEAR * before.seen[1]
        ends = [f"from {first}"] if before and not near else []
        ends += [f"to {last}"] if after else []
        parts.append(" ".join([*(["then"] if near else []), span.path, *ends]))
    return ", ".join(parts)


def read_table(path: Path) -> Table:
    """The cost lines of a route table, and the unavailable paths. Raises TableError if it is not a table,
    OSError if it cannot be read.
    """
    if has_records(path):
        raise TableError(f"{path} has records, and is not a route table; name it without --table")
    try:
        table = json.loads(atomic_file.read(path, _MOST_BYTES))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is not JSON ({error}); a table is made by `peerway tune`") from None
    if not isinstance(table, dict) or table.get("format") != TABLE_FORMAT:
        raise TableError(
            f"{path} is not a route table (its 'format' is not '{TABLE_FORMAT}'); `peerway tune` makes one"
        )
    if table.get("version") != _VERSION:
        raise TableError(
            f"{path} is a route table of version {table.get('version')}, and this Peerway reads {_VERSION}; "
            "`peerway tune` makes a new one"
        )
    lines = [*_each(path, table, "costs", _line), *_each(path, table, "splits", _line)]
    return Table(
        lines, _each(path, table | {"unavailable": table.get("unavailable", [])}, "unavailable", _unavailable)
    )


_Entry = TypeVar("_Entry")


def _each(
    path: Path, table: Mapping[str, Any], kind: str, read: Callable[[Mapping[str, Any]], _Entry]
) -> list[_Entry]:
    entries = table.get(kind)
    if not isinstance(entries, list):
        raise TableError(f"{path}: '{kind}' cannot be read: it is not a list")
    parsed = []
    for i, entry in enumerate(entries):
        try:
            parsed.append(read(entry))
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            why = shortened(repr(error), 120)
            raise TableError(f"{path}: {kind}[{i}] cannot be read ({why})") from None
    return parsed


def _unavailable(entry: Mapping[str, Any]) -> Unavailable:
    source, target = str(entry["pair"]).split("->")
    return Unavailable(*(printable(str(word)) for word in (source, target, entry["path"], entry["why"])))


def _line(entry: Mapping[str, Any]) -> Line:
    corners = {float(point[0]): float(point[1]) for point in entry["points"]}
    for size, cost in corners.items():
        if not (1 <= size < 1 << 63 and 0 <= cost <= NUMBERS["p50_us"][1]):
            raise ValueError(f"{size:g} bytes in {cost:g} µs cannot be")
    path = entry.get("path") or " + ".join(
        f"{name} {share * 100 / 256:.0f} %" for name, share in entry["parts"]
    )
    source, target = str(entry["pair"]).split("->")
    names = ("op", "shape", "source", "target", "path")
    values = (entry["op"], entry["shape"], source, target, path)
    known: dict[str, Any] = {name: printable(str(value)) for name, value in zip(names, values, strict=True)}
    return Line(**known, corners=tuple(sorted(corners.items())))


def _fits(line: Line, record: Record) -> bool:
    kinds = (line.source, line.target.split("/")[0])
    return (line.op, line.shape, *kinds) == (record.op, record.shape, *memory_classes(record))


def memory_classes(record: Record) -> tuple[str, str]:
    """Source and target as tables name them. How memory is shared matters only at the far end."""
    source, target = (
        name if name == "host:malloc" else name.partition(":")[0] for name in (record.source, record.target)
    )
    if record.op == "put":
        return source.partition(":")[0], target
    return source, target.partition(":")[0]


def _spans(points: Iterable[tuple[float, str]]) -> list[Span]:
    """Join neighbours with the same path into one span. Two spans meet halfway on a logarithmic axis."""
    runs = []
    for path, run in groupby(points, key=lambda point: point[1]):
        sizes = [size for size, _ in run]
        runs.append((sizes[0], sizes[-1], path))
    ends = [math.sqrt(last * after) for (_, last, _), (after, _, _) in pairwise(runs)]
    firsts = [runs[0][0], *ends] if runs else []
    lasts = [*ends, runs[-1][1]] if runs else []
    return [
        Span(first, last, path, (low, high))
        for first, last, (low, high, path) in zip(firsts, lasts, runs, strict=True)
    ]


def _rounded(size: float) -> int:
    """Round to one part in sixteen, so that a border between measured sizes does not look exact."""
    step = 1 << max(0, math.floor(math.log2(size)) - 3)
    return round(size / step) * step
