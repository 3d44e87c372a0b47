"""Run stencil2d once, built first where needed, and keep the results as records of the one schema.

    python apps/stencil2d/run.py --device cuda --grid 2x2 --variant graph,in-kernel --check --out new.jsonl

All options but --out go to the program (python apps/stencil2d/run.py --help lists them).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from build import Target, build
from compiling import mpi_compiler

from peerway import _core
from peerway_measure import records
from peerway_measure.bench import machine
from peerway_measure.bench.peers import openmpi, ucx
from peerway_measure.cli.options import need_devices

MPI = ("mpi", "mpi-overlap")
LIMIT_S = 120.0


class Failed(click.ClickException):
    """The program could not be started."""


class BadOption(Failed):
    """The program refused an option. It exits with this status then, and starting it again is useless."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Missing:
    """A variant without a result, and why: it cannot do what was asked, or the program ended before it."""

    via: str
    reason: str


@dataclass(frozen=True, slots=True)
class Options:
    """The options that decide how the program is started, and all others."""

    variants: list[str]
    device: str
    ranks: int
    others: list[str]


def measure(arguments: list[str], command: str = "") -> list[records.Record | Missing]:
    """Run the program with these options; returns a result for each variant. Raises BadOption.

    A record whose field was checked and is wrong is not `validated`. If the program dies or hangs in one
    variant, it is started again for the variants after it, unless it has failed twice without any result.
    """
    options = _read(arguments)
    need_devices([options.device])
    command = command or " ".join(["python apps/stencil2d/run.py", *arguments])
    # There are two programs, for Peerway's variants and for MPI's, each with its own launcher.
    results: dict[str, records.Record | Missing] = {}
    for of_mpi in (False, True):
        variants = [name for name in dict.fromkeys(options.variants) if (name in MPI) == of_mpi]
        results |= zip(variants, _measure(options, variants, command), strict=True)
    return [results[name] for name in dict.fromkeys(options.variants)]


def _measure(options: Options, variants: list[str], command: str) -> list[records.Record | Missing]:
    """The results of one program's variants, one for each."""
    results: list[records.Record | Missing] = []
    remaining, in_vain = variants, 0
    while remaining:
        printed, why = _launch(options, remaining)
        results += [
            Missing(line["variant"], line["refused"]) if "refused" in line else as_record(line, command)
            for line in printed
        ]
        in_vain = 0 if printed else in_vain + 1
        failed = remaining[len(printed) :] if in_vain == 2 else remaining[len(printed) : len(printed) + 1]
        results += [Missing(variant, why) for variant in failed]
        remaining = remaining[len(printed) + len(failed) :]
    return results


def _launch(options: Options, variants: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Start the program once; returns what it printed and how it ended. Raises BadOption."""
    if {*variants} <= {*MPI}:
        target = Target(options.device, mpi_compiler())
        job, environment = _mpirun(options.ranks, options.device)
    else:
        target = Target(options.device)
        job, environment = [sys.executable, "-m", "peerway", "run", "-n", str(options.ranks), "--"], {}
    job += [str(build(target)), *options.others, "--variant", ",".join(variants), "--json"]
    status = None
    try:
        done = subprocess.run(
            job,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env={**os.environ, **environment},
            check=False,
        )
        printed, errors, status = done.stdout, done.stderr, done.returncode
        end = f"ended with status {status}"
    except subprocess.TimeoutExpired as late:
        printed, errors = (_text(stream) for stream in (late.stdout, late.stderr))
        end = f"did not end within {LIMIT_S:.0f} s"
    complaints = [line for line in errors.splitlines() if line.startswith("stencil2d: ")]
    if status == BadOption.exit_code and complaints:  # both programs and all variants would refuse it
        raise BadOption(complaints[0].removeprefix("stencil2d: "))
    last = "\n".join(errors.strip().splitlines()[-6:])
    results = [
        json.loads(line) for line in printed.splitlines() if line.startswith("{") and line.endswith("}")
    ]
    return results, f"{' '.join(job)}\n{end}\n{last}{_remedy(options.device, variants, status)}"


def _remedy(device: str, variants: list[str], status: int | None) -> str:
    """Advice if MPI was given GPU memory and died of it."""
    unaware = status is not None and device == "cuda" and variants[0] in MPI and ucx.with_cuda() is None
    if not unaware:
        return ""
    return (
        "\nNo UCX with CUDA was found for this MPI, which then cannot read GPU memory: "
        "pip install libucx-cu13, or let UCX_ROOT name a UCX that was built with CUDA"
    )


def _text(stream: bytes | str | None) -> str:
    return stream.decode(errors="replace") if isinstance(stream, bytes) else stream or ""


def as_record(result: dict[str, Any], command: str) -> records.Record:
    """A record from what the program printed. A sample is the mean time of a step over one batch."""
    device = str(result["device"])
    ny, nx = result["local"]
    name = "cuda:0" if device == "cuda" else "host"
    checked = result.get("check")
    extra = {key: result[key] for key in ("grid", "local", "global", "border", "batch")}
    extra["wall_us"] = result["wall_ns"] / result["iterations"] / 1e3
    extra["steps"] = result["iterations"]
    if checked:
        extra["check"] = checked
    if "phases_ns" in result:
        extra["phases_us"] = {phase: ns / 1e3 for phase, ns in result["phases_ns"].items()}
    return records.Record.from_samples(
        result["batch_ns"],
        messages=result["batch"],
        test="stencil2d",
        via=result["variant"],
        op="halo",
        shape=f"{ny}x{nx}",
        bytes=8 * max(ny, nx),
        ranks=result["ranks"],
        source=name,
        target="cuda:1" if device == "cuda" and result["ranks"] > 1 else name,
        validated=bool(checked and checked["passed"]),
        cpu_percent=result["cpu_percent"],
        host=machine.known()["host"],
        device=machine.device_name(name),
        driver=machine.cuda_driver() if device == "cuda" else "",
        version=_core.version(),
        command=command,
        extra=extra,
    )


def _read(arguments: list[str]) -> Options:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--variant", default="stream")
    parser.add_argument("--device", default="host")
    parser.add_argument("--grid", default="1x1")
    known, others = parser.parse_known_args(arguments)
    numbers = re.fullmatch(r"(\d+)x(\d+)", known.grid)
    if numbers is None:
        raise Failed(f"--grid is '{known.grid}'; give two numbers joined by x, rows first, as 2x4")
    others += ["--device", known.device, "--grid", known.grid]
    return Options(known.variant.split(","), known.device, int(numbers[1]) * int(numbers[2]), others)


def _mpirun(ranks: int, device: str) -> tuple[list[str], dict[str, str]]:
    """The command of Open MPI as for the benchmarks, with a UCX that supports GPUs if needed."""
    mpirun = shutil.which("mpirun", path=str(Path(mpi_compiler()).parent))
    if mpirun is None:
        raise Failed("mpirun was not found beside mpicxx; install openmpi-bin")
    environment = dict(openmpi.ENVIRONMENT)
    library = ucx.with_cuda() if device == "cuda" else None
    if library is not None:
        environment |= library.environment
    options = openmpi.CUDA_OPTIONS if device == "cuda" else openmpi.HOST_OPTIONS
    return [mpirun, "-n", str(ranks), *openmpi.binding(ranks), *options], environment


@click.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Append the record to this file."
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(*, out: Path | None, arguments: tuple[str, ...]) -> None:
    """Run the program and print its records; status 1 when a variant was refused or its field is wrong."""
    if {"--help", "-h"} & set(arguments):
        raise SystemExit(subprocess.run([str(build(Target("host"))), "--help"], check=False).returncode)
    bad = False
    for result in measure(list(arguments)):
        if isinstance(result, Missing):
            click.echo(result.reason, err=True)
            bad = True
            continue
        click.echo(result.as_json())
        bad = bad or ("check" in result.extra and not result.validated)
        if out is not None:
            records.append(out, result)
    raise SystemExit(1 if bad else 0)


if __name__ == "__main__":
    main()
