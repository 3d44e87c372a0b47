"""Draws the pictures and tables of docs/apps/lqcd.md from the records of evaluate.py.

    python apps/lqcd/draw.py results/h200-x1/lqcd.jsonl docs/pictures

Writes lqcd.svg, and lqcd-scaling.svg if there is more than one grid; prints the tables as Markdown.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import click
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from peerway_measure.report.pictures import CannotDraw, as_svg

COLOURS = {"two hops": "#4c78a8", "their halos": "#f58518", "linear algebra": "#54a24b", "else": "#bab0ac"}
Case = tuple[int, str]  # edge and layout
Medians = dict[str, float]
Cases = dict[Case, dict[tuple[str, int], Medians]]  # by (program, ranks)
TIMES = ("hop_us", "halo_us", "algebra_us", "iteration_us", "hop_gbytes", "solver_gflop")


def medians(records: list[dict[str, Any]]) -> Cases:
    """The medians over the rounds, by (lattice, layout), then by (program, ranks)."""
    rounds: dict[Case, dict[tuple[str, int], list[dict[str, Any]]]] = {}
    for record in records:
        if record["record"] == "lqcd":
            case = rounds.setdefault((record["lattice"][0], record["layout"]), {})
            case.setdefault((record["program"], record["ranks"]), []).append(record)
    return {
        case: {
            program_and_ranks: {name: statistics.median(record[name] for record in runs) for name in TIMES}
            for program_and_ranks, runs in of_case.items()
        }
        for case, of_case in rounds.items()
    }


def parts(times: Medians) -> dict[str, float]:
    """The parts of an iteration of CG, in us; "else" is the time that no timed part explains."""
    known = {
        "two hops": 2 * times["hop_us"],
        "their halos": 2 * max(times["halo_us"], 0),
        "linear algebra": times["algebra_us"],
    }
    return {**known, "else": max(times["iteration_us"] - sum(known.values()), 0)}


def iterations(cases: Cases) -> go.Figure:
    """The time of an iteration on the smallest number of ranks, with a panel for each lattice and layout."""
    titles = [f"{edge}⁴, {layout}" for edge, layout in cases]
    figure = make_subplots(rows=1, cols=len(cases), subplot_titles=titles, horizontal_spacing=0.07)
    for column, of_case in enumerate(cases.values(), 1):
        fewest = min(ranks for _, ranks in of_case)
        best = {program: times for (program, ranks), times in of_case.items() if ranks == fewest}
        near = 4 * min(times["iteration_us"] for times in best.values())
        drawn = {program: times for program, times in best.items() if times["iteration_us"] <= near}
        for part, colour in COLOURS.items():
            heights = [parts(times)[part] for times in drawn.values()]
            bar = go.Bar(
                x=list(drawn),
                y=heights,
                name=part,
                marker_color=colour,
                showlegend=column == 1,
                legendgroup=part,
            )
            figure.add_trace(bar, row=1, col=column)
    figure.update_yaxes(title="µs an iteration of CG", col=1)
    figure.update_layout(
        barmode="stack",
        template="plotly_white",
        width=1100,
        height=400,
        legend={"orientation": "h", "y": -0.3},
        margin={"t": 40},
    )
    return figure


def scaling(cases: Cases) -> go.Figure:
    """The time of an iteration by ranks, with a panel for each lattice and layout."""
    titles = [f"{edge}⁴, {layout}" for edge, layout in cases]
    figure = make_subplots(rows=1, cols=len(cases), subplot_titles=titles, horizontal_spacing=0.07)
    for column, of_case in enumerate(cases.values(), 1):
        for program in dict.fromkeys(program for program, _ in of_case):
            points = sorted(
                (ranks, times["iteration_us"]) for (name, ranks), times in of_case.items() if name == program
            )
            line = go.Scatter(
                x=[ranks for ranks, _ in points],
                y=[time for _, time in points],
                name=program,
                legendgroup=program,
                showlegend=column == 1,
                mode="lines+markers",
            )
            figure.add_trace(line, row=1, col=column)
    figure.update_xaxes(type="log", tickvals=[1, 2, 4, 8], title="ranks")
    figure.update_yaxes(type="log")
    figure.update_yaxes(title="µs an iteration of CG", col=1)
    figure.update_layout(
        template="plotly_white",
        width=1100,
        height=400,
        legend={"orientation": "h", "y": -0.3},
        margin={"t": 40},
    )
    return figure


def tables(cases: Cases, records: list[dict[str, Any]]) -> str:
    """The times, then the lines of source, as Markdown."""
    lines = ["| lattice, layout | program | ranks | hop | TB/s | linear algebra | CG iteration | GFlop/s |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for (edge, layout), of_case in cases.items():
        for (program, ranks), of_run in of_case.items():
            times = f"{of_run['hop_us']:.1f} | {of_run['hop_gbytes'] / 1e3:.2f} | {of_run['algebra_us']:.1f}"
            total = f"{of_run['iteration_us']:.1f} | {of_run['solver_gflop']:.0f}"
            lines.append(f"| {edge}⁴, {layout} | `{program}` | {ranks} | {times} | {total} |")
    sloc = [record for record in records if record["record"] == "sloc"]
    if sloc:
        lines += ["", "| program | SLOC | Delta-SLOC |", "| --- | --- | --- |"]
        lines += [f"| `{record['program']}` | {record['sloc']} | {record['delta']} |" for record in sloc]
    return "\n".join(lines)


@click.command()
@click.argument("kept", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(*, kept: Path, folder: Path) -> None:
    """Draw the records KEPT into FOLDER."""
    records = [json.loads(line) for line in kept.read_text().splitlines()]
    cases = medians(records)
    if not cases:
        raise click.ClickException(f"{kept} has no run of a program; make it by apps/lqcd/evaluate.py")
    figures = {"lqcd.svg": iterations(cases)}
    if len({ranks for of_case in cases.values() for _, ranks in of_case}) > 1:
        figures["lqcd-scaling.svg"] = scaling(cases)
    click.echo(tables(cases, records))
    try:
        drawn = as_svg(figures.values())
    except CannotDraw as why:
        raise click.ClickException(str(why)) from None
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in zip(figures, drawn, strict=True):
        (folder / name).write_text(text + "\n")
        click.echo(folder / name)


if __name__ == "__main__":
    main()
