"""How each program of the study is started, and what its run gave."""

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
    """A run that gave no result, and what it printed."""


@dataclass(frozen=True, slots=True)
class Case:
    """What all programs are asked."""

    n: int
    nb: int
    p: int
    q: int
    blas: Path
    device: str
    rpeak: float = 0  # GFLOP/s of each rank; 0: what the program knows

    @property
    def ranks(self) -> int:
        return self.p * self.q

    @property
    def options(self) -> list[str]:
        shape = ["--n", str(self.n), "--nb", str(self.nb), "--grid", f"{self.p}x{self.q}"]
        more = ["--rpeak", str(self.rpeak)] if self.rpeak else []
        return [*shape, "--blas", str(self.blas), "--threads", "1", "--device", self.device, *more, "--json"]


def over_peerway(case: Case) -> dict[str, Any]:
    """One run of this program, started by `peerway run`."""
    return _ours(by_peerway(case), {})


def over_mpi(case: Case) -> dict[str, Any]:
    """One run of this program with --comm mpi."""
    return _ours(by_mpi(case), openmpi.ENVIRONMENT)


def over_peerway_traced(case: Case) -> dict[str, Any]:
    """The same over Peerway, with all its operations recorded. What reads the rings is not timed."""
    from peerway_trace.store import load

    with tempfile.TemporaryDirectory() as folder:
        result = trace(by_peerway(case), Path(folder) / "trace")
        recorded = load(Path(folder) / "trace")
        events = {"trace_events": len(recorded["begin"]), "trace_dropped": recorded.dropped}
    return {**result, **events, "command": " ".join(["peerway trace --", *by_peerway(case)])}


def by_peerway(case: Case) -> list[str]:
    """The command of a run over Peerway."""
    return [*PEERWAY, "run", "-n", str(case.ranks), "--", str(PROGRAM), *case.options]


def by_mpi(case: Case) -> list[str]:
    """The command of a run over MPI."""
    launch = [_mpirun(), *openmpi.binding(case.ranks), "-n", str(case.ranks)]
    return [*launch, str(PROGRAM), *case.options, "--comm", "mpi"]


def trace(command: list[str], folder: Path) -> dict[str, Any]:
    """A run, whose trace is in the folder afterwards."""
    return _ours([*PEERWAY, "trace", "-o", str(folder), "--", *command], openmpi.ENVIRONMENT)


def of_hpcc(case: Case) -> dict[str, Any]:
    """One run of hpcc, HPL being its last part. The BLAS is the libblas.so.3 beside the file of --blas."""
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


WAYS = {
    "peerway": over_peerway,
    "mpi": over_mpi,
    "peerway+trace": over_peerway_traced,
    "hpcc": of_hpcc,
}


def _ours(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    printed = run(command, environment, ROOT)
    results = [json.loads(line) for line in printed.splitlines() if line.startswith('{"record": "hpl"')]
    if len(results) != 1:
        raise Failed(f"{' '.join(command)}\nprinted no result:\n{printed}")
    return {**results[0], "command": " ".join(command)}


def run(command: list[str], environment: dict[str, str], folder: Path = ROOT) -> str:
    """The output of the command."""
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
    """HPL's 31 lines as this program does them: look-ahead 1, right-looking halves; the rest for PTRANS."""
    values = ["", "", "HPL.out", "8", "1", case.n, "1", case.nb, "0", "1", case.p, case.q, "16.0"]
    values += ["1", "2", "1", "8", "1", "2", "1", "2", "1", "1", "1", "1", "2", "64", "0", "0", "1", "8"]
    values += ["#", "0", "1200", "0", "40"]
    return "".join(f"{value} \n" for value in values)
