"""Times laplace.c (directives) beside laplace_mpi.c (MPI and OpenMP by hand), alternately, on two processes.

    python examples/xacc/compare.py --out results/xacc/laplace.jsonl [--repeat 9] [--fortran]

With --points only these sizes, with --fortran also laplace.f90 and laplace_mpi.f90. A record has the speeds
of all runs in million points a second, and the medians of the ratios of neighbours: a machine that others
use slows all.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERWAY = Path(sys.executable).with_name("peerway")
FLAGS = ["-O3", "-march=native"]
RATIOS = {
    "": ("xacc", "mpi"), "_fortran_to_mpi": ("fortran", "fortran_mpi"), "_fortran_to_c": ("fortran", "xacc"),
}  # fmt: skip
SIZES = {64: 7616, 500: 3000, 1000: 800, 2000: 200}  # points a side: steps


def main() -> None:
    """Build both for each size, run them in turn, and write the records."""
    plain = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--repeat", type=int, default=9)
    options.add_argument("--fortran", action="store_true")
    options.add_argument("--points", type=int, nargs="*", choices=SIZES, default=list(SIZES))
    options.add_argument("--mpirun", default="mpirun --bind-to core")
    given = options.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for size in given.points:
            steps = SIZES[size]
            commands = built(Path(folder), size, steps, given.mpirun.split(), given.fortran)
            speeds: dict[str, list[float]] = {name: [] for name in commands}
            for _ in range(given.repeat):
                for name, command in commands.items():
                    speeds[name].append(speed(command))
            ratios = {
                f"ratio{name}": ratio(speeds, *names) for name, names in RATIOS.items() if names[0] in speeds
            }
            print(f"{size} x {size}: {ratios['ratio']:.2f} x the speed of MPI and OpenMP by hand")
            records.append({
                "test": "laplace", "processes": 2, "threads": 1, "points": size, "steps": steps,
                "unit": "million points a second", **speeds, **ratios,
                "command": shlex.join(["python", *sys.argv]),
                "flags": " ".join(FLAGS), "host": os.uname().nodename, "cpus": os.cpu_count(),
                "load": os.getloadavg()[0],
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            })  # fmt: skip
    given.out.write_text("".join(json.dumps(record) + "\n" for record in records))


def built(folder: Path, size: int, steps: int, mpirun: list[str], fortran: bool) -> dict[str, list[str]]:
    """Compile the programs for a size; the command that runs each."""
    ours, theirs = [str(PEERWAY), "run", "-n", "2"], [*mpirun, "-n", "2"]
    programs = {name: str(folder / f"{name}{size}") for name in ("xacc", "mpi", "fortran", "fortran_mpi")}
    in_c = [*FLAGS, f"-DN={size}"]
    subprocess.check_call([PEERWAY, "cc", *in_c, HERE / "laplace.c", "-lm", "-o", programs["xacc"]])
    by_hand = [str(HERE / "laplace_mpi.c"), "-lm", "-o", programs["mpi"]]
    subprocess.check_call(["mpicc", "-fopenmp", *in_c, *by_hand])
    commands = {"xacc": [*ours, programs["xacc"], str(steps)], "mpi": [*theirs, programs["mpi"], str(steps)]}
    if fortran:
        for name in ("laplace", "laplace_mpi"):
            text = (HERE / f"{name}.f90").read_text()
            sized = text.replace("n = 64, steps = 20000", f"n = {size}, steps = {steps}")
            (folder / f"{name}.f90").write_text(sized)
        with_directives = [*FLAGS, str(folder / "laplace.f90"), "-o", programs["fortran"]]
        subprocess.check_call([PEERWAY, "fc", *with_directives])
        subprocess.check_call(["mpif90", *FLAGS, folder / "laplace_mpi.f90", "-o", programs["fortran_mpi"]])
        commands["fortran"] = [*ours, programs["fortran"]]
        commands["fortran_mpi"] = [*theirs, programs["fortran_mpi"]]
    return commands


def ratio(speeds: dict[str, list[float]], program: str, other: str) -> float:
    """The median of the ratios of neighbours."""
    pairs = zip(speeds[program], speeds[other], strict=True)
    return round(statistics.median(first / second for first, second in pairs), 3)


def speed(command: list[str]) -> float:
    """Run a program, and return the speed that it prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    rate = re.search(r"([\d.]+) million points", done.stderr)
    assert rate, done.stderr
    return float(rate[1])


if __name__ == "__main__":
    main()
