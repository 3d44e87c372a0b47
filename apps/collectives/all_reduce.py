"""All-reduces on the CPU, by Peerway and by the MPI of mpicxx, in turn:

python apps/collectives/all_reduce.py --out results/cpu-2-collectives/all_reduce.jsonl
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

import compiling
import record_lines

HERE = Path(__file__).resolve().parent
OUT = compiling.ROOT / "build" / "collectives"


def build() -> tuple[Path, Path]:
    """Compile both programs."""
    OUT.mkdir(parents=True, exist_ok=True)
    flags = ["-O2", "-std=c++20", f"-I{compiling.HEADERS}", *compiling.WARNINGS]
    ours, theirs = OUT / "over_peerway", OUT / "over_mpi"
    commands = {
        ours: [compiling.host_compiler(), *flags, str(HERE / "over_peerway.cpp"), *compiling.with_library()],
        theirs: [compiling.mpi_compiler(), *flags, str(HERE / "over_mpi.cpp")],
    }
    compiling.make_all(commands, compiling.inputs_of(HERE))
    return ours, theirs


def run(*command: str) -> list[dict[str, Any]]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)} failed:\n{done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def version_of_mpi() -> str:
    done = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False)
    return done.stdout.partition("\n")[0]


@click.command(help=__doc__)
@click.option("--ranks", default=2, help="Number of ranks.")
@click.option("--times", default=5, help="How often each program runs.")
@click.option("--out", type=click.Path(path_type=Path), help="Append the records to this file.")
def main(ranks: int, times: int, out: Path | None) -> None:
    ours, theirs = build()
    samples: dict[tuple[int, str], list[float]] = defaultdict(list)
    environment = {"ranks": ranks, "times": times, "mpi": version_of_mpi(), "cpus": os.cpu_count()}
    for _ in range(times):
        rows = run("peerway", "run", "-n", str(ranks), "--", str(ours))
        rows += run("mpirun", "--allow-run-as-root", "-n", str(ranks), str(theirs))
        for row in rows:
            samples[row["bytes"], row["library"]] += row["us"]
    command = " ".join(["python", "apps/collectives/all_reduce.py", f"--ranks {ranks}", f"--times {times}"])
    date = record_lines.now()
    for (size, library), us in sorted(samples.items()):
        median, least = statistics.median(us), min(us)
        click.echo(f"{size:>9} B  {library:8}  median {median:9.2f} us, least {least:9.2f} us")
        record = {"what": "all_reduce of float64, sum", "library": library, "bytes": size}
        record |= {"median_us": round(median, 3), "min_us": least, "samples": len(us), **environment}
        record |= {"load": round(os.getloadavg()[0], 2), "date": date, "command": command}
        record_lines.append(out, record)


if __name__ == "__main__":
    main()
