"""Two ranks with a GPU each: what a transfer and its flush take from Python, what the first of a pair takes,
a plan's exchange, and what registering memory consists of. Rank 0 prints JSON lines:

    peerway run -n 2 -- python gpu_put_times.py NAME

NAME goes into each line, for runs that differ in their environment.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import peerway

WAIT = 60.0
Result = TypeVar("Result")
SMALL, LARGE, LARGEST = 8, 64 << 20, 2 << 30


class Pair:
    """This rank, the other rank, and the output."""

    def __init__(self, ctx: peerway.Context, name: str) -> None:
        self.ctx, self.name, self.other = ctx, name, 1 - ctx.rank

    def print(self, **line: object) -> None:
        if self.ctx.rank == 0:
            seen = os.environ.get("CUDA_VISIBLE_DEVICES", "")
            print(json.dumps({"name": self.name, "visible_to_rank_0": seen, **line}), flush=True)

    def memory(self, size: int) -> tuple[peerway.Region, peerway.Remote]:
        region = self.ctx.allocate("cuda", size)
        keys = self.ctx.team.all_gather(region.key(), WAIT)
        return region, self.ctx.import_key(keys[self.other])

    def together(self) -> None:
        self.ctx.team.barrier(WAIT)


def microseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def summary(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {"p50_us": round(times[len(times) // 2], 2), "p99_us": round(times[len(times) * 99 // 100], 2)}


def moves(
    ctx: peerway.Context, far: peerway.Remote, near: peerway.Region, size: int
) -> dict[str, Callable[[], None]]:
    """A put and a get of the first bytes, each with its flush, by name."""
    there, here = far[0:size], near[0:size]

    def put() -> None:
        ctx.put(there, here)
        ctx.flush()

    def get() -> None:
        ctx.get(here, there)
        ctx.flush()

    return {"put": put, "get": get}


def transfers(pair: Pair) -> None:
    """Puts and gets by rank 0 with their flushes, by each path."""
    region, remote = pair.memory(LARGE)
    for path in ("peer/copy", "peer/store"):
        pair.ctx.use(path)
        for size, repeats in ((SMALL, 5000), (64 << 10, 2000), (LARGE, 100)):
            for op, move in moves(pair.ctx, remote, region, size).items():
                pair.together()
                if pair.ctx.rank == 0:
                    times = [microseconds(move) for _ in range(repeats)]
                    pair.print(
                        test="transfer", path=path, op=op, bytes=size, **summary(times[repeats // 10 :])
                    )
                pair.together()
    pair.ctx.use("route")


def first_transfers(pair: Pair) -> None:
    """Puts of a whole allocation, one after another, beginning with the first."""
    region, remote = pair.memory(LARGEST)
    pair.together()
    if pair.ctx.rank == 0:
        put = moves(pair.ctx, remote, region, LARGEST)["put"]
        rates = [round(LARGEST / microseconds(put) / 1000, 1) for _ in range(6)]
        pair.print(test="first", op="put", bytes=LARGEST, GBps=rates)
    pair.together()


def plans(pair: Pair) -> None:
    """Both ranks send to each other: start and finish of a plan."""
    ctx = pair.ctx
    for size in (SMALL, 64 << 10, 4 << 20):
        out, into = ctx.allocate("cuda", size), ctx.allocate("cuda", size)
        plan = ctx.plan("cuda").send(pair.other, 1, out).receive(pair.other, 1, into).prepare()
        pair.together()
        times = [microseconds(plan.run) for _ in range(2000)]
        pair.print(test="plan", bytes=size, methods=plan.describe(), **summary(times[200:]))
        pair.together()


def registrations(pair: Pair) -> None:
    """New memory from its allocation to its release, step by step."""
    steps: dict[str, list[float]] = {}

    def timed(step: str, call: Callable[..., Result], *arguments: object) -> Result:
        start = time.perf_counter_ns()
        result = call(*arguments)
        steps.setdefault(step, []).append((time.perf_counter_ns() - start) / 1000)
        return result

    for _ in range(40):
        region = timed("allocate", pair.ctx.allocate, "cuda", LARGE)
        keys = pair.ctx.team.all_gather(timed("key", region.key), WAIT)
        remote = timed("import", pair.ctx.import_key, keys[pair.other])
        timed("first put", moves(pair.ctx, remote, region, SMALL)["put"])
        pair.together()
        timed("close remote", remote.close)
        pair.together()
        timed("close region", region.close)
        pair.together()
    medians = {step: summary(times)["p50_us"] for step, times in steps.items()}
    pair.print(test="registration", bytes=LARGE, p50_us=medians, sum_us=round(sum(medians.values()), 1))


def main(name: str) -> None:
    with peerway.Context() as ctx:
        pair = Pair(ctx, name)
        first_transfers(pair)
        transfers(pair)
        plans(pair)
        registrations(pair)


if __name__ == "__main__":
    main(sys.argv[1])
