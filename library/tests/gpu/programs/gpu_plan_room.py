"""Two ranks with a GPU each: what a plan takes that exchanges two halos with the other rank, and what it
takes beside a kernel that fills the GPU, if it leaves room for that and if not. Rank 0 prints JSON lines:

    peerway run -n 2 -- python library/tests/gpu/programs/gpu_plan_room.py

All times are medians in µs, of CUDA graphs with ten repetitions. The kernel is a product of two matrices of
floats. Beside it means that it begins when the plan does, in a stream of its own, and that both have ended
before the next repetition.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial

import torch

import peerway

WAIT = 60.0
REPEAT, SAMPLES = 10, 11
SIZES = [1 << 19, 1 << 20, 3 << 19, 2 << 20, 3 << 20, 4 << 20, 6 << 20, 12 << 20, 32 << 20, 64 << 20]
EDGE = 1024  # of the matrices


def main() -> None:
    """Measure each size with and without room, in turn."""
    with peerway.Context() as ctx:
        torch.cuda.set_device(ctx.rank)
        left, right, product = (torch.rand(EDGE, EDGE, device="cuda") for _ in range(3))

        def multiply() -> None:
            torch.mm(left, right, out=product)

        alone = time_of(ctx, lambda _: multiply())
        for size in SIZES:
            plan = exchange(ctx, size)
            line: dict[str, object] = {"test": "plan_room", "bytes": size, "kernel_us": alone}
            for room in (False, True):
                plan.leave_room(room)
                name = "with_room" if room else "without_room"
                line[f"plan_us_{name}"] = time_of(ctx, plan.run)
                line[f"both_us_{name}"] = time_of(ctx, partial(beside, plan, multiply))
            plan.close()
            if ctx.rank == 0:
                print(json.dumps({**line, "gpu": torch.cuda.get_device_name()}), flush=True)


def exchange(ctx: peerway.Context, size: int) -> peerway.Plan:
    """A plan that sends two halos of together `size` bytes to the other rank, and receives as many."""
    half, other = size // 2, 1 - ctx.rank
    region = ctx.allocate("cuda", 2 * size)
    builder = ctx.plan("cuda")
    for face in range(2):
        builder.send(other, face, region[face * half : (face + 1) * half])
        builder.receive(other, face, region[size + face * half : size + (face + 1) * half])
    return builder.prepare()


def beside(plan: peerway.Plan, kernel: Callable[[], None], stream: torch.cuda.Stream) -> None:
    """The plan in the given stream, and the kernel in one that forks from it and joins it."""
    fork = torch.cuda.Stream()
    fork.wait_stream(stream)
    plan.run(stream)
    with torch.cuda.stream(fork):
        kernel()
    stream.wait_stream(fork)


def time_of(ctx: peerway.Context, work: Callable[[torch.cuda.Stream], None]) -> float:
    """The median time of `work` in a graph, in µs."""
    warm = torch.cuda.Stream()
    with torch.cuda.stream(warm):
        work(warm)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEAT):
            work(torch.cuda.current_stream())
    times = []
    for _ in range(SAMPLES):
        ctx.team.barrier(WAIT)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / REPEAT)
    return round(statistics.median(times), 2)


if __name__ == "__main__":
    main()
