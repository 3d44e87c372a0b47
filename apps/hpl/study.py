"""The study of hpl: this program over Peerway and over MPI, and HPL of Debian's hpcc, run in turn.

    python apps/hpl/study.py --n 8000 --nb 192 --grid 1x1,1x2 --times 5 --out results/hpl/cpu-2.jsonl
    python apps/hpl/study.py --n 6000 --weak --grid 1x2 --programs peerway,mpi --out results/hpl/cpu-2.jsonl
    python apps/hpl/study.py --n 8000 --grid 1x2 --times 1 --report out/hpl

Every run is a line with its command; hpcc gets the same BLAS, N, NB and P x Q, and one thread a rank, too.
apps/hpl/tables.py makes tables and a picture of the lines. cpu_study.py runs the whole of it on two cores.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from peerway import _core
from peerway_common.cli.numbers import Number

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the folder of the package hpl

import record_lines

from hpl.meters import meter
from hpl.programs import PEERWAY, PROGRAM, PROGRAMS, ROOT, Case, mpi_command, peerway_command, run, trace

DEFAULT_PROGRAMS = "peerway,mpi,hpcc"


def cases(
    n: list[int], grids: list[tuple[int, int]], nb: int, blas: Path, device: str, weak: bool, rpeak: float
) -> Iterator[Case]:
    """Each N on each grid. With `weak`, N is that of one rank, and N grows so
    that a rank's part stays as large.
    """
    for n_per_rank in n:
        for p, q in grids:
            order = round(n_per_rank * (p * q) ** 0.5 / nb) * nb if weak else n_per_rank
            yield Case(order, nb, p, q, blas, device, rpeak)


def measure(case: Case, program: str) -> dict[str, Any]:
    """One run as a record."""
    with meter(case.device) as running_meter:
        result = PROGRAMS[program](case)
    return {
        key: _without_local_folders(value, case)
        for key, value in _with_context(result | running_meter.values, program).items()
    }


def one_run(case: Case, program: str, out: Path | None) -> float:
    """Measure a run, print it and append it to the file; returns its Gflops."""
    if program != "hpcc" and not PROGRAM.exists():
        raise click.ClickException(f"{PROGRAM.relative_to(ROOT)} is not built; run python apps/hpl/build.py")
    kept = measure(case, program)
    click.echo(
        f"N = {kept['n']}, {kept['p']} x {kept['q']}, {kept['program']}: "
        f"{kept['seconds']:.2f} s, {kept['gflops']:.1f} Gflops"
    )
    record_lines.append(out, kept)
    return float(kept["gflops"])


def report(case: Case, folder: Path, bench: Path | None) -> None:
    """Trace one run over Peerway and one over MPI, and print what `peerway trace report` says of each.

    Each is compared with the curve that `peerway bench` measured.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if bench is None:
        bench = folder / "bench.jsonl"
        curve = ["bench", "put_latency", "--device", "host", "--peers", "openmpi"]
        run([*PEERWAY, *curve, "--time", "60s", "--out", str(bench)], {})
    for name, command in (("peerway", peerway_command(case)), ("mpi", mpi_command(case))):
        trace(command, folder / name)
        page = [
            "trace",
            "report",
            str(folder / name),
            "--bench",
            str(bench),
            "-o",
            str(folder / f"{name}.html"),
        ]
        (folder / f"{name}.txt").write_text(run([*PEERWAY, *page], {}))
        click.echo(f"{folder / name}.txt, {folder / name}.html")


def _with_context(result: dict[str, Any], program: str) -> dict[str, Any]:
    return {
        "record": "hpl",
        "program": "hpcc" if program == "hpcc" else f"hpl/{program}",
        **{key: value for key, value in result.items() if key != "record"},
        "load": round(os.getloadavg()[0], 2),
        "cpu": _cpu(),
        "host": platform.node(),
        "version": _core.version(),
        "date": record_lines.now(),
    }


def _without_local_folders(value: Any, case: Case) -> Any:
    """The value without this machine's folders."""
    if not isinstance(value, str):
        return value
    value = value.replace(f"{case.blas.resolve().parent}/", "").replace(f"{case.blas.parent}/", "")
    value = value.replace(f"{sys.executable} -m peerway", "peerway").replace(f"{ROOT}/", "")
    return re.sub(r"\S*/(?=(hpcc|mpirun\S*)\b)", "", value)


def _cpu() -> str:
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{len(names)} x {names[0]}" if names else platform.machine()


def _grids(text: str) -> list[tuple[int, int]]:
    matches = [re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", grid) for grid in text.split(",")]
    if None in matches:
        raise click.BadParameter(
            f"'{text}'; give P x Q as 1x2, several joined by commas", param_hint="--grid"
        )
    return [(int(match[1]), int(match[2])) for match in matches if match is not None]


def _numbers(text: str) -> list[int]:
    if not all(word.isdecimal() and int(word) > 0 for word in text.split(",")):
        raise click.BadParameter(f"'{text}'; give numbers joined by commas", param_hint="--n")
    return [int(word) for word in text.split(",")]


def _programs(text: str) -> list[str]:
    if not set(text.split(",")) <= set(PROGRAMS):
        raise click.BadParameter(f"'{text}'; give some of {', '.join(PROGRAMS)}", param_hint="--programs")
    if "hpcc" in text.split(",") and shutil.which("hpcc") is None:
        click.echo("hpcc was not found; install it, to compare with HPL itself", err=True)
        return [program for program in text.split(",") if program != "hpcc"]
    return text.split(",")


@click.command()
@click.option("--n", default="8000", show_default=True, help="Equations; several joined by commas.")
@click.option("--nb", default=192, show_default=True, help="Rows and columns of a block.")
@click.option("--grid", default="1x2", show_default=True, help="P x Q; several joined by commas.")
@click.option(
    "--weak",
    is_flag=True,
    help="--n is the order for one rank; with r ranks N = n * sqrt(r), rounded to a multiple of nb.",
)
@click.option("--device", default="host", show_default=True, type=click.Choice(["host", "cuda"]))
@click.option("--blas", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--rpeak", type=Number(0), default=0.0, help="GFLOP/s of each rank, to state the fraction of it."
)
@click.option(
    "--programs",
    default=DEFAULT_PROGRAMS,
    show_default=True,
    help=f"Of {', '.join(PROGRAMS)}, joined by commas.",
)
@click.option("--times", default=5, show_default=True, help="Runs of each, in turn.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Append the records to this file."
)
@click.option(
    "--report",
    "report_folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also trace a run of the last case over Peerway and MPI; the reports go into this folder.",
)
@click.option(
    "--bench",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Records whose curve --report judges by, in place of measuring it.",
)
def main(
    *,
    n: str,
    nb: int,
    grid: str,
    weak: bool,
    device: str,
    blas: Path,
    rpeak: float,
    programs: str,
    times: int,
    out: Path | None,
    report_folder: Path | None,
    bench: Path | None,
) -> None:
    """Measure, and print the medians and their ratios to the last program."""
    chosen = _programs(programs)
    planned = list(cases(_numbers(n), _grids(grid), nb, blas.absolute(), device, weak, rpeak))
    gflops: dict[tuple[Case, str], list[float]] = {
        (case, program): [] for case in planned for program in chosen
    }
    for _ in range(times):
        for case, program in gflops:
            gflops[case, program].append(one_run(case, program, out))
    for case in planned:
        last = statistics.median(gflops[case, chosen[-1]])
        for program in chosen:
            median = statistics.median(gflops[case, program])
            click.echo(
                f"N = {case.n}, {case.p} x {case.q}, {program}: median {median:.1f} Gflops, "
                f"{median / last:.3f} of {chosen[-1]}"
            )
    if report_folder is not None:
        report(planned[-1], report_folder, bench)


if __name__ == "__main__":
    main()
