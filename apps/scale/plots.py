"""Draws the study's plots: one page for a browser, and SVG pictures for the documentation."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import plotly.graph_objects as go

from peerway_common.units import size_text
from peerway_measure import records
from peerway_measure.records import Record
from peerway_measure.report.pictures import CannotDraw, as_svg

COLOURS = {
    "torus, 1-D": "#bab0ac",
    "torus, 2-D": "#eeca3b",
    "torus, 3-D": "#54a24b",
    "torus, 4-D": "#4c78a8",
    "fat tree, 2 levels": "#e45756",
    "fat tree, 3 levels": "#f58518",
    "fat tree, a quarter of the links up": "#b279a2",
}
ALGORITHMS = {"ring": "dot", "rings": "dash", "rings/all-links": "solid", "doubling": "dashdot"}
WHERE = "simulated with {host}: 75 Gbit/s a link, 129 ns a hop, 0.85 µs a message"


def machine_name(machine: str) -> str:
    """The kind of a machine: "torus:8x8x4" -> "torus, 3-D"."""
    kind, _, rest = machine.partition(":")
    if kind == "torus":
        return f"torus, {rest.count('x') + 1}-D"
    down, _, up = rest.partition("/")
    if down.split("x")[:-1] != up.split("x")[1:]:
        return "fat tree, a quarter of the links up"
    return f"fat tree, {down.count('x') + 1} levels"


def write(simulated: list[Record], page: Path, pictures: Path | None = None) -> None:
    """Write the page, and the pictures if a folder for them is given."""
    figures = {
        "scale-halo": halo(simulated),
        "scale-mapping": mapping(simulated),
        "scale-allreduce": allreduce(simulated),
    }
    parts = [
        figure.to_html(full_html=False, include_plotlyjs=number == 0)
        for number, figure in enumerate(figures.values())
    ]
    page.write_text('<meta charset="utf-8"><title>scale</title>' + "".join(parts))
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
        try:
            drawn = as_svg(figures.values())
        except CannotDraw as error:
            raise click.ClickException(str(error)) from error
        for name, svg in zip(figures, drawn, strict=True):
            (pictures / f"{name}.svg").write_text(svg + "\n")


def halo(simulated: list[Record]) -> go.Figure:
    """A face of 64 KiB between neighbours, by nodes: the 4-D lattice on every machine,
    with neighbours placed near.
    """
    chosen = [r for r in _lattices(simulated, 65536) if r.via == "put"]
    return _by_nodes(chosen, "halo of a 4-D lattice, faces of 64 KiB, all at once", simulated)


def mapping(simulated: list[Record]) -> go.Figure:
    """How much longer the same halo takes if ranks are placed on nodes at random."""
    near = {(r.extra["machine"], r.ranks): r.p50_us for r in _lattices(simulated, 65536) if r.via == "put"}
    chosen = [r for r in _lattices(simulated, 65536) if r.via == "put/shuffled"]
    figure = go.Figure()
    for name, of_machine in _by_machine(chosen).items():
        x = [str(r.ranks) for r in of_machine]
        y = [r.p50_us / near[r.extra["machine"], r.ranks] for r in of_machine]
        figure.add_trace(go.Bar(x=x, y=y, name=name, marker={"color": COLOURS[name]}))
    return _laid_out(figure, "the same halo with shuffled ranks, times as long", "times as long", simulated)


def allreduce(simulated: list[Record]) -> go.Figure:
    """Allreduce by size on the most nodes: each algorithm on each machine."""
    mine = [r for r in simulated if r.test == "simulated_allreduce"]
    most = max(r.ranks for r in mine)
    figure = go.Figure()
    for name, of_machine in _by_machine([r for r in mine if r.ranks == most]).items():
        for via, dash in ALGORITHMS.items():
            line = sorted((r for r in of_machine if r.via == via), key=lambda r: r.bytes)
            if line:
                look = {"color": COLOURS[name], "dash": dash}
                x, y = [size_text(r.bytes) for r in line], [r.p50_us for r in line]
                trace = go.Scatter(x=x, y=y, name=f"{name}: {via}", mode="lines+markers", line=look)
                figure.add_trace(trace)
    figure.update_xaxes(title_text="vector")
    figure.update_yaxes(type="log", dtick=1, tickformat=",")
    return _laid_out(figure, f"allreduce on {most:,} nodes", "µs", simulated, x="vector")


def _lattices(simulated: list[Record], size: int) -> list[Record]:
    """The halos of the 4-D lattice that have no host limit."""
    return [
        r
        for r in simulated
        if r.test == "simulated_halo"
        and r.bytes == size
        and str(r.extra["grid"]).count("x") == 3
        and r.shape.startswith(f"{r.extra['machine']} ")
    ]


def _by_machine(chosen: list[Record]) -> dict[str, list[Record]]:
    names = [machine_name(r.extra["machine"]) for r in chosen]
    return {
        name: sorted((r for r, own in zip(chosen, names, strict=True) if own == name), key=lambda r: r.ranks)
        for name in COLOURS
        if name in names
    }


def _by_nodes(chosen: list[Record], title: str, simulated: list[Record]) -> go.Figure:
    figure = go.Figure()
    for name, of_machine in _by_machine(chosen).items():
        x, y = [str(r.ranks) for r in of_machine], [r.p50_us for r in of_machine]
        line = {"color": COLOURS[name], "dash": "dash" if name.startswith("fat") else "solid"}
        figure.add_trace(go.Scatter(x=x, y=y, name=name, mode="lines+markers", line=line))
    figure.update_yaxes(type="log", dtick=1, tickformat=",")
    return _laid_out(figure, title, "µs", simulated)


def _laid_out(figure: go.Figure, title: str, y: str, simulated: list[Record], x: str = "nodes") -> go.Figure:
    figure.update_xaxes(title_text=x, type="category")
    figure.update_yaxes(title_text=y)
    text = f"{title}<br><sub>{WHERE.format(host=simulated[0].host)}</sub>"
    return figure.update_layout(title=text, template="plotly_white", width=900, height=460)


if __name__ == "__main__":
    write(records.read(sys.argv[1:-1]), Path(sys.argv[-1]))
