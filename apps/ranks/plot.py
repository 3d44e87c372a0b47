"""Draws the picture of docs/library/ranks.md: the cost of a rank, before and after prepares became exchanges.

python apps/ranks/plot.py docs/pictures
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from peerway_measure.report.pictures import as_svg

RESULTS = Path(__file__).resolve().parents[2] / "results" / "scale-ranks"
FILES = {"through rank 0": "before.jsonl", "between partners": "partners.jsonl"}
COLOURS = {"through rank 0": "#e45756", "between partners": "#4c78a8"}
UNITS = {"added_private_kib": 1024}
QUIET = {"between partners"}  # measured on idle CPUs, so the times count
PANELS = {
    "descriptors": "descriptors of a rank",
    "prepare_cpu_ms": "CPU time of a halo's creation, ms",
    "added_private_kib": "private memory added, MiB",
}


def records(name: str) -> list[dict[str, Any]]:
    """The records of a file by number of ranks; of several with the same number, the last."""
    lines = (RESULTS / name).read_text().splitlines()
    by_ranks = {record["ranks"]: record for record in map(json.loads, lines)}
    return [by_ranks[ranks] for ranks in sorted(by_ranks)]


def figure() -> go.Figure:
    """One panel per quantity; the median rank is solid, rank 0 dotted."""
    panels = make_subplots(rows=1, cols=len(PANELS), subplot_titles=list(PANELS.values()))
    for name, file in FILES.items():
        of_file = records(file)
        ranks = [record["ranks"] for record in of_file]
        for column, quantity in enumerate(PANELS, 1):
            if quantity.endswith("_ms") and name not in QUIET:
                continue
            for statistic, dash in (("median", "solid"), ("rank_0", "dot")):
                trace = go.Scatter(
                    x=ranks,
                    y=[
                        record["of_ranks"][quantity][statistic] / UNITS.get(quantity, 1) for record in of_file
                    ],
                    name=f"{name}, {statistic.replace('_', ' ')}",
                    legendgroup=name + statistic,
                    showlegend=column == 1,
                    mode="lines+markers",
                    line={"color": COLOURS[name], "dash": dash},
                )
                panels.add_trace(trace, row=1, col=column)
    panels.update_xaxes(type="log", tickvals=[2, 4, 8, 16, 32, 64, 128, 256], title="ranks on one host")
    panels.update_yaxes(type="log", tickvals=[2, 5, 10, 20, 50, 100, 200])
    panels.update_yaxes(type="linear", rangemode="tozero", tickvals=None, col=len(PANELS))
    panels.update_layout(
        template="plotly_white", width=1100, height=420, legend={"orientation": "h", "y": -0.25}
    )
    return panels


if __name__ == "__main__":
    Path(sys.argv[1], "ranks.svg").write_text(next(iter(as_svg([figure()]))) + "\n")
