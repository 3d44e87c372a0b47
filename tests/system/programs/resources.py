"""What a context takes of the system, and whether it gives it back.

resources.py cycles     contexts, regions and imports come and go; say what the process has before and after
resources.py footprint  every rank moves data to every other by every path; say what memory that took
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np

import peerway

CYCLES = 200
PATHS = ["peer/shm", "peer/cma", "staged"]


def resident() -> int:
    """Bytes of this process in memory, its shared memory included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def count(folder: str) -> int:
    """Entries of a folder."""
    return sum(1 for _ in Path(folder).iterdir())


def held() -> dict[str, int]:
    """Descriptors, threads, mappings and memory of this process."""
    return {
        "descriptors": count("/proc/self/fd"),
        "threads": count("/proc/self/task"),
        "mappings": Path("/proc/self/maps").read_text().count("\n"),
        "resident": resident(),
    }


def use(ctx: peerway.Context, size: int) -> None:
    """Move a little to every rank by every path."""
    region = ctx.allocate("host", size)
    keys = ctx.team.all_gather(region.key(), timeout=30)
    for key in keys:
        remote = ctx.import_key(key)
        for path in PATHS:
            ctx.use(path)
            ctx.put(remote[0 : size // 2], region[size // 2 : size])
        ctx.flush(timeout=30)
        remote.close()
    ctx.team.barrier(timeout=30)
    region.close()


def churn(ctx: peerway.Context, times: int) -> None:
    """Regions of new memory and spans, imports and signals, in one context."""
    memory = np.zeros(1 << 20, np.uint8)
    for i in range(times):
        region = ctx.register(memory[i % 100_000 : i % 100_000 + 1000])
        signal = ctx.signal()
        for key in (region.key(), signal.key()):
            ctx.import_key(key).close()
        ctx.use(PATHS[i % 2])
        signal.close()
        region.close()


def cycles() -> None:
    """Whole contexts, then what is made in one; a few of each before counting begins."""
    with peerway.Team.from_launcher() as team:
        for _ in range(10):
            with peerway.Context(team) as ctx:
                use(ctx, 4096)
                churn(ctx, 100)
        before = held()
        for _ in range(CYCLES):
            with peerway.Context(team) as ctx:
                use(ctx, 4096)
        between = held()
        with peerway.Context(team) as ctx:
            churn(ctx, 50_000)
        print(json.dumps([before, between, held()]), flush=True)
        team.barrier(timeout=30)


def footprint() -> None:
    """Everything in use towards everybody."""
    before = resident()
    with peerway.Context() as ctx:
        empty = resident()
        use(ctx, 4 << 20)
        print(json.dumps([empty - before, resident() - before]), flush=True)
        ctx.team.barrier(timeout=30)


if __name__ == "__main__":
    {"cycles": cycles, "footprint": footprint}[sys.argv[1]]()
