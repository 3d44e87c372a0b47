"""The report of a trace on the terminal, and as a page that opens offline: timeline, plots, tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.printable import printable
from peerway_common.units import about_text, bandwidth_text, size_text
from peerway_measure.report.axes import tick_text, value_axis
from peerway_measure.report.node_types import page
from peerway_measure.report.page import scripts_of
from peerway_trace.tables import (
    Analysis,
    Bars,
    Distribution,
    Finding,
    Matrix,
    Scatter,
    Table,
    by_advice,
    ns_text,
)
from peerway_trace.timeline import CLASSES, MOST_EVENTS, Timeline, build

if TYPE_CHECKING:
    from rich.console import Console

    from peerway_trace.store import Trace

MOST_RANKS, MOST_POINTS = 64, 400
FINDINGS_SHOWN = 3  # so few that the timeline begins on the first screen; the others unfold
# For each unit, the format of its values and the base of its axis's ticks.
UNITS: dict[str, tuple[Callable[[float], str], int]] = {
    "time": (ns_text, 10), "size": (lambda value: size_text(int(value)), 2), "rate": (bandwidth_text, 10),
    "share": (lambda value: f"{value:.3g} %", 2),
}  # fmt: skip


def show(console: Console, analysis: Analysis) -> None:
    """Print a report."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    for line in analysis.heading:
        console.print(Text(line, style="bold"))
    console.print()
    for number, (first, *others) in enumerate(by_advice(analysis.findings), 1):
        if not others:
            console.print(Text(f"{number}. {first}"))
            continue
        console.print(Text(f"{number}. {first.text} {first.evidence}".rstrip()))
        for other in others:
            console.print(Text(f"   - {other.text}"))
        console.print(Text(f"   {first.todo}"))
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


def render(trace: Trace, analysis: Analysis, most: int = MOST_EVENTS) -> str:
    """The whole page as text, with at most this many events in its timeline."""
    drawn = build(trace, analysis.path, analysis.important, most) if len(trace) else None
    names = []
    if drawn:
        names += ["timeline-data.js", "timeline-draw.js", "timeline.js"]
    titles = [distribution.title for distribution in analysis.distributions]
    titles += [bars.title for bars in analysis.bars]
    if analysis.scatters or titles:
        names += ["plotly/plotly-basic.min.js", "trace-plots.js"]
    drawings = [_plot(scatter) for scatter in analysis.scatters]
    drawings += [_cdf(distribution) for distribution in analysis.distributions]
    drawings += [_bars(bars) for bars in analysis.bars]
    if analysis.matrix is not None:
        names.append("trace-matrix.js")
    plots = json.dumps(drawings, separators=(",", ":"))
    return page(
        "trace.html.j2",
        "trace.css",
        heading=[printable(line) for line in analysis.heading],
        findings=[
            [_printable_finding(finding) for finding in group] for group in by_advice(analysis.findings)
        ],
        findings_shown=FINDINGS_SHOWN,
        tables=[_printable(table) for table in analysis.tables],
        timeline=drawn,
        timeline_note=_text_of_timeline(drawn) if drawn else "",
        timeline_height=min(760, max(120, 56 + 26 * drawn.rows)) if drawn else 0,
        classes=CLASSES,
        scatters=[printable(scatter.path) for scatter in analysis.scatters],
        bursts=titles,
        plots=plots.replace("<", "\\u003c"),
        matrix=_matrix(analysis.matrix) if analysis.matrix is not None else None,
        measures=[measure.title for measure in _measures(analysis.matrix)]
        if analysis.matrix is not None
        else [],
        matrices=json.dumps(_matrices(analysis.matrix), separators=(",", ":")) if analysis.matrix else "",
        scripts=scripts_of(*names),
    )


def _text_of_timeline(drawn: Timeline) -> str:
    """What the page says about which part of the trace it shows."""
    size = about_text(len(drawn.data) + len(drawn.head))
    if drawn.shown == drawn.events:
        return f"All {drawn.events:,} events ({size})."
    windows = ", ".join(f"{ns_text(begin)} to {ns_text(end)}" for begin, end in drawn.windows[:8])
    more = f" and {len(drawn.windows) - 8} more" if len(drawn.windows) > 8 else ""
    return (
        f"{drawn.shown:,} of {drawn.events:,} events ({size}), from the intervals in which most time was "
        f"lost: {windows}{more}. The other {drawn.events - drawn.shown:,} are left out; grey shows how busy "
        "each thread was there. `peerway trace export` writes all of them."
    )


def _printable_finding(finding: Finding) -> Finding:
    return replace(
        finding,
        text=printable(finding.text),
        evidence=printable(finding.evidence),
        todo=printable(finding.todo),
    )


def _plot(of: Scatter) -> dict[str, Any]:
    """The messages and the curve, for trace-plots.js."""
    curve = None
    if of.curve is not None:
        sizes = np.unique(np.concatenate([of.sizes, of.curve.sizes.clip(of.sizes.min(), of.sizes.max())]))
        curve = _points(sizes, of.curve.at(sizes.astype(float)))
    every_ns = np.concatenate([of.ns, np.array(curve["ns"])]) if curve else of.ns
    return {
        "kind": "scatter", "messages": _points(of.sizes, of.ns), "curve": curve,
        "x": _ticks(of.sizes, 2, lambda value: size_text(int(value))), "y": _ticks(every_ns, 10, ns_text),
    }  # fmt: skip


def _cdf(of: Distribution) -> dict[str, Any]:
    """The share of values up to each value. If there are many values, only the quantiles."""
    shares = np.linspace(0, 1, min(len(of.values), MOST_POINTS))
    values = np.quantile(of.values * (100 if of.unit == "share" else 1), shares, method="inverted_cdf")
    text, base = UNITS[of.unit]
    return {
        "kind": "cdf", "axis": of.axis, "values": values.tolist(), "shares": (100 * shares).tolist(),
        "texts": [f"{100 * share:.3g} % up to {text(value)}" for share, value in zip(shares, values.tolist(),
        strict=True)],
        "x": _ticks(values, base, text),
    }  # fmt: skip


def _bars(of: Bars) -> dict[str, Any]:
    return {"kind": "bars", "axis": of.axis, "labels": of.labels, "counts": of.counts}


def _points(sizes: NDArray[Any], ns: NDArray[Any]) -> dict[str, Any]:
    texts = [f"{about_text(float(s))}, {ns_text(float(t))}" for s, t in zip(sizes, ns, strict=True)]
    return {"sizes": sizes.tolist(), "ns": [round(float(time), 1) for time in ns], "texts": texts}


def _ticks(values: NDArray[Any], base: int, text: Callable[[float], str], most: int = 7) -> dict[str, Any]:
    """Tick marks, as many as are needed to read values even within one decade; for sizes they are powers of
    two.
    """
    if base == 10:
        axis = value_axis(values.tolist(), lambda value: tick_text(text(value)))
        return {"values": axis["tickvals"], "texts": axis["ticktext"], "range": axis["range"]}
    powers = np.log(np.maximum(1.0, values.astype(float))) / np.log(base)
    low, high = int(np.floor(powers.min() + 1e-9)), int(np.ceil(powers.max() - 1e-9))
    chosen = [float(base) ** power for power in range(low, high + 1, max(1, -(-(high - low + 1) // most)))]
    ends = max(1.0, min(chosen[0], float(values.min()))) / 1.1, max(chosen[-1], float(values.max())) * 1.1
    return {"values": chosen, "texts": [text(tick) for tick in chosen], "range": np.log10(ends).tolist()}


def _printable(table: Table) -> Table:
    rows = [[printable(cell) for cell in row] for row in table.rows]
    return Table(table.title, table.columns, rows, table.note, table.texts)


@dataclass(frozen=True)
class _Measure:
    """A quantity that the matrix can show for each pair of ranks."""

    title: str
    values: NDArray[Any]
    text: Callable[[float], str]


def _measures(of: Matrix) -> list[_Measure]:
    return [
        _Measure("bytes", of.bytes, about_text),
        _Measure("messages", of.messages, lambda count: f"{count:,.0f}"),
        _Measure("bytes of the smallest message", of.smallest, about_text),
        _Measure("mean bytes of a message", of.mean, about_text),
        _Measure("bytes of the largest message", of.largest, about_text),
        _Measure("time of the transfers", of.ns, ns_text),
        _Measure("rate", of.rate, bandwidth_text),
    ]


def _cells(of: _Measure) -> list[list[tuple[str, int]]]:
    """The cells as text and as a share of the largest in percent; for large jobs only the first ranks."""
    shown = of.values[:MOST_RANKS, :MOST_RANKS]
    most = float(shown.max()) or 1.0
    return [
        [(of.text(float(v)) if v else "", round(100 * float(v) / most)) for v in row.tolist()]
        for row in shown
    ]


def _matrix(of: Matrix) -> list[list[tuple[str, int]]]:
    """The quantity that the page shows at first."""
    return _cells(_measures(of)[0])


def _matrices(of: Matrix) -> list[list[list[tuple[str, int]]]]:
    """All quantities, for trace-matrix.js."""
    return [_cells(measure) for measure in _measures(of)]
