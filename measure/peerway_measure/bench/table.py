"""Makes the tables of `peerway bench`: one for each test, shape and pair, with a row for each size and a
column for each way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from peerway_common.units import bandwidth_text, rate_text, size_text, time_text
from peerway_measure.bench.kinds import KINDS, LIMITS
from peerway_measure.cube import computed_bytes, cube_face, shape_class

if TYPE_CHECKING:
    from peerway_measure.records import Record

_FACES = {"i": "contiguous face", "j": "face of rows", "k": "face of single doubles"}
_UNITS = {"bandwidth_MBps": bandwidth_text, "messages_per_s": rate_text}
_COMPUTE = "messages between computations"
_MORE_IS_BETTER = frozenset(_UNITS)
_NOTHING = "–"
GAP = 2  # spaces between columns


@dataclass(frozen=True, slots=True)
class Block:
    """The records of one table."""

    test: str
    shape: str
    source: str
    target: str
    records: list[Record]


def blocks(records: Iterable[Record]) -> list[Block]:
    """The records of each test, shape class and pair of memories together, in the order in which they first
    occur.
    """
    by_key: dict[tuple[str, str, str, str], Block] = {}
    for record in records:
        shape = _COMPUTE if computed_bytes(record.shape) else shape_class(record.shape)
        key = (record.test, shape, record.source, record.target)
        by_key.setdefault(key, Block(*key, [])).records.append(record)
    return list(by_key.values())


def column_of(block: Block, statistic: str | None) -> str:
    """The field of the records that a block's table shows. For latencies `statistic` replaces the median."""
    column = KINDS[block.test].column if block.test in KINDS else "p50_us"
    return statistic if statistic and column == "p50_us" else column


def tables(block: Block, width: int, statistic: str | None = None) -> Iterator[Table]:
    """The block's table, divided into several if it is wider than `width` characters.

    `statistic` is the field that latency tests show ("p50_us", "p99_us", ...); bandwidths are always of the
    median. The best of each row is bold, and a value that was not validated is marked.
    """
    column, rows = column_of(block, statistic), _rows(block)
    columns: dict[str, list[Text]] = {}
    for via in dict.fromkeys(record.via for record in block.records):
        columns[via] = [
            _cell(_records_at(block, via, size), column, _best(_records_at(block, None, size), column))
            for _, size in rows
        ]
    first = max(len(label) for label, _ in rows) + GAP
    group: list[str] = []
    used = first
    for via, cells in columns.items():
        needs = max(len(via), *(len(cell) for cell in cells)) + GAP
        if group and used + needs > width:
            yield _table(rows, {name: columns[name] for name in group})
            group, used = [], first
        group.append(via)
        used += needs
    yield _table(rows, {name: columns[name] for name in group})


def _table(rows: Sequence[tuple[str, int]], columns: dict[str, list[Text]]) -> Table:
    table = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim")
    table.add_column("size", justify="right", no_wrap=True)
    for via in columns:
        table.add_column(via, justify="right", no_wrap=True)
    for index, (label, _) in enumerate(rows):
        table.add_row(label, *(cells[index] for cells in columns.values()))
    return table


def _records_at(block: Block, via: str | None, size: int) -> list[Record]:
    return [record for record in block.records if _size(record) == size and via in (None, record.via)]


def _size(record: Record) -> int:
    """The size of a record's row: the bytes of the message, or the bytes computed on."""
    return computed_bytes(record.shape) or record.bytes


def title(block: Block, statistic: str | None = None) -> str:
    """The heading of a block's table."""
    column = column_of(block, statistic)
    face = block.shape.removeprefix("cube/")
    shape = _FACES.get(face, block.shape.removeprefix("halo:"))
    words = {"p50_us": "one way, median", "p99_us": "one way, 99th percentile", "min_us": "one way, least"}
    if block.test in KINDS and KINDS[block.test].one_way_trips == 1:
        words = {name: text.replace("one way", "whole operation") for name, text in words.items()}
    if block.test in KINDS and KINDS[block.test].policies:
        words = {name: f"{text}, CPU" for name, text in words.items()}
    kind = {"bandwidth_MBps": "bandwidth", "messages_per_s": "messages a second"} | words
    return f"{block.test}: {shape}, {block.source} to {block.target} ({kind.get(column, column)})"


def _rows(block: Block) -> Sequence[tuple[str, int]]:
    rows: dict[int, str] = {}
    for record in sorted(block.records, key=_size):
        face = cube_face(record.shape)
        rows[_size(record)] = (f"N={face.n}  " if face else "") + size_text(_size(record))
    return [(label, size) for size, label in rows.items()]


def _best(records: Sequence[Record], column: str) -> float | None:
    values = [getattr(r, column) for r in records if r.validated and r.via not in LIMITS]
    if not values:
        return None
    best: float = max(values) if column in _MORE_IS_BETTER else min(values)
    return best


def _cell(records: Sequence[Record], column: str, best: float | None) -> Text:
    if not records:
        return Text(_NOTHING, style="dim")
    value = median(getattr(record, column) for record in records)
    text = _UNITS.get(column, time_text)(value)
    # A test of wait policies measures both the latency and the CPU time.
    if records[0].test in KINDS and KINDS[records[0].test].policies:
        text += f" {median(record.cpu_percent or 0 for record in records):.0f} %"
    if not all(record.validated for record in records):
        return Text(f"{text} WRONG DATA", style="bold red")
    return Text(text, style="bold" if best is not None and value == best else "")
