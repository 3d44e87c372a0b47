"""The report of a trace on the terminal, and as a page that opens offline and needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from peerway.printable import printable
from peerway.report.node_types import page
from peerway.trace.rings import Kind
from peerway.trace.tables import Analysis, Scatter, Table, ns_text
from peerway.units import about_text, size_text

if TYPE_CHECKING:
    from rich.console import Console

    from peerway.trace.store import Trace

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 300, 64, 34
MOST_RANKS, BINS = 64, 280


def show(console: Console, analysis: Analysis) -> None:
    """Print a report."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    for line in analysis.heading:
        console.print(Text(line, style="bold"))
    console.print()
    for number, line in enumerate(analysis.findings, 1):
        console.print(Text(f"{number}. {line}"))
    if not analysis.findings:
        console.print(Text("Nothing stands out."))
    for table in analysis.tables:
        if not table.rows:
            continue
        console.print()
        drawn = RichTable(title=table.title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
        for number, name in enumerate(table.columns):
            drawn.add_column(name, justify="right" if number >= table.texts else "left")
        for row in table.rows:
            drawn.add_row(*row)
        console.print(drawn)
        if table.note:
            console.print(Text(table.note, style="dim"))


def render(trace: Trace, analysis: Analysis) -> str:
    """The whole page as text."""
    return page(
        "trace.html.j2",
        heading=[printable(line) for line in analysis.heading],
        findings=[printable(line) for line in analysis.findings],
        tables=[_printable(table) for table in analysis.tables],
        timeline=timeline(trace) if len(trace) else None,
        scatters=[(printable(one.path), scatter(one)) for one in analysis.scatters],
        matrix=_matrix(analysis.matrix) if analysis.matrix is not None else None,
    )


def _printable(table: Table) -> Table:
    rows = [[printable(cell) for cell in row] for row in table.rows]
    return Table(table.title, table.columns, rows, table.note, table.texts)


def _matrix(volume: NDArray[Any]) -> list[list[tuple[str, int]]]:
    """Cells of text and a share of the largest in percent; of larger jobs the first ranks."""
    shown = volume[:MOST_RANKS, :MOST_RANKS]
    most = float(shown.max()) or 1.0
    return [[(about_text(float(v)) if v else "", round(100 * float(v) / most)) for v in row] for row in shown]


def timeline(trace: Trace) -> Markup:
    """How much of the time each rank was inside operations, over the time: a lane for each rank."""
    requests = (Kind.REGION, Kind.SENT, Kind.RECEIVED)
    calls = ~np.isin(trace["kind"], requests)
    rank = trace.rank
    ranks = [one for one in trace.ranks if one >= 0][:MOST_RANKS]
    span = int((trace["begin"] + trace["duration"]).max()) or 1
    edges = np.linspace(0, span, BINS + 1)
    wide, high = (WIDTH * 2 - LEFT) / BINS, 16
    size = high * len(ranks) + BOTTOM
    parts = [f'<svg viewBox="0 0 {WIDTH * 2} {size}" class="lanes" role="img" aria-label="ranks over time">']
    for lane, one in enumerate(ranks):
        own = calls & (rank == one)
        inside = np.diff(covered(trace["begin"][own], trace["duration"][own], edges)) / (span / BINS)
        for place in np.flatnonzero(inside > 0.005):
            share = min(1.0, float(inside[place]))
            parts.append(
                f'<rect x="{LEFT + place * wide:.1f}" y="{lane * high}" width="{wide + 0.1:.1f}" '
                f'height="{high - 2}" class="busy" opacity="{share:.2f}"/>'
            )
        parts.append(f'<text x="{LEFT - 6}" y="{lane * high + 11}" text-anchor="end">{one}</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        anchor = "end" if share == 1 else "start"
        at = LEFT + share * (WIDTH * 2 - LEFT)
        text = escape(ns_text(share * span))
        parts.append(f'<text x="{at:.0f}" y="{size - 10}" text-anchor="{anchor}">{text}</text>')
    return Markup("".join(parts) + "</svg>")  # all text in it was escaped


def covered(begin: NDArray[Any], duration: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    """How long intervals had lasted, in all, at some times."""
    total = np.zeros(len(times))
    for edges, sign in ((np.sort(begin), 1.0), (np.sort(begin + duration), -1.0)):
        before = np.searchsorted(edges, times)
        sums = np.concatenate([[0.0], np.cumsum(edges, dtype=float)])
        total += sign * (before * times - sums[before])
    return total


def scatter(of: Scatter) -> Markup:
    """Time over size, both logarithmic, with the measured curve."""
    curve_ns = of.curve.at(np.sort(of.sizes).astype(float)) if of.curve is not None else np.empty(0)
    x = _Scale(of.sizes, 2, LEFT, WIDTH - 20)
    y = _Scale(np.concatenate([of.ns, curve_ns]), 10, HEIGHT - BOTTOM, 10)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" class="points" role="img" aria-label="{escape(of.path)}">']
    for value in y.ticks():
        at = y.at(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH}"/>')
        parts.append(
            f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{escape(ns_text(value))}</text>'
        )
    for value in x.ticks(5):
        text = escape(size_text(int(value)))
        parts.append(f'<text x="{x.at(value):.1f}" y="{HEIGHT - 12}" text-anchor="middle">{text}</text>')
    dots = "".join(f"M{x.at(s):.1f} {y.at(t):.1f}h0" for s, t in zip(of.sizes, of.ns, strict=True))
    parts.append(f'<path class="dots of-0" d="{dots}"/>')
    if of.curve is not None:
        points = zip(np.sort(of.sizes), curve_ns, strict=True)
        line = "L".join(f"{x.at(s):.1f} {y.at(t):.1f}" for s, t in dict.fromkeys(points))
        parts.append(f'<path class="curve" d="M{line}"/>')
    return Markup("".join(parts) + "</svg>")  # all text in it was escaped


class _Scale:
    """Logarithmic, between powers of a base that enclose all values."""

    def __init__(self, values: NDArray[Any] | Sequence[float], base: int, first: float, last: float) -> None:
        powers = np.log(np.maximum(1.0, np.asarray(values, dtype=float))) / np.log(base)
        self._base = base
        self._low = int(np.floor(np.min(powers) + 1e-9))
        self._high = max(self._low + 1, int(np.ceil(np.max(powers) - 1e-9)))
        self._first, self._last = first, last

    def at(self, value: float) -> float:
        """The coordinate of a value."""
        power = np.log(max(1.0, float(value))) / np.log(self._base)
        part = (power - self._low) / (self._high - self._low)
        return float(self._first + part * (self._last - self._first))

    def ticks(self, most: int = 8) -> list[float]:
        """Powers of the base, from end to end."""
        step = max(1, -(-(self._high - self._low + 1) // most))
        return [float(self._base) ** power for power in range(self._low, self._high + 1, step)]
