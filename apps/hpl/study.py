"""The study of hpl: this program over Peerway and over MPI, and HPL of Debian's hpcc, run in turn.

    python apps/hpl/study.py --n 8000 --nb 192 --grid 1x2 --times 5 --out results/hpl/cpu-2.jsonl

Every run is a line with its command; hpcc gets the same BLAS, N, NB and P x Q, and one thread a rank, too.
"""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from peerway import _core
from peerway.bench.peers import openmpi

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAM = ROOT / "build" / "hpl" / "hpl"
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

    @property
    def ranks(self) -> int:
        return self.p * self.q

    @property
    def options(self) -> list[str]:
        shape = ["--n", str(self.n), "--nb", str(self.nb), "--grid", f"{self.p}x{self.q}"]
        return [*shape, "--blas", str(self.blas), "--threads", "1", "--device", self.device, "--json"]


def over_peerway(case: Case) -> dict[str, Any]:
    """One run of this program, started by `peerway run`."""
    launch = [sys.executable, "-m", "peerway", "run", "-n", str(case.ranks), "--"]
    return _ours([*launch, str(PROGRAM), *case.options], {})


def over_mpi(case: Case) -> dict[str, Any]:
    """One run of this program with --comm mpi."""
    launch = [_mpirun(), *openmpi.binding(case.ranks), "-n", str(case.ranks)]
    return _ours([*launch, str(PROGRAM), *case.options, "--comm", "mpi"], openmpi.ENVIRONMENT)


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
        _run(command, environment, Path(folder))
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


WAYS = {"peerway": over_peerway, "mpi": over_mpi, "hpcc": of_hpcc}


def _ours(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    printed = _run(command, environment, ROOT)
    found = [json.loads(line) for line in printed.splitlines() if line.startswith('{"record": "hpl"')]
    if len(found) != 1:
        raise Failed(f"{' '.join(command)}\nprinted no result:\n{printed}")
    return {**found[0], "command": " ".join(command)}


def _run(command: list[str], environment: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **environment}
    )
    if done.returncode:
        raise Failed(f"{' '.join(command)}\nended with status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _mpirun() -> str:
    for name in ("mpirun.openmpi", "mpirun"):
        if (found := shutil.which(name)) is not None:
            return found
    raise Failed("mpirun was not found; install openmpi-bin")


def _hpcc_input(case: Case) -> str:
    """HPL's 31 lines as this program does them: look-ahead 1, right-looking halves; the rest for PTRANS."""
    values = ["", "", "HPL.out", "8", "1", case.n, "1", case.nb, "0", "1", case.p, case.q, "16.0"]
    values += ["1", "2", "1", "8", "1", "2", "1", "2", "1", "1", "1", "1", "2", "64", "0", "0", "1", "8"]
    values += ["#", "0", "1200", "0", "40"]
    return "".join(f"{value} \n" for value in values)


class Meter:
    """Reads the clocks and the power of the GPUs twice a second while a run goes on."""

    COMMAND = (
        "nvidia-smi",
        "--query-gpu=clocks.sm,power.draw",
        "--format=csv,noheader,nounits",
        "-lms",
        "500",
    )

    def __init__(self, device: str) -> None:
        self.wanted = device == "cuda" and shutil.which("nvidia-smi") is not None
        self.found: dict[str, float] = {}

    def __enter__(self) -> Meter:
        if self.wanted:
            self._file = tempfile.TemporaryFile("w+")
            self._process = subprocess.Popen(self.COMMAND, stdout=self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if not self.wanted:
            return
        self._process.terminate()
        self._process.wait()
        self._file.seek(0)
        read = [[float(value) for value in line.split(",")] for line in self._file if line.count(",") == 1]
        self._file.close()
        if read:  # the upper half: the matrix is also generated and checked
            busy = sorted(read, key=lambda pair: pair[1])[len(read) // 2 :]
            self.found["gpu_clock_mhz"] = statistics.median(pair[0] for pair in busy)
            self.found["gpu_power_w"] = statistics.median(pair[1] for pair in busy)


def _kept(result: dict[str, Any], way: str) -> dict[str, Any]:
    return {
        "record": "hpl",
        "program": "hpcc" if way == "hpcc" else f"hpl/{way}",
        **{key: value for key, value in result.items() if key != "record"},
        "load": round(os.getloadavg()[0], 2),
        "cpu": _cpu(),
        "host": platform.node(),
        "version": _core.version(),
        "date": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
    }


def _told(value: Any, case: Case) -> Any:
    """Without the folders of this machine."""
    if not isinstance(value, str):
        return value
    value = value.replace(f"{case.blas.resolve().parent}/", "").replace(f"{case.blas.parent}/", "")
    value = value.replace(f"{sys.executable} -m peerway", "peerway").replace(f"{ROOT}/", "")
    return re.sub(r"\S*/(?=(hpcc|mpirun\S*)\b)", "", value)


def _cpu() -> str:
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{len(names)} x {names[0]}" if names else platform.machine()


@click.command()
@click.option("--n", default=8000, show_default=True, help="Equations.")
@click.option("--nb", default=192, show_default=True, help="Rows and columns of a block.")
@click.option("--grid", default="1x2", show_default=True, help="P x Q.")
@click.option("--device", default="host", show_default=True, type=click.Choice(["host", "cuda"]))
@click.option("--blas", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--ways", default=",".join(WAYS), show_default=True, help="Separated by commas.")
@click.option("--times", default=5, show_default=True, help="Runs of each, in turn.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Append the records to this file."
)
def main(
    *, n: int, nb: int, grid: str, device: str, blas: Path, ways: str, times: int, out: Path | None
) -> None:
    """Measure, and print the medians and their ratios to the last way."""
    p, _, q = grid.partition("x")
    case = Case(n, nb, int(p), int(q), blas.absolute(), device)
    chosen = [way for way in ways.split(",") if way != "hpcc" or shutil.which("hpcc") is not None]
    if chosen != ways.split(","):
        click.echo("hpcc was not found; install it, to compare with HPL itself", err=True)
    found: dict[str, list[float]] = {way: [] for way in chosen}
    for _ in range(times):
        for way in chosen:
            with Meter(device) as meter:
                result = WAYS[way](case)
            kept = {key: _told(value, case) for key, value in _kept(result | meter.found, way).items()}
            found[way].append(kept["gflops"])
            click.echo(f"{kept['program']}: {kept['seconds']:.2f} s, {kept['gflops']:.1f} Gflops")
            if out is not None:
                out.parent.mkdir(parents=True, exist_ok=True)
                with out.open("a") as file:
                    file.write(json.dumps(kept) + "\n")
    last = statistics.median(found[chosen[-1]])
    for way in chosen:
        median = statistics.median(found[way])
        click.echo(f"{way}: median {median:.1f} Gflops, {median / last:.3f} of {chosen[-1]}")


if __name__ == "__main__":
    main()
