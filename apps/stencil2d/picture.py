"""Draws a study in one HTML file: the time of a step by ranks and by size, and its phases."""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path
from statistics import median

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from peerway_measure import records
from peerway_measure.records import Record

TITLES = ("weak scaling: a step of the smallest lattice", "a step, by lattice", "phases alone, most ranks")
PHASES = {"interior": "#4c78a8", "boundary": "#72b7b2", "exchange": "#f58518"}
PATTERNS = {"interior": "", "boundary": "/", "exchange": "x"}
COLOURS = (
    *("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#9d755d"),
    *("#ff9da6", "#bab0ac", "#eeca3b", "#1f77b4", "#8c564b", "#2ca02c"),
)


def write(records: list[Record], path: Path) -> None:
    """Draw the records of the test stencil2d."""
    mine = [record for record in records if record.test == "stencil2d"]
    vias = list(dict.fromkeys(record.via for record in mine))
    colour = {via: COLOURS[i % len(COLOURS)] for i, via in enumerate(vias)}
    figure = make_subplots(rows=3, cols=1, subplot_titles=TITLES, vertical_spacing=0.09)
    for via in vias:
        of_via = [record for record in mine if record.via == via]
        figure.add_trace(_by_ranks(of_via, _smallest(mine), colour[via]), row=1, col=1)
        figure.add_trace(_by_lattice(of_via, mine, colour[via]), row=2, col=1)
    for via in vias:
        for trace in _phases([record for record in mine if record.via == via], mine):
            figure.add_trace(trace, row=3, col=1)
    for row in (1, 2, 3):
        figure.update_yaxes(type="log", title_text="µs", row=row, col=1)
    figure.update_xaxes(title_text="ranks", type="category", row=1, col=1)
    first = mine[0]
    where = f"{first.device} · {first.host} · {first.time} · Peerway {first.version}"
    figure.update_layout(
        title=f"stencil2d<br><sub>{escape(where)}</sub>", height=1400, template="plotly_white"
    )
    figure.write_html(path, include_plotlyjs=True)


def _by_ranks(of_via: list[Record], shape: str, colour: str) -> go.Scatter:
    points: dict[int, list[float]] = {}
    for record in of_via:
        if record.shape == shape:
            points.setdefault(record.ranks, []).append(record.p50_us)
    ranks = sorted(points)
    values = [median(points[n]) for n in ranks]
    via, line = escape(of_via[0].via), {"color": colour}
    names = [str(n) for n in ranks]
    return go.Scatter(x=names, y=values, name=via, legendgroup=via, mode="lines+markers", line=line)


def _by_lattice(of_via: list[Record], everything: list[Record], colour: str) -> go.Bar:
    most = max(record.ranks for record in everything)
    chosen = sorted((record for record in of_via if record.ranks == most), key=_cells)
    via = escape(of_via[0].via)
    texts = [f"{record.p50_us:.3g}" for record in chosen]
    shapes, values = [f"{r.shape} on {most} ranks" for r in chosen], [r.p50_us for r in chosen]
    same = {"name": via, "legendgroup": via, "showlegend": False, "marker": {"color": colour}}
    return go.Bar(x=shapes, y=values, text=texts, textposition="outside", **same)


def _phases(of_via: list[Record], everything: list[Record]) -> list[go.Bar]:
    most = max(record.ranks for record in everything)
    timed = [r for r in of_via if r.ranks == most and "phases_us" in r.extra]
    bars = []
    for phase in PHASES:
        places = [f"{escape(r.via)}<br>{r.shape}" for r in timed]
        values = [r.extra["phases_us"][phase] for r in timed]
        look = {"color": PHASES[phase], "pattern": {"shape": PATTERNS[phase]}}
        shown = bool(timed) and timed[0] is next(
            (r for r in everything if "phases_us" in r.extra and r.ranks == most), None
        )
        same = {"showlegend": shown, "marker": look}
        bars.append(go.Bar(x=places, y=values, name=phase, legendgroup=phase, offsetgroup=phase, **same))
    return bars


def _cells(record: Record) -> int:
    ny, _, nx = record.shape.partition("x")
    return int(ny) * int(nx)


def _smallest(records: list[Record]) -> str:
    return min(records, key=_cells).shape


if __name__ == "__main__":
    write(records.read(sys.argv[1:-1]), Path(sys.argv[-1]))
