"""Makes tables and a picture from the study's records, in the form in which HPL results are published.

python apps/hpl/tables.py results/hpl/study-cpu-2.jsonl --picture docs/pictures/hpl-cpu.svg
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import plotly.graph_objects as go

from peerway_measure.report.pictures import CannotDraw, as_svg

HEAD = "| program | N | NB | P × Q | memory | runs | Gflops, best | median | of DGEMM | of Rpeak | residual |"
NAMES = {
    "hpl/peerway": "hpl over Peerway",
    "hpl/peerway+trace": "the same, traced",
    "hpl/mpi": "hpl over MPI",
    "hpcc": "HPL of hpcc",
}
COLOURS = {"hpl/peerway": "#4c78a8", "hpl/peerway+trace": "#72b7b2", "hpl/mpi": "#e45756", "hpcc": "#54a24b"}

EVENT_NS = 27  # the time that a trace takes per event: docs/trace/index.md

Run = dict[str, Any]
Key = tuple[str, int, int, int, int]


def groups(runs: Iterable[Run]) -> dict[Key, list[Run]]:
    """The runs by program, N, NB, P and Q."""
    by_key: dict[Key, list[Run]] = {}
    for run in runs:
        by_key.setdefault((run["program"], run["n"], run["nb"], run["p"], run["q"]), []).append(run)
    names = list(NAMES)
    keys = sorted(by_key, key=lambda key: (_ranks(key), key[1], names.index(key[0])))
    return {key: by_key[key] for key in keys}


def _median(runs: list[Run]) -> float:
    return float(statistics.median(run["gflops"] for run in runs))


def _share(parts: list[float]) -> str:
    """The median in percent; – if the program does not report it."""
    return f"{100 * statistics.median(parts):.0f} %" if parts else "–"


def rows(runs: Iterable[Run]) -> Iterator[str]:
    """A row for each program, N, NB, P and Q; fractions are medians over the same runs."""
    yield HEAD
    yield "|" + " --- |" * HEAD.count(" | ") + " --- |"
    for (program, n, nb, p, q), own in groups(runs).items():
        gemm = [r["gflops"] / (r["gemm_gflops_rank"] * p * q) for r in own if r.get("gemm_gflops_rank")]
        peak = [r["gflops"] / r["rpeak_gflops"] for r in own if r.get("rpeak_gflops")]
        memory = [r["memory_share"] for r in own if "memory_share" in r]
        passed = all(r["passed"] for r in own)
        cells = [NAMES[program], f"{n:,}", str(nb), f"{p} × {q}", _share(memory), str(len(own))]
        cells += [f"{max(r['gflops'] for r in own):.1f}", f"{_median(own):.1f}", _share(gemm), _share(peak)]
        cells += [f"{max(r['residual'] for r in own):.1e}" + ("" if passed else ", FAILED")]
        yield "| " + " | ".join(cells) + " |"


def scaling(runs: Iterable[Run]) -> Iterator[str]:
    """The scaling of each program from its fewest ranks to more.

    Strong scaling has the same N; weak scaling has the same part of the matrix per rank, within 3 %.
    """
    medians = {key: _median(own) for key, own in groups(runs).items()}
    yield "| program | ranks | strong: N | speed-up | efficiency | weak: N | times the Gflops | efficiency |"
    yield "|" + " --- |" * 8
    for program in NAMES:
        own = {key: value for key, value in medians.items() if key[0] == program}
        counts = sorted({_ranks(key) for key in own})
        for first in (key for key in own if _ranks(key) == counts[0]):
            for ranks in counts[1:]:
                strong = _scaled(own, first, ranks, 1)
                weak = _scaled(own, first, ranks, (ranks / counts[0]) ** 0.5)
                if strong or weak:
                    cells = [NAMES[program], f"{counts[0]} → {ranks}"]
                    cells += (strong or ["–"] * 3) + (weak or ["–"] * 3)
                    yield "| " + " | ".join(cells) + " |"


def _ranks(key: Key) -> int:
    return key[3] * key[4]


def _scaled(own: dict[Key, float], first: Key, ranks: int, times_n: float) -> list[str]:
    """N, speed-up and efficiency on `ranks` ranks with `times_n` times the N; empty if that was not run."""
    for key, gflops in own.items():
        alike = _ranks(key) == ranks and key[2] == first[2]
        if alike and abs(key[1] / (first[1] * times_n) - 1) < (0.03 if times_n > 1 else 1e-9):
            times = gflops / own[first]
            return [f"{key[1]:,}", f"{times:.2f}", f"{times * _ranks(first) / ranks:.2f}"]
    return []


def traced(runs: Iterable[Run]) -> Iterator[str]:
    """The cost of a trace: from the medians of the runs, and from the number of events."""
    by_key = groups(runs)
    for (program, n, nb, p, q), own in by_key.items():
        if program != "hpl/peerway+trace" or ("hpl/peerway", n, nb, p, q) not in by_key:
            continue
        lost = 1 - _median(own) / _median(by_key["hpl/peerway", n, nb, p, q])
        events = statistics.median(run["trace_events"] for run in own)
        part = EVENT_NS * events / 1e9 / statistics.median(run["seconds"] for run in own)
        yield (
            f"N = {n:,}, {p} × {q}: {100 * lost:+.2f} % of the Gflops by the medians; "
            f"by the {events:,.0f} events, of {EVENT_NS} ns each, at most {100 * part:.4f} %"
        )


def picture(runs: list[Run]) -> go.Figure:
    """Gflops of every run by N, with a colour for each program and a symbol for each grid.

    At each N the programs stand side by side, so that none covers another.
    """
    figure = go.Figure()
    symbols = ["circle", "square", "diamond", "cross"]
    grids = sorted({(run["p"] * run["q"], run["p"], run["q"]) for run in runs})
    programs = [program for program in NAMES if any(run["program"] == program for run in runs)]
    sizes = [run["n"] for run in runs]
    apart = (max(sizes) - min(sizes)) / 80
    for (program, _, nb, p, q), _own in groups(runs).items():
        name = f"{NAMES[program]}, {p} × {q}, NB {nb}"
        if name in {trace.name for trace in figure.data}:
            continue
        own = [r for r in runs if (r["program"], r["nb"], r["p"], r["q"]) == (program, nb, p, q)]
        marker = {
            "color": COLOURS[program],
            "symbol": symbols[grids.index((p * q, p, q)) % len(symbols)],
            "size": 8,
        }
        aside = (programs.index(program) - (len(programs) - 1) / 2) * apart
        x, y = [r["n"] + aside for r in own], [r["gflops"] for r in own]
        figure.add_trace(go.Scatter(x=x, y=y, name=name, mode="markers", marker=marker))
    figure.update_xaxes(title_text="N", tickformat=",", tickvals=sorted(set(sizes)))
    figure.update_yaxes(title_text="Gflops", rangemode="tozero")
    text = f"Linpack, every run<br><sub>{runs[0]['cpu']}</sub>"
    return figure.update_layout(title=text, template="plotly_white", width=900, height=460)


def text(runs: list[Run]) -> str:
    """All tables, in Markdown."""
    return "\n\n".join("\n".join(part) for part in (rows(runs), scaling(runs), traced(runs))) + "\n"


def draw(runs: list[Run], file: Path) -> None:
    """Write the picture."""
    try:
        (drawn,) = as_svg([picture(runs)])
    except CannotDraw as error:
        raise click.ClickException(str(error)) from error
    file.write_text(drawn + "\n")


@click.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "--picture",
    "svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw it there (chromium draws).",
)
def main(*, files: tuple[Path, ...], svg: Path | None) -> None:
    """Print the tables in Markdown."""
    runs = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    runs = [run for run in runs if run.get("program") in NAMES]
    if not runs:
        raise click.ClickException(
            f"no run of hpl is in {', '.join(map(str, files))}; study.py --out makes them"
        )
    click.echo(text(runs))
    if svg is not None:
        draw(runs, svg)


if __name__ == "__main__":
    main()
