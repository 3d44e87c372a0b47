"""A comparison on the terminal: one table a path and shape, a row a size (or host... with --by)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from peerway.compare.statistics import FEW, Comparison, Side
from peerway.cube import cube_face, shape_class
from peerway.units import size_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import Console

    from peerway.compare.groups import Key, Pair

_STYLES = {"faster": "green", "slower": "red", "no difference": "dim", "unknown": ""}
_ONE_SIDED_SHOWN = 8
_ROOMY = 96  # columns
_MANY = 20  # groups, of which a twentieth differ by chance


def show(console: Console, comparisons: Sequence[Comparison], by: Sequence[str]) -> None:
    """Prints all tables, then what to know when reading them."""
    ordered = sorted(comparisons, key=lambda c: _order(c.pair.key, by))
    for title, rows in groupby(ordered, key=lambda c: _title(c, by)):
        console.print(Text(title, style="bold"))
        console.print(_table(list(rows), by, roomy=console.width >= _ROOMY))
        console.print()
    for note in notes(comparisons):
        console.print(Text(f"note: {note}", style="dim"))


def show_one_sided(console: Console, pairs: Iterable[Pair]) -> None:
    """Lists the groups that only one side has."""
    for side, other in (("before", "after"), ("after", "before")):
        names = [one_line(pair.key) for pair in pairs if not getattr(pair, other)]
        if not names:
            continue
        console.print(Text(f"only {side} has:", style="yellow"))
        for name in names[:_ONE_SIDED_SHOWN]:
            console.print(Text(f"  {name}"))
        if len(names) > _ONE_SIDED_SHOWN:
            console.print(Text(f"  and {len(names) - _ONE_SIDED_SHOWN} more (all with --format json)"))


def notes(comparisons: Sequence[Comparison]) -> list[str]:
    """What to know before trusting the numbers."""
    fewest = [min(c.before.n, c.after.n) for c in comparisons]
    single, few = sum(n == 1 for n in fewest), sum(1 < n < FEW for n in fewest)
    lines = []
    if single:
        lines.append(
            f"{single} of {len(fewest)} groups have one record on a side: no interval is possible. "
            f"Get more with `peerway bench --repeat {FEW}` (or more)."
        )
    if few:
        lines.append(
            f"{few} of {len(fewest)} groups have fewer than {FEW} records on a side: their intervals are too "
            f"narrow. Get more with `peerway bench --repeat {FEW}` (or more)."
        )
    if len(fewest) >= _MANY:
        lines.append(f"at 95 %, about {len(fewest) / 20:.0f} of {len(fewest)} groups differ by chance alone.")
    return lines


def _table(rows: Sequence[Comparison], by: Sequence[str], roomy: bool) -> Table:
    table = Table(box=None, padding=(0, 2 if roomy else 1, 0, 0), header_style="dim")
    table.add_column("  " + (", ".join(by) or "size"), overflow="fold", max_width=40 if roomy else 24)
    table.add_column("n", justify="right")
    for side in ("before", "after"):
        table.add_column(side, justify="right", no_wrap=True)
    table.add_column("speed-up", no_wrap=True)
    table.add_column("95 %", no_wrap=True)
    table.add_column("p", justify="right", no_wrap=True)
    for c in rows:
        cells = ("  " + _row_name(c, by), f"{c.before.n}/{c.after.n}", _side(c, c.before), _side(c, c.after))
        speedup = Text(_speedup(c), style=_STYLES[c.verdict])
        table.add_row(*map(Text, cells), speedup, Text(_interval(c)), Text(_p(c.p)))
    return table


def _title(c: Comparison, by: Sequence[str]) -> str:
    """All that the rows of one table share."""
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
        parts.append(f"{fixed['ranks']} ranks")
    return " · ".join([*parts, c.metric.name])


def _row_name(c: Comparison, by: Sequence[str]) -> str:
    if not by:
        face = cube_face(str(c.pair.key.get("shape") or ""))
        size = size_text(int(c.pair.key.get("bytes") or 0))
        return f"N={face.n} {size}" if face else size
    first = c.pair.before[0]
    values = [size_text(first.bytes) if name == "bytes" else str(getattr(first, name)) for name in by]
    if list(by) == ["host"] and first.device:
        values.append(f"({first.device})")
    return " ".join(value or "none" for value in values)


def _side(c: Comparison, side: Side) -> str:
    return c.metric.text(side.median) + (f" ±{_percent(side.spread)}" if side.spread is not None else "")


def _speedup(c: Comparison) -> str:
    if c.speedup is None:
        return "no ratio"  # a median is 0
    return "no difference" if c.verdict == "no difference" else f"{_signed(c.speedup)} %"


def _interval(c: Comparison) -> str:
    return "none" if c.low is None or c.high is None else f"[{_signed(c.low)}, {_signed(c.high)}]"


def _signed(ratio: float) -> str:
    percent = (ratio - 1) * 100
    return f"{percent:+.1f}" if abs(percent) < 10 else f"{percent:+.0f}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%" if 0 < share < 0.01 else f"{share * 100:.0f}%"


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def _order(key: Key, by: Sequence[str]) -> tuple[tuple[bool, str | int], ...]:
    """Titles first, then rows by size or by the asked fields; whole numbers in their own order."""
    values = key.as_dict()
    shape = values.get("shape")
    if shape is not None and not by:
        values["shape"] = shape_class(str(shape))
    last = list(by) or ["bytes"]
    names = [name for name in values if name not in last] + [name for name in last if name in values]
    return tuple((isinstance(values[name], str), values[name]) for name in names)


def one_line(key: Key) -> str:
    """A group in words."""
    return ", ".join(_fields(key))


def _fields(key: Key) -> Iterator[str]:
    for name, value in key.as_dict().items():
        yield size_text(value) if name == "bytes" and isinstance(value, int) else f"{name} {value}"
