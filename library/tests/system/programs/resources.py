"""What a context takes of the system, and whether it gives it back.

resources.py cycles     contexts, regions and imports come and go; say what the process has before and after
resources.py footprint [KIND]
                        every rank moves data to every other by every path, in memory of that kind (host);
                        say what host memory that took, above what the GPU's driver takes by itself
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from pathlib import Path

import numpy as np

import peerway

CYCLES = 200
PATHS = {"host": ["peer/shm", "peer/cma", "staged"], "cuda": ["peer/copy", "peer/store", "staged"]}


def resident() -> int:
    """Bytes of this process in memory, including shared memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def share() -> int:
    """This process's share of memory in bytes: memory of several processes is divided among them."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))


def count(folder: str) -> int:
    """The number of entries of a folder."""
    return sum(1 for _ in Path(folder).iterdir())


def held() -> dict[str, int]:
    """The number of descriptors, threads and mappings of this process, and its memory."""
    return {
        "descriptors": count("/proc/self/fd"),
        "threads": count("/proc/self/task"),
        "mappings": Path("/proc/self/maps").read_text().count("\n"),
        "resident": resident(),
    }


def use(ctx: peerway.Context, size: int, kind: str = "host") -> None:
    """Move a little data to every rank by every path."""
    region = ctx.allocate(kind, size)
    keys = ctx.team.all_gather(region.key(), timeout=30)
    for key in keys:
        remote = ctx.import_key(key)
        for path in PATHS[kind]:
            ctx.use(path)
            ctx.put(remote[0 : size // 2], region[size // 2 : size])
        ctx.flush(timeout=30)
        remote.close()
    ctx.team.barrier(timeout=30)
    region.close()


def churn(ctx: peerway.Context, times: int) -> None:
    """Make and close regions of new memory and spans, imports and signals, in one context."""
    memory = np.zeros(1 << 20, np.uint8)
    for i in range(times):
        region = ctx.register(memory[i % 100_000 : i % 100_000 + 1000])
        signal = ctx.signal()
        for key in (region.key(), signal.key()):
            ctx.import_key(key).close()
        ctx.use(PATHS["host"][i % 2])
        signal.close()
        region.close()


def cycles() -> None:
    """Make and close whole contexts, then objects in one context; a few of each before counting begins."""
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


def start_driver(index: int) -> None:
    """Load the driver and make a GPU context, without Peerway."""
    driver = ctypes.CDLL("libcuda.so.1")
    device, made = ctypes.c_int(), ctypes.c_void_p()
    for status in (
        driver.cuInit(0),
        driver.cuDeviceGet(ctypes.byref(device), index),
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(made), device),
    ):
        if status != 0:
            raise SystemExit(f"the CUDA driver answered {status}")


def footprint(kind: str = "host") -> None:
    """Use everything, with every other rank."""
    with peerway.Team.from_launcher() as team:
        if kind == "cuda":
            start_driver(int(os.environ.get("PEERWAY_DEVICE", "0").rpartition(":")[2]))
        before = share()
        with peerway.Context(team) as ctx:
            empty = share() - before
            use(ctx, 4 << 20, kind)
            used = share() - before
            line = {"test": "context_memory", "ranks": team.size, "rank": team.rank, "source": kind}
            line |= {"empty_bytes": empty, "used_bytes": used, "command": " ".join(sys.argv)}
            print(json.dumps(line), flush=True)
            team.barrier(timeout=60)


if __name__ == "__main__":
    {"cycles": cycles, "footprint": footprint}[sys.argv[1]](*sys.argv[2:])
