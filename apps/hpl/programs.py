"""Runs each program of the study and returns its result."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from peerway_measure.bench.peers import openmpi

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = ROOT / "build" / "hpl" / "hpl"
PEERWAY = [sys.executable, "-m", "peerway"]
HPCC_LINE = re.compile(r"^(W[RC]\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+(\S+)$", re.MULTILINE)
HPCC_RESIDUAL = re.compile(r"^\|\|Ax-b\|\|_oo/\(eps.*\)= +(\S+) \.+ (\w+)$", re.MULTILINE)


class Failed(click.ClickException):
    """A run gave no result; the message has what it printed."""


@dataclass(frozen=True, slots=True)
class Case:
    """The parameters that all programs are given."""

    n: int
    nb: int
    p: int
    q: int
    blas: Path
    device: str
    rpeak: float = 0  # GFLOP/s of each rank; 0 for the program's own value

    @property
    def ranks(self) -> int:
        return self.p * self.q

    @property
    def options(self) -> list[str]:
        shape = ["--n", str(self.n), "--nb", str(self.nb), "--grid", f"{self.p}x{self.q}"]
        more = ["--rpeak", str(self.rpeak)] if self.rpeak else []
        return [*shape, "--blas", str(self.blas), "--threads", "1", "--device", self.device, *more, "--json"]


def run_peerway(case: Case) -> dict[str, Any]:
    """Run this program over Peerway, started by `peerway run`."""
    return _result_of(peerway_command(case), {})


def run_mpi(case: Case) -> dict[str, Any]:
    """Run this program with --comm mpi."""
    return _result_of(mpi_command(case), openmpi.ENVIRONMENT)


def run_peerway_traced(case: Case) -> dict[str, Any]:
    """Run this program over Peerway and trace all its operations. Reading the rings afterwards is not
    timed.
    """
    from peerway_trace.store import load

    with tempfile.TemporaryDirectory() as folder:
        result = trace(peerway_command(case), Path(folder) / "trace")
        recorded = load(Path(folder) / "trace")
        events = {"trace_events": len(recorded["begin"]), "trace_dropped": recorded.dropped}
    return {**result, **events, "command": " ".join(["peerway trace --", *peerway_command(case)])}


def peerway_command(case: Case) -> list[str]:
    """The command that runs this program over Peerway."""
    return [*PEERWAY, "run", "-n", str(case.ranks), "--", str(PROGRAM), *case.options]


def mpi_command(case: Case) -> list[str]:
    """The command that runs this program over MPI."""
    launch = [_mpirun(), *openmpi.binding(case.ranks), "-n", str(case.ranks)]
    return [*launch, str(PROGRAM), *case.options, "--comm", "mpi"]


def trace(command: list[str], folder: Path) -> dict[str, Any]:
    """Run a command and leave its trace in the folder."""
    return _result_of([*PEERWAY, "trace", "-o", str(folder), "--", *command], openmpi.ENVIRONMENT)


def run_hpcc(case: Case) -> dict[str, Any]:
    """Run hpcc, whose last part is HPL. Its BLAS is the libblas.so.3 in the folder of --blas."""
    program = shutil.which("hpcc")
    assert program is not None
    environment = {**openmpi.ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"}
    if (case.blas.parent / "libblas.so.3").exists():
        environment["LD_LIBRARY_PATH"] = str(case.blas.parent)
    command = [_mpirun(), *openmpi.binding(case.ranks), "-n", str(case.ranks), program]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "hpccinf.txt").write_text(_hpcc_input(case))
        run(command, environment, Path(folder))
        printed = (Path(folder) / "hpccoutf.txt").read_text()
    line, residual = HPCC_LINE.search(printed), HPCC_RESIDUAL.search(printed)
    if line is None or residual is None:
        raise Failed(f"{' '.join(command)}\nwrote no line of HPL:\n{printed[-2000:]}")
    linked = subprocess.run(
        ["ldd", program], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    blas = re.search(r"libblas\S* => (\S+)", linked.stdout)
    return {
        "variant": line[1],
        "n": int(line[2]),
        "nb": int(line[3]),
        "p": int(line[4]),
        "q": int(line[5]),
        "seconds": float(line[6]),
        "gflops": float(line[7]),
        "residual": float(residual[1]),
        "passed": residual[2] == "PASSED",
        "device": f"CPU, {os.path.realpath(blas[1]) if blas else 'unknown BLAS'}",
        "command": " ".join(command),
    }


PROGRAMS = {
    "peerway": run_peerway,
    "mpi": run_mpi,
    "peerway+trace": run_peerway_traced,
    "hpcc": run_hpcc,
}


def _result_of(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    printed = run(command, environment, ROOT)
    results = [json.loads(line) for line in printed.splitlines() if line.startswith('{"record": "hpl"')]
    if len(results) != 1:
        raise Failed(f"{' '.join(command)}\nprinted no result:\n{printed}")
    return {**results[0], "command": " ".join(command)}


def run(command: list[str], environment: dict[str, str], folder: Path = ROOT) -> str:
    """Run a command and return its output. Raises Failed."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment}
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _mpirun() -> str:
    for name in ("mpirun.openmpi", "mpirun"):
        if (path := shutil.which(name)) is not None:
            return path
    raise Failed("mpirun was not found; install openmpi-bin")


def _hpcc_input(case: Case) -> str:
    """HPL's 31 lines for what this program does: look-ahead 1, right-looking halves. The rest is for
    PTRANS.
    """
    values = ["", "", "HPL.out", "8", "1", case.n, "1", case.nb, "0", "1", case.p, case.q, "16.0"]
    values += ["1", "2", "1", "8", "1", "2", "1", "2", "1", "1", "1", "1", "2", "64", "0", "0", "1", "8"]
    values += ["#", "0", "1200", "0", "40"]
    return "".join(f"{value} \n" for value in values)
