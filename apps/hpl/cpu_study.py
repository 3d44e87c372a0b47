"""The whole study of hpl on two cores of a host, in one command and, on a quiet machine, 12 minutes.

    python apps/hpl/cpu_study.py --out out/hpl

What is in the folder then: every run (hpl.jsonl), the tables of strong and weak scaling and of what a trace
costs (tables.md), the picture (hpl-cpu.svg), and what `peerway trace report` says of a run over Peerway and
one over MPI beside the curve that `peerway bench` measured.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

import click

from peerway_common.cli.numbers import Number

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder of the package hpl

from hpl import tables
from hpl.programs import Case
from hpl.study import one_run, report

NB = 192
# N and ranks. The first two N are for strong scaling. The third is for weak scaling: on one core it has as
# many elements per core as the second on two. hpcc also runs all its other benchmarks, which take a minute at
# the larger N.
RUNS = (
    (4000, 1, ("peerway", "mpi", "hpcc")),
    (4000, 2, ("peerway", "mpi", "hpcc")),
    (8000, 1, ("peerway", "mpi")),
    (8000, 2, ("peerway", "mpi", "peerway+trace")),
    (5657, 1, ("peerway", "mpi")),
)
REPORT_S = 90.0  # time for the curve and the two reports
FOLDERS = ("openblas-pthread/libopenblas.so.0", "blis-pthread/libblis.so.4")


def find_blas() -> Path | None:
    """Find the BLAS of Debian's packages, which have a libblas.so.3 for hpcc in the same folder."""
    files = [file for name in FOLDERS for file in sorted(Path("/usr/lib").glob(f"*/{name}"))]
    return files[0] if files else None


@click.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="The folder.")
@click.option(
    "--blas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="[default: Debian's OpenBLAS, or BLIS]",
)
@click.option(
    "--minutes",
    type=Number(0, 1e4),
    default=12.0,
    show_default=True,
    help="As many rounds of all runs as end by then; at least one.",
)
@click.option(
    "--bench",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Records whose curve the reports judge by, in place of measuring it.",
)
def main(*, out: Path, blas: Path | None, minutes: float, bench: Path | None) -> None:
    """Measure in rounds, so that all runs meet the same load; then print the tables."""
    end = time.monotonic() + 60 * minutes - REPORT_S
    if (blas := blas or find_blas()) is None:
        raise click.ClickException("no BLAS was found; apt-get install libopenblas0-pthread, or give --blas")
    if shutil.which("hpcc") is None:
        raise click.ClickException("hpcc was not found; apt-get install hpcc")
    pairs = [
        (Case(n, NB, 1, ranks, blas.absolute(), "host"), program)
        for n, ranks, programs in RUNS
        for program in programs
    ]
    began, longest = time.monotonic(), 0.0
    while longest == 0 or began + longest < end:
        for case, program in pairs:
            one_run(case, program, out / "hpl.jsonl")
        longest, began = max(longest, time.monotonic() - began), time.monotonic()
    report(next(case for case, program in pairs if program == "peerway+trace"), out, bench)
    runs = [json.loads(line) for line in (out / "hpl.jsonl").read_text().splitlines()]
    (out / "tables.md").write_text(tables.text(runs))
    tables.draw(runs, out / "hpl-cpu.svg")
    click.echo((out / "tables.md").read_text())


if __name__ == "__main__":
    main()
