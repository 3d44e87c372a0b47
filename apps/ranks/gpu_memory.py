"""What a rank with GPU memory adds to its process and to its GPU, beyond what the driver takes for itself.

    peerway run -n 8 -- python apps/ranks/gpu_memory.py > results/scale-ranks/gpu-memory.jsonl

Each rank makes the driver's context on its GPU and counts; then it makes a Peerway context, puts to every
other rank by every path that this machine has, exchanges a plan on a stream with two neighbours, and counts
again. Ranks share GPUs where there are fewer. Rank 0 prints one record, in KiB.
"""

from __future__ import annotations

import ctypes
import json
import os
import statistics
import sys
from pathlib import Path

import peerway
from peerway import _core

SPAN = 1 << 20  # bytes of each region: small, so that the memory of the paths is visible beside it
WAIT = 120.0
DRIVER = os.environ.get("PEERWAY_CUDA_LIBRARY") or "libcuda.so.1"


class Driver:
    """The driver's own context on one GPU, which every program has that uses the GPU."""

    def __init__(self, ordinal: int) -> None:
        self.library = ctypes.CDLL(DRIVER)
        context, address = ctypes.c_void_p(), ctypes.c_uint64()
        content = (ctypes.c_ubyte * SPAN)()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
        self.call("cuCtxPushCurrent_v2", context)
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(SPAN))
        self.call("cuMemcpy", address, ctypes.c_uint64(ctypes.addressof(content)), ctypes.c_size_t(SPAN))

    def call(self, name: str, *arguments: object) -> None:
        """Call the driver. Raises RuntimeError with the driver's error number."""
        if result := getattr(self.library, name)(*arguments):
            raise RuntimeError(f"{name} gave {result}")

    def used_kib(self) -> float:
        """The GPU memory that all processes use together, in KiB."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return (total.value - free.value) / 1024


def private_kib() -> float:
    """The memory that only this process has, in KiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    fields = {name: float(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return fields["Private_Clean"] + fields["Private_Dirty"]


def shared_kib() -> float:
    """This process's share of memory that several processes map, in KiB."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    fields = {name: float(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines)}
    return fields["Pss"] - fields["Private_Clean"] - fields["Private_Dirty"]


def put_by_every_path(ctx: peerway.Context, region: peerway.Region) -> list[str]:
    """Put 64 KiB to every other rank by each possible path; returns the paths."""
    keys = ctx.team.all_gather(region.key(), WAIT)
    used = set()
    for step in range(1, ctx.size):
        far = ctx.import_key(keys[(ctx.rank + step) % ctx.size])
        for info in ctx.paths(far, region, "put"):
            if info.available:
                ctx.use(info.name)
                ctx.put(far[: 64 << 10], region[: 64 << 10])
                ctx.flush(timeout=WAIT)
                used.add(info.name)
        ctx.team.barrier(WAIT)
    return sorted(used)


def exchange(ctx: peerway.Context, device: str, region: peerway.Region) -> None:
    """Run a plan on a stream that sends a row to each of two neighbours."""
    ctx.use()
    builder = ctx.plan(device)
    for tag, step in enumerate((1, -1)):
        builder.send((ctx.rank + step) % ctx.size, tag, region[tag << 13 : (tag + 1) << 13])
        builder.receive((ctx.rank - step) % ctx.size, tag, region[(4 + tag) << 13 : (5 + tag) << 13])
    plan, stream = builder.prepare(), ctx.stream(device)
    for _ in range(10):
        plan.start(stream)
        plan.finish(stream)
    stream.wait(WAIT)


def main() -> None:
    """Count before and after, and let rank 0 print the record."""
    gpus = sum(name.startswith("cuda") for name, _ in _core.devices())
    if not gpus:
        raise SystemExit(f"gpu_memory: no GPU: {_core.why_none('cuda')}")
    rank = int(os.environ.get("PEERWAY_RANK", "0"))
    ordinal = rank % gpus
    driver = Driver(ordinal)
    with peerway.Team.from_launcher() as team:
        team.barrier(WAIT)
        before = {"private": private_kib(), "shared": shared_kib(), "gpu": driver.used_kib()}
        team.barrier(WAIT)
        with peerway.Context(team) as ctx:
            region = ctx.allocate(f"cuda:{ordinal}", SPAN)
            paths = put_by_every_path(ctx, region)
            exchange(ctx, f"cuda:{ordinal}", region)
            ctx.team.barrier(WAIT)
            after = {"private": private_kib(), "shared": shared_kib(), "gpu": driver.used_kib()}
            added = {name: after[name] - before[name] for name in after}
            answers = [json.loads(each) for each in ctx.team.all_gather(json.dumps(added).encode(), WAIT)]
            if rank == 0:
                sharing = ctx.size / gpus
                record = {
                    "test": "gpu_memory",
                    "command": f"peerway run -n {ctx.size} -- python {' '.join(sys.argv)}",
                    "peerway": peerway.__version__,
                    "device": dict(_core.devices())["cuda:0"],
                    "ranks": ctx.size,
                    "gpus": gpus,
                    "paths": paths,
                    "private_kib": [answer["private"] for answer in answers],
                    "shared_kib": [round(answer["shared"]) for answer in answers],
                    "gpu_kib_a_rank": round(statistics.median(answer["gpu"] for answer in answers) / sharing),
                }
                print(json.dumps(record), flush=True)
            ctx.team.barrier(WAIT)


if __name__ == "__main__":
    main()
