"""Time the lattice QCD programs in turn, compare their results, and count their lines.

    make -C apps/lqcd evaluate                    # or with options: python apps/lqcd/evaluate.py --help

A line of the file is a run (record "lqcd"), a program and its lines of source ("sloc"), or one that could not
run here and why ("left out"). Status 1 if a result is wrong or differs between programs or grids.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import sloc
from programs import EDGE, LAYOUTS, SOURCES, CannotBuild, Grid, Program, build, find_tool

from peerway import _core
from peerway_measure.bench import machine
from peerway_measure.bench.peers import gpus, openmpi, ucx

GRIDS = ((1, 1), (1, 2), (2, 2), (2, 4))
HANG_S = 1800.0  # seconds; a longer run counts as hanging
FAR = 1e-7  # relative difference allowed between correlators of programs that round differently

Run = dict[str, Any]


class WrongRun(Exception):
    """A run failed or printed something unexpected; the message says how."""


def mpirun(ranks: int, device: str) -> tuple[list[str], dict[str, str]]:
    """The mpirun that starts so many processes on "gpu" or "cpu", and its environment settings. Raises
    CannotBuild.
    """
    options, settings = openmpi.HOST_OPTIONS, openmpi.ENVIRONMENT
    if device == "gpu" and ranks > 1:
        library = ucx.with_cuda()
        if library is None:
            raise CannotBuild("no UCX with CUDA was found for MPI; pip install libucx-cu13, or set UCX_ROOT")
        options, settings = openmpi.CUDA_OPTIONS, settings | library.environment
    tool = find_tool("mpirun", "apt-get install openmpi-bin")
    return [tool, "-n", str(ranks), *openmpi.binding(ranks), *options], settings


def launched(program: Program, file: Path) -> tuple[list[str], dict[str, str]]:
    """The command that starts a program, and its environment settings. Raises CannotBuild."""
    if program.name == "serial":
        return [str(file)], {}
    settings = {"PEERWAY_ACC": "gpu" if program.device == "gpu" else "host"}
    if program.name.startswith("xacc"):
        job = [sys.executable, "-m", "peerway", "run", "-n", str(program.ranks), "--", str(file)]
        return job, settings
    job, settings = mpirun(program.ranks, program.device)
    device_type = "nvidia" if program.device == "gpu" else "host"
    return [*job, str(file)], {**settings, "ACC_DEVICE_TYPE": device_type}


def run(program: Program, options: list[str]) -> Run:
    """Run a program once, and return its record. Raises CannotBuild and WrongRun."""
    command, settings = launched(program, build(program))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    try:
        done = subprocess.run(
            [*command, *options], env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise WrongRun(f"{shlex.join(command)} did not end within {HANG_S:.0f} s") from None
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        raise WrongRun(f"{shlex.join(command)} ended with status {done.returncode}:\n{last}")
    return as_record(program, lines)


def as_record(program: Program, lines: list[Run]) -> Run:
    """Make one record of a program's output; times are in us, rates in 10⁹ per second."""
    by_kind = {line["record"]: line for line in lines}
    speed = by_kind["speed"]
    of_program = {key: by_kind["program"][key] for key in ("lattice", "gauge", "kappa", "enorm")}
    return {
        "record": "lqcd",
        "program": program.name,
        "device": machine.device_name("cuda:0" if program.device == "gpu" else "host"),
        "layout": program.layout,
        "grid": list(program.grid),
        "ranks": program.ranks,
        **of_program,
        "checks": {line["name"]: line["value"] for line in lines if line["record"] == "check"},
        "nconv": [line["nconv"] for line in lines if line["record"] == "solve"],
        "solves_s": [line["seconds"] for line in lines if line["record"] == "solve"],
        "correlator": by_kind["correlator"]["values"],
        "hop_us": speed["hop_s"] * 1e6,
        "halo_us": (speed["hop_with_halo_s"] - speed["hop_s"]) * 1e6,
        "algebra_us": speed["algebra_s"] * 1e6,
        "iteration_us": speed["iteration_s"] * 1e6,
        "hop_gbytes": speed["hop_bytes_per_s"] * 1e-9,
        "hop_gflop": speed["hop_flop_per_s"] * 1e-9,
        "solver_gflop": speed["solver_flop_per_s"] * 1e-9,
        **({"copy_gbytes": by_kind["copy"]["bytes_per_s"] * 1e-9} if "copy" in by_kind else {}),
    }


def differences(runs: list[Run]) -> Iterator[str]:
    """The disagreements between runs of one lattice and gauge field."""
    for lattice in {tuple(run["lattice"]) for run in runs}:
        of_lattice = [run for run in runs if tuple(run["lattice"]) == lattice]
        first = of_lattice[0]
        for run in of_lattice[1:]:
            name = f"{run['program']}, {run['layout']}, {run['grid'][0]} x {run['grid'][1]}, {lattice[0]}⁴"
            if run["nconv"] != first["nconv"]:
                yield f"{name}: iterations {run['nconv']}, of {first['program']} {first['nconv']}"
            pairs = zip(run["correlator"], first["correlator"], strict=True)
            far = [abs(value - right) / abs(right) for value, right in pairs]
            if not all(each <= FAR for each in far):  # NaN counts as a difference
                worst = ", ".join(f"{each:.1e}" for each in far)
                yield f"{name}: its correlator is off that of {first['program']}, relatively by {worst}"


class Listed(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click alone
    """Several values, separated by commas."""

    name = "list"

    def __init__(self, parse: Any) -> None:
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> list[Any]:
        """Parse each value. Raises click.BadParameter."""
        return [self.parse.convert(part, param, context) for part in value.split(",")]


def fitting(places: int) -> list[tuple[int, int]]:
    """The grids for which this machine has a GPU or a core for each process."""
    return [grid for grid in GRIDS if grid[0] * grid[1] <= places]


def measure(
    programs: list[Program], options: list[str], rounds: int, keep: Callable[[Run], None]
) -> tuple[list[Run], list[str]]:
    """Run all programs in turn, several times, and write a record of each run, or why it cannot run.

    Returns the runs, and descriptions of what went wrong.
    """
    runs: list[Run] = []
    wrong: list[str] = []
    omitted: set[Program] = set()
    for number in range(1, rounds + 1):
        for program in programs:
            if program in omitted:
                continue
            try:
                result = run(program, options) | {"round": number}
            except CannotBuild as why:
                omitted.add(program)
                refused = {"program": program.name, "grid": list(program.grid), "reason": str(why)}
                keep({"record": "left out", **refused})
                click.echo(f"left out: {program.name} on {program.grid[0]}x{program.grid[1]}: {why}")
                continue
            except WrongRun as why:
                wrong.append(str(why))
                continue
            runs.append(result)
            keep(result)
            click.echo(line_of(result))
    return runs, wrong


def line_of(run: Run) -> str:
    """A run as one line of text."""
    label = (
        f"{run['program']:12s} {run['lattice'][0]:3d}⁴ {run['layout']:5s} {run['grid'][0]}x{run['grid'][1]}"
    )
    times = f"hop {run['hop_us']:9.2f}  halo {run['halo_us']:8.2f}  algebra {run['algebra_us']:9.2f}"
    return f"{label}  {times}  iteration {run['iteration_us']:10.2f} us  {run['solver_gflop']:8.1f} GFlop/s"


@click.command()
@click.option("--edges", type=Listed(EDGE), help="Of the lattice. [default: 16,32 on GPUs, 8 on CPUs]")
@click.option(
    "--grids",
    type=Listed(Grid()),
    help="Processes along t and z, as 1x1,2x2. [default: up to one a GPU or core]",
)
@click.option("--layouts", type=Listed(click.Choice(LAYOUTS)), default=",".join(LAYOUTS), show_default=True)
@click.option(
    "--programs", type=Listed(click.Choice(list(SOURCES))), default=",".join(SOURCES), show_default=True
)
@click.option(
    "--gauge", default="random:1", show_default=True, help="unit, random:SEED, transform:SEED or a file."
)
@click.option(
    "--sources",
    type=click.IntRange(1, 12),
    default=12,
    show_default=True,
    help="Point sources that are solved for.",
)
@click.option(
    "--repeat", type=click.IntRange(1), default=500, show_default=True, help="How often each part is timed."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=3, show_default=True, help="Of all programs in turn."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("out/lqcd/lqcd.jsonl"),
    show_default=True,
)
def main(**options: Any) -> None:
    """Build, run, compare and count; keep what was found."""
    device = "gpu" if gpus.present().count else "cpu"
    places = gpus.present().count or len(os.sched_getaffinity(0))
    programs = [
        Program(name, edge, layout, grid, device)
        for edge in options["edges"] or ([16, 32] if device == "gpu" else [8])
        for layout in options["layouts"]
        for grid in options["grids"] or fitting(places)
        for name in options["programs"]
        if name != "serial" or (grid == (1, 1) and device == "cpu")
    ]
    out: Path = options["out"]
    out.parent.mkdir(parents=True, exist_ok=True)
    command = machine.command().replace("evaluate.py", "python apps/lqcd/evaluate.py", 1)
    same = {"host": machine.known()["host"], "driver": machine.cuda_driver() if device == "gpu" else ""}
    same |= {"version": _core.version(), "command": command}
    arguments = ["--gauge", options["gauge"], "--sources", str(options["sources"]), "--check"]
    arguments += ["--repeat", str(options["repeat"])]
    with out.open("w") as file:

        def keep(record: Run) -> None:
            print(json.dumps(record | same), file=file, flush=True)

        for lines in sloc.count_programs():
            keep({"record": "sloc", **asdict(lines)})
        runs, wrong = measure(programs, arguments, options["rounds"], keep)
    wrong += differences(runs)
    for line in wrong:
        click.echo(f"WRONG: {line}", err=True)
    click.echo(out)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
