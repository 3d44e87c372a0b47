"""The tables of a comparison on the terminal: a table for each path and shape, a row for each size (or for
each host etc. with --by).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from peerway_common.units import size_text
from peerway_measure.compare.metric import ranks_text
from peerway_measure.compare.order import TURNS
from peerway_measure.compare.sides import BEFORE_AFTER, Sides
from peerway_measure.compare.statistics import Comparison, Side, runs_needed
from peerway_measure.cube import cube_face, shape_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from peerway_measure.compare.groups import Key, Pair

_STYLES = {
    "faster": "green", "slower": "red", "no difference": "dim", "unknown": "",
    "confounded with time": "yellow",
}  # fmt: skip
_ONE_SIDED_SHOWN = 8
_ROOMY = 96  # from this number of columns on, tables show more
_RIGHT = (1, 2, 3, 6)  # runs, both sides and p: these columns are aligned to the right
_TIMES = 10  # from this ratio on, text is "×12" instead of a percentage
_SPEEDUP = 4  # the index of the column with the verdict


def show(
    console: Console, comparisons: Sequence[Comparison], by: Sequence[str], sides: Sides = BEFORE_AFTER
) -> None:
    """Print all tables, then notes for reading them."""
    ordered = sorted(comparisons, key=lambda c: _order(c.pair.key, by))
    for title, rows in groupby(ordered, key=lambda c: _title(c, by)):
        console.print(Text(title, style="bold"))
        console.print(_table(list(rows), by, sides, roomy=console.width >= _ROOMY), soft_wrap=True)
        console.print()
    for note in notes(comparisons):
        console.print(Text(f"note: {note}", style="dim"))


def show_one_sided(console: Console, pairs: Iterable[Pair], sides: Sides = BEFORE_AFTER) -> None:
    """List the groups that only one side has."""
    for side, other in ((sides.before, "after"), (sides.after, "before")):
        names = [one_line(pair.key) for pair in pairs if not getattr(pair, other)]
        if not names:
            continue
        console.print(Text(f"only {side} has:", style="yellow"))
        for name in names[:_ONE_SIDED_SHOWN]:
            console.print(Text(f"  {name}"))
        if len(names) > _ONE_SIDED_SHOWN:
            console.print(Text(f"  and {len(names) - _ONE_SIDED_SHOWN} more (all with --format json)"))


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know before relying on the numbers."""
    fewest = [min(c.samples) for c in comparisons]
    unnamed = sum(not record.run for c in comparisons for record in (*c.pair.before, *c.pair.after))
    alone, needed = runs_needed(1), runs_needed(len(comparisons))
    lines = []
    if few := sum(n < alone for n in fewest):
        lines.append(
            f"{few} of {len(fewest)} groups have fewer than {alone} runs on a side, too few to tell a "
            f"difference from chance. --repeat {needed} makes enough."
        )
    elif few := sum(n < needed for n in fewest):
        lines.append(
            f"{few} of {len(fewest)} groups have fewer than {needed} runs on a side, too few to tell a "
            f"change of one group alone among {len(fewest)}. --repeat {needed} makes enough."
        )
    if unnamed:
        lines.append(
            f"{unnamed} records do not name their run, and each counts as one. If they came from the same "
            "ranks, the differences shown here may be chance."
        )
    if confounded := sum(c.verdict == "confounded with time" for c in comparisons):
        are = "is" if confounded == 1 else "are"
        lines.append(
            f"(time): {confounded} of {len(comparisons)} groups {are} confounded with time. One side was "
            "measured after the other, and what changed meanwhile (clocks, temperature, other work) looks "
            f"like a difference. Measure both sides in turn, {TURNS} times or more; where that cannot be, "
            "measure the first side twice and compare these two (A/A), which shows what time alone does."
        )
    if turns := sum(c.samples != (c.before.runs, c.after.runs) for c in comparisons):
        lines.append(
            f"in {turns} of {len(comparisons)} groups several runs of one side follow each other, and count "
            "as one sample: what lasts longer than a run is in all of them. Change sides after each run."
        )
    if len(fewest) > 1:
        lines.append(
            f"p is corrected for {len(fewest)} groups (Benjamini and Hochberg): of the groups shown as "
            "different, about one in twenty is so by chance. The intervals are of each group alone."
        )
    return lines


def _table(rows: Sequence[Comparison], by: Sequence[str], sides: Sides, roomy: bool) -> Text:
    """A table as one text, with columns as wide as needed. Tables of thousands of rows are common, and rich's
    own tables take a millisecond for each row.
    """
    head = ("  " + (", ".join(by) or "size"), "runs", *sides, "speed-up", "95 %", "p")
    lines = [head, *(_cells(c, by) for c in rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    gap = " " * (2 if roomy else 1)
    drawn = Text()
    for number, line in enumerate(lines):
        blanks = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
        padded = [
            blank + cell if place in _RIGHT else cell + blank
            for place, (cell, blank) in enumerate(zip(line, blanks, strict=True))
        ]
        if number == 0:
            drawn.append(gap.join(padded).rstrip(), style="dim")
            continue
        drawn.append("\n" + gap.join(padded[:_SPEEDUP]) + gap)
        drawn.append(padded[_SPEEDUP], style=_STYLES[rows[number - 1].verdict])
        drawn.append(gap + gap.join(padded[_SPEEDUP + 1 :]))
    return drawn


def _cells(c: Comparison, by: Sequence[str]) -> tuple[str, ...]:
    numbers = (f"{c.before.runs}/{c.after.runs}", _side(c, c.before), _side(c, c.after))
    return (f"  {_row_name(c, by)}", *numbers, _speedup(c), _interval(c), _p(c.p_adjusted))


def _title(c: Comparison, by: Sequence[str]) -> str:
    """What the rows of one table have in common."""
    fixed = {name: value for name, value in c.pair.key.as_dict().items() if name not in by}
    shape = str(fixed.pop("shape", ""))
    parts = [str(fixed.get(name)) for name in ("test", "via") if name in fixed]
    if by:
        parts += [size_text(int(fixed["bytes"]))] if "bytes" in fixed else []
        parts += [shape] if shape else []
    else:
        parts += [shape_class(shape)] if shape else []
    if "source" in fixed or "target" in fixed:
        parts.append(f"{fixed.get('source', 'any')} to {fixed.get('target', 'any')}")
    if "ranks" in fixed:
        parts.append(ranks_text(str(fixed.get("test", "")), int(fixed["ranks"])))
    return " · ".join([*parts, c.metric.name])


def _row_name(c: Comparison, by: Sequence[str]) -> str:
    if not by:
        face = cube_face(str(c.pair.key.get("shape") or ""))
        size = size_text(int(c.pair.key.get("bytes") or 0))
        return f"N={face.n} {size}" if face else size
    first = c.pair.before[0]
    values = [
        size_text(first.bytes) if name == "bytes" else str(c.pair.key.get(name) or getattr(first, name))
        for name in by
    ]
    if list(by) == ["host"] and first.device:
        values.append(f"({first.device})")
    return " ".join(value or "none" for value in values)


def _side(c: Comparison, side: Side) -> str:
    return c.metric.text(side.median) + (f" ±{_percent(side.spread)}" if side.spread is not None else "")


def _speedup(c: Comparison) -> str:
    if c.speedup is None:
        return "no ratio"  # the median of a side is 0
    if c.verdict == "no difference":
        return "no difference"
    return speedup_text(c.speedup) + (" (time)" if c.verdict == "confounded with time" else "")


def _interval(c: Comparison) -> str:
    return "none" if c.low is None or c.high is None else f"[{signed(c.low)}, {signed(c.high)}]"


def speedup_text(ratio: float) -> str:
    """ "+12 %", "×40"."""
    return signed(ratio) + (" %" if ratio < _TIMES else "")


def signed(ratio: float) -> str:
    """The same without the unit, for the ends of an interval."""
    if ratio >= _TIMES:
        return f"×{ratio:.0f}"
    percent = (ratio - 1) * 100
    return f"{percent:+.1f}" if abs(percent) < 10 else f"{percent:+.0f}"


def _percent(share: float) -> str:
    if share >= _TIMES:
        return f"{share:.0f}×"
    return f"{share * 100:.1f}%" if 0 < share < 0.01 else f"{share * 100:.0f}%"


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _order(key: Key, by: Sequence[str]) -> tuple[tuple[bool, str | int], ...]:
    """The sort key of a row: its title, then its size or the requested fields. Whole numbers are sorted by
    value.
    """
    values = key.as_dict()
    shape = values.get("shape")
    if shape is not None and not by:
        values["shape"] = shape_class(str(shape))
    last = list(by) or ["bytes"]
    names = [name for name in values if name not in last] + [name for name in last if name in values]
    return tuple((isinstance(values[name], str), values[name]) for name in names)


def one_line(key: Key) -> str:
    """A group as text."""
    return ", ".join(_fields(key))


def _fields(key: Key) -> Iterator[str]:
    for name, value in key.as_dict().items():
        yield size_text(value) if name == "bytes" and isinstance(value, int) else f"{name} {value}"
