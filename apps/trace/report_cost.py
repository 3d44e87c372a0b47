"""What `peerway trace report` takes for a trace of so many events: a ring of ranks that exchange random
sizes, simulated.

python apps/trace/report_cost.py [--events 10000000] [--out results/trace/report.jsonl]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from trace_cost import typed

from peerway_trace.rings import Kind
from peerway_trace.store import COLUMNS, EVENTS, SUM_COLUMNS, Thread, Writer

NAMES = [
    "", "MPI_Isend", "MPI_Irecv", "MPI_Waitall", "send, until complete", "receive, until complete", "world",
    "main at ring.c:12", "step", "main at ring.c:13", "main at ring.c:14",
]  # fmt: skip
RANKS = 8
# By this curve half of the simulated messages are slow, so the report looks for their causes.
CURVE = [
    {"test": "pingpong", "shape": "contiguous", "via": "openmpi", "op": "put", "bytes": size, "p50_us": us}
    for size, us in ((8, 0.4), (1 << 19, 1.2))
]


def write(folder: Path, events: int) -> int:
    """Write the trace; returns its number of events."""
    folder.mkdir()
    random, writer = np.random.default_rng(1), Writer(folder)
    steps = events // RANKS // 6
    for rank in range(RANKS):
        begin, wait = np.cumsum(random.integers(3000, 20000, steps)), random.integers(500, 2500, steps)
        previous, following = (rank - 1) % RANKS, (rank + 1) % RANKS
        rows = (  # kind, offset, duration, name, peer, site
            (Kind.REGION, 0, wait + 400, 8, -1, 0), (Kind.IRECV, 50, 80, 2, previous, 7),
            (Kind.ISEND, 150, 100, 1, following, 9), (Kind.WAIT, 300, wait, 3, -1, 10),
            (Kind.SENT, 150, wait + 150, 4, following, 10), (Kind.RECEIVED, 50, wait + 250, 5, previous, 10),
        )  # fmt: skip
        size = 1 << random.integers(3, 20, steps)
        columns = {name: np.zeros(steps * 6, kind) for name, kind in COLUMNS.items()}
        for i, (kind, offset, duration, name, peer, site) in enumerate(rows):
            message = kind not in (Kind.REGION, Kind.WAIT)
            for column, value in (
                ("kind", kind), ("begin", begin + offset), ("duration", duration), ("name", name),
                ("peer", peer), ("site", site), ("where", 6 * message), ("tag", 3 if message else -1),
                ("bytes", size * message),
            ):  # fmt: skip
                columns[column][i::6] = value
        columns["thread"][:] = rank
        order = np.lexsort((-columns["duration"], columns["begin"]))
        writer.add({name: column[order] for name, column in columns.items()})
    threads = [
        Thread(rank, "a", rank, rank, "openmpi", "", steps * 6, 0, 0, 0, 0, 0) for rank in range(RANKS)
    ]
    about = {"command": ["simulated"], "level": "full", "began": "", "lost": []}
    writer.end(about, NAMES, threads, {name: np.empty(0, kind) for name, kind in SUM_COLUMNS.items()}, [])
    return RANKS * steps * 6


def main() -> None:
    """Measure once; print the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "trace"
        events = write(folder, options.events)
        curve = Path(place) / "curve.jsonl"
        curve.write_text("".join(json.dumps(record) + "\n" for record in CURVE))
        words = [sys.executable, "-m", "peerway", "trace", "report", str(folder), "-o", f"{place}/page.html"]
        words += ["--bench", str(curve)]
        began = time.monotonic()
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        line = {
            "events": events, "seconds": round(time.monotonic() - began, 2), "status": status,
            "page_MiB": round((Path(place) / "page.html").stat().st_size / (1 << 20), 1),
            "cpu_seconds": round(used.ru_utime + used.ru_stime, 2), "peak_MiB": used.ru_maxrss // 1024,
            "bytes_an_event": round((folder / EVENTS).stat().st_size / events, 2), "load": os.getloadavg()[0],
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": typed("report_cost.py", options.out),
        }  # fmt: skip
    text = json.dumps(line)
    print(text)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
