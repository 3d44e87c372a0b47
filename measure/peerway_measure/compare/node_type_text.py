"""The table by node type as text and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from peerway_common.units import counted
from peerway_measure.compare.dependence import LEAST
from peerway_measure.compare.metric import named
from peerway_measure.compare.node_types import Row, Side
from peerway_measure.compare.sides import BEFORE_AFTER, Sides
from peerway_measure.compare.statistics import runs_needed
from peerway_measure.records import STATE_WANTED

_COLUMNS = (
    "test",
    "via",
    "shape",
    "bytes",
    "ranks",
    "node_type",
    "n_before",
    "n_after",
    "nodes_before",
    "nodes_after",
    "unit",
    "mean_before",
    "mean_after",
    "speedup_percent",
    "median_before",
    "median_after",
    "spread_before_percent",
    "spread_after_percent",
    "samples_before",
    "samples_after",
    "widened",
    "sample_speedup_percent",
    "low_percent",
    "high_percent",
    "p",
    "verdict",
    "besides",
    "side_before",
    "side_after",
)
_NOTABLE = 1.1  # how many times as wide an interval is worth a note
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # characters with which a spreadsheet's formula begins


def head(sides: Sides) -> tuple[str, ...]:
    """The names of the columns."""
    return (
        "node type",
        "n",
        *(f"mean {side}" for side in sides),
        "speed-up of means",
        *(f"median {side}" for side in sides),
        "speed-up of samples",
        "95 %",
        "p",
        "verdict",
    )


def lines(rows: Sequence[Row], sides: Sides = BEFORE_AFTER) -> Iterator[str]:
    """The table of each test, and notes below it."""
    for title, group in groupby(rows, key=title_of):
        several = list(group)
        cells = [head(sides), *(cells_of(row) for row in several)]
        widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
        yield title
        for line in cells:
            yield (
                "  "
                + "  ".join(c + " " * (w - cell_len(c)) for c, w in zip(line, widths, strict=True)).rstrip()
            )
        for row in several:
            yield from (f"  {row.node_type}: {note}" for note in notes_of(row, sides))
        yield ""
    yield (
        "n: measurements. Published tables have means; the 95 % interval and p are those of the speed-up of "
        "samples, which is the median of the ratios of all pairs of samples, not the ratio of the medians. "
        "p is corrected for all rows."
    )
    if few := too_few(rows):
        yield few


def too_few(rows: Sequence[Row]) -> str:
    """The number of rows that have too few samples for a verdict, and the number of samples needed, as text;
    "" if there are no such rows.
    """
    fewest, alone, needed = [min(row.samples) for row in rows], runs_needed(1), runs_needed(len(rows))
    if count := sum(n < alone for n in fewest):
        least, effect = alone, "a difference from chance"
    elif count := sum(n < needed for n in fewest):
        least, effect = needed, f"a change of one row alone among {len(rows)}"
    else:
        return ""
    return (
        f"{count} of {counted(len(rows), 'row')} {'has' if count == 1 else 'have'} fewer than {least} rounds "
        f"or runs on a side, too few to tell {effect}."
    )


def title_of(row: Row) -> str:
    """What the rows of one table have in common, and the names of both sides."""
    return f"{named(row.pair.key.as_dict())} · {row.metric.name}"


def notes_of(row: Row, sides: Sides = BEFORE_AFTER) -> list[str]:
    """What readers must know before they rely on a row."""
    notes = []
    if row.verdict == "not attributable":
        notes.append(f"not called an effect of the intended change: {'; '.join(row.besides)}")
    elif row.verdict == "confounded with time":
        notes.append(
            f"one side was measured after the other, in fewer than {LEAST} rounds a side: too few to tell an "
            "effect from what changed with time; measure both in turn, or more rounds"
        )
    if row.besides and row.verdict != "not attributable":
        notes.append(f"also changed: {'; '.join(row.besides)}")
    if row.omitted:
        notes.append(f"only one side has {', '.join(row.omitted)}; the samples are without")
    other = [
        f"{side}: {sum(STATE_WANTED in r.extra for r in several)} of {len(several)}"
        for several, side in zip((row.pair.before, row.pair.after), sides, strict=True)
        if any(STATE_WANTED in r.extra for r in several)
    ]
    if other:
        notes.append(f"the caches did not hold what the test is named after, {'; '.join(other)}")
    if row.widened > _NOTABLE:
        notes.append(
            f"the interval is {row.widened:.1f} times as wide as of independent rounds: neighbouring ones "
            "were alike, as under a load that drifts"
        )
    return notes


def cells_of(row: Row) -> tuple[str, ...]:
    """The cells of a row as text."""
    text = row.metric.text
    n = str(row.before.n) if row.before.n == row.after.n else f"{row.before.n}/{row.after.n}"
    interval = "none" if row.low is None or row.high is None else f"[{row.low:+.1f}, {row.high:+.1f}]"
    p = "-" if row.p is None else "<0.001" if row.p < 0.001 else f"{row.p:.3f}"
    return (
        row.node_type,
        n,
        text(row.before.mean),
        text(row.after.mean),
        _signed(row.mean_percent),
        _middle(row, row.before),
        _middle(row, row.after),
        _signed(row.percent),
        interval,
        p,
        row.verdict,
    )


def as_csv(rows: Sequence[Row], sides: Sides = BEFORE_AFTER) -> str:
    """All numbers, unrounded. The first line names the columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        b, a = row.before, row.after
        writer.writerow(
            _inert(value)
            for value in (
                *(row.pair.key.get(name) for name in _COLUMNS[:5]),
                row.node_type,
                b.n,
                a.n,
                b.nodes,
                a.nodes,
                row.metric.field,
                b.mean,
                a.mean,
                row.mean_percent,
                b.median,
                a.median,
                _times100(b.spread),
                _times100(a.spread),
                *row.samples,
                row.widened,
                row.percent,
                row.low,
                row.high,
                row.p,
                row.verdict,
                "; ".join(row.besides),
                *sides,
            )
        )
    return out.getvalue()


def _inert(value: object) -> object:
    """The text, changed so that a spreadsheet does not take it for a formula. Names come from outside."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _middle(row: Row, side: Side) -> str:
    return row.metric.text(side.median) + (f" ±{side.spread * 100:.1f}%" if side.spread is not None else "")


def _signed(percent: float | None) -> str:
    return "-" if percent is None else f"{percent:+.1f} %"


def _times100(share: float | None) -> float | None:
    return None if share is None else share * 100
