"""Times laplace.c (directives) beside laplace_mpi.c (MPI and OpenMP by hand), alternately, on two processes.

    python examples/xacc/compare.py --out results/xacc/laplace.jsonl [--repeat 9]

A record has the speeds of all runs in million points a second, and the median of the ratios
of neighbours: a machine that others use slows both.
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
SIZES = {64: 7616, 500: 3000, 1000: 800, 2000: 200}  # points a side: steps


def main() -> None:
    """Build both for each size, run them in turn, and write the records."""
    plain = argparse.RawDescriptionHelpFormatter
    options = argparse.ArgumentParser(description=__doc__, formatter_class=plain)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--repeat", type=int, default=9)
    options.add_argument("--mpirun", default="mpirun --bind-to core")
    given = options.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for size, steps in SIZES.items():
            ours, theirs = Path(folder, f"xacc{size}"), Path(folder, f"mpi{size}")
            define = f"-DN={size}"
            subprocess.check_call([PEERWAY, "cc", *FLAGS, define, HERE / "laplace.c", "-lm", "-o", ours])
            by_hand = [HERE / "laplace_mpi.c", "-lm", "-o", theirs]
            subprocess.check_call(["mpicc", "-fopenmp", *FLAGS, define, *by_hand])
            speeds: dict[str, list[float]] = {"xacc": [], "mpi": []}
            for _ in range(given.repeat):
                speeds["xacc"].append(speed([str(PEERWAY), "run", "-n", "2", str(ours), str(steps)]))
                speeds["mpi"].append(speed([*given.mpirun.split(), "-n", "2", str(theirs), str(steps)]))
            pairs = zip(speeds["xacc"], speeds["mpi"], strict=True)
            ratio = statistics.median(ours_ran / theirs_ran for ours_ran, theirs_ran in pairs)
            print(f"{size} x {size}: {ratio:.2f} x the speed of MPI and OpenMP by hand")
            records.append({
                "test": "laplace", "processes": 2, "threads": 1, "points": size, "steps": steps,
                "unit": "million points a second", **speeds, "ratio": round(ratio, 3),
                "command": shlex.join(["python", *sys.argv]),
                "flags": " ".join(FLAGS), "host": os.uname().nodename, "cpus": os.cpu_count(),
                "load": os.getloadavg()[0],
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
            })  # fmt: skip
    given.out.write_text("".join(json.dumps(record) + "\n" for record in records))


def speed(command: list[str]) -> float:
    """Run a program, and return the speed that it prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    found = re.search(r"([\d.]+) million points", done.stderr)
    assert found, done.stderr
    return float(found[1])


if __name__ == "__main__":
    main()
