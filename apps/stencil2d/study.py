"""The study of the stencil: weak scaling and three sizes, all variants that this host can run, a picture.

    python apps/stencil2d/study.py --out out/stencil2d

Writes records.jsonl and stencil2d.html, which opens in any browser, also offline.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import click
from picture import write
from run import MPI, Missing, measure

from peerway_measure import records
from peerway_measure.bench.peers import gpus

GRIDS = ((1, 1), (2, 1), (2, 2), (4, 2))
ON_HOST = ("host-driven", "stream", "stream/serial", "none")
ON_CUDA = (
    *ON_HOST,
    *(
        "host-driven/serial",
        "stream/branch",
        "graph",
        "graph/serial",
        "graph/branch",
        "none/branch",
        "in-kernel",
    ),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A lattice on a grid: the edge of a rank's square in cells, the steps, and how many are timed
    together.
    """

    grid: tuple[int, int]
    edge: int
    steps: int
    batch: int


def cases(device: str, ranks: int, edges: list[int]) -> list[Case]:
    """The smallest lattice on all grids; the others only on grids of at least 4 ranks (or on the largest
    grid).
    """
    grids = [grid for grid in GRIDS if grid[0] * grid[1] <= ranks]
    large = [grid for grid in grids if grid[0] * grid[1] >= 4] or grids[-1:]
    studied = []
    for edge in sorted(edges):
        steps = max(20, min(10_000, (20_000_000_000 if device == "cuda" else 60_000_000) // (edge * edge)))
        batch = 100 if steps >= 1000 else 10 if steps >= 100 else 2
        studied += [
            Case(grid, edge, steps // batch * batch, batch)
            for grid in (grids if edge == min(edges) else large)
        ]
    return studied


def arguments(case: Case, device: str, variants: list[str]) -> list[str]:
    """The program's options for a case."""
    grid, local = f"{case.grid[0]}x{case.grid[1]}", f"{case.edge}x{case.edge}"
    timed = ["--iterations", str(case.steps), "--batch", str(case.batch)]
    chosen = ["--variant", ",".join(variants), "--device", device]
    return [*chosen, "--grid", grid, "--local", local, *timed, "--check", "--phases"]


@click.command()
@click.option("--device", type=click.Choice(["host", "cuda"]), help="[default: cuda where there is a GPU]")
@click.option("--ranks", type=click.IntRange(1, 64), help="At most. [default: the GPUs, or 4 on the host]")
@click.option("--edges", default="256,1024,4096", show_default=True, help="Of each rank's square, in cells.")
@click.option("--variants", default="", help="Separated by commas. [default: all of the device, and MPI's]")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/stencil2d"),
    show_default=True,
)
def main(*, device: str | None, ranks: int | None, edges: str, variants: str, out: Path) -> None:
    """Measure, and draw what was measured."""
    device = device or ("cuda" if gpus.present().count else "host")
    ranks = ranks or (gpus.present().count if device == "cuda" else 4)
    chosen = variants.split(",") if variants else [*(ON_CUDA if device == "cuda" else ON_HOST), *MPI]
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "records.jsonl"
    kept.unlink(missing_ok=True)
    for case in cases(device, ranks, [int(edge) for edge in edges.split(",")]):
        _measure(case, device, chosen, kept)
    if kept.exists():
        write(records.read(kept), out / "stencil2d.html")
        click.echo(f"{kept}\n{out / 'stencil2d.html'}")


def _measure(case: Case, device: str, variants: list[str], kept: Path) -> None:
    command = f"python {os.path.relpath(__file__)} --device {device}"
    for result in measure(arguments(case, device, variants), command):
        where = f"{case.grid[0]}x{case.grid[1]} ranks, {case.edge}x{case.edge} cells each"
        if isinstance(result, Missing):
            click.echo(f"{result.via}, {where}: {result.reason}")
            continue
        records.append(kept, result)
        wrong = "" if result.validated or result.via.startswith("none") else "   THE FIELD IS WRONG"
        click.echo(f"{result.via}, {where}: {result.p50_us:.2f} us a step{wrong}")


if __name__ == "__main__":
    main()
