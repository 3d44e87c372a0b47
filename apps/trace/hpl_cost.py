"""What a trace costs Linpack, in pairs: apps/hpl without and with `full`, in turn.

    python apps/trace/hpl_cost.py [--pairs 60] [--n 2500] [--grid 1x2] [--out results/trace/hpl.jsonl]

A line of the record is one run; what is printed is the median of the pairs' relative differences of GFLOPS
with the interval that holds it with 95 %. What reads the rings afterwards is not timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from trace_cost import interval, typed

ROOT = Path(__file__).resolve().parents[2]


def once(words: list[str], level: str) -> tuple[float, int]:
    """Run the program once; returns GFLOPS and the number of events."""
    from peerway_trace import rings

    with tempfile.TemporaryDirectory() as folder:
        variables = dict(os.environ)
        if level != "off":
            variables |= {"PEERWAY_TRACE_DIR": folder, "PEERWAY_TRACE_LEVEL": level}
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=variables)
        recorded = [rings.read(file) for file in Path(folder).glob("*.ring")]
        events = sum(len(ring.events) + ring.overwritten for ring in recorded)
    (line,) = (json.loads(text) for text in done.stdout.splitlines() if text.startswith("{"))
    return float(line["gflops"]), events


def main() -> None:
    """Measure, keep the record, print the difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--n", default="2500")
    parser.add_argument("--nb", default="96")
    parser.add_argument("--grid", default="1x2")
    parser.add_argument("--blas", required=True)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rows, _, columns = options.grid.partition("x")
    words = [sys.executable, "-m", "peerway", "run", "-n", str(int(rows) * int(columns)), "--"]
    words += [str(ROOT / "build" / "hpl" / "hpl"), "--grid", options.grid, "--blas", options.blas]
    words += ["--threads", "1", "--n", options.n, "--nb", options.nb, "--json"]
    command = typed("hpl_cost.py", Path(options.blas), options.out)
    speeds: dict[str, list[float]] = {"off": [], "full": []}
    with (options.out or Path(os.devnull)).open("w") as record:
        for pair in range(options.pairs):
            # The two levels take turns in running first.
            for level in ("off", "full") if pair % 2 == 0 else ("full", "off"):
                speed, events = once(words, level)
                speeds[level].append(speed)
                line = {
                    "pair": pair, "level": level, "gflops": speed, "events": events,
                    "load": os.getloadavg()[0],
                    "time": datetime.now(UTC).isoformat(timespec="seconds"),
                    "command": command,
                }  # fmt: skip
                record.write(json.dumps(line) + "\n")
    lost = [100 * (1 - full / off) for off, full in zip(speeds["off"], speeds["full"], strict=True)]
    low, high = interval(lost)
    print(f"off {median(speeds['off']):.2f} GFLOPS, full {median(speeds['full']):.2f}: ", end="")
    print(f"{median(lost):+.2f} % [{low:+.2f}, {high:+.2f}] of {options.pairs} pairs")


if __name__ == "__main__":
    main()
