"""Rank 0 waits for rank 1, which lets it wait; rank 0 tells how much CPU time that cost.

wait_policy.py WAY POLICY LETTING: WAY is how rank 1 ends the wait, or the device of a plan (cuda,
cuda/stream); POLICY is rank 0's, LETTING the seconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time

import peerway


def say(thing: object) -> None:
    print(json.dumps(thing), flush=True)


def main(operation: str, policy: str, letting: float) -> None:
    with peerway.Context() as ctx:
        ctx.wait_policy = policy
        assert ctx.wait_policy == policy
        if operation.startswith(("host", "cuda")):
            device, _, where = operation.partition("/")
            wait_for_plan(ctx, device, where == "stream", letting)
        else:
            wait_for_signal(ctx, operation, letting)


def timed(wait: object) -> None:
    """Print how the wait ended, and the CPU share of all threads of this rank meanwhile."""
    say("waiting")
    began, used = time.monotonic(), time.process_time()
    error = ""
    try:
        wait()  # type: ignore[operator]
    except peerway.Error as failure:
        error = type(failure).__name__
    wall = time.monotonic() - began
    say({"error": error, "wall": wall, "share": (time.process_time() - used) / wall})


def wait_for_signal(ctx: peerway.Context, operation: str, letting: float) -> None:
    region = ctx.allocate("host", 4096)
    arrived = ctx.signal(1)
    keys = ctx.team.all_gather(region.key()), ctx.team.all_gather(arrived.key())
    if ctx.rank == 0:
        if operation == "close":
            threading.Timer(letting, ctx._core.end_waits).start()
        timed(lambda: arrived.wait(1, timeout=50))
        if operation not in ("put", "staged"):
            return
    elif operation == "hang":
        say("waiting")
        sys.stdin.readline()
    elif operation in ("put", "staged"):
        if operation == "staged":
            ctx.use("staged")
        say("waiting")
        time.sleep(letting)
        ctx.put(ctx.import_key(keys[0][0]), region, notify=ctx.import_key(keys[1][0]))
        ctx.flush()
    else:
        say("waiting")
        sys.stdin.readline()
        return
    ctx.team.barrier()


def wait_for_plan(ctx: peerway.Context, device: str, on_stream: bool, letting: float) -> None:
    other = 1 - ctx.rank
    region = ctx.allocate(device, 128)
    plan = ctx.plan(device).send(other, 0, region[0:64]).receive(other, 0, region[64:128]).prepare()
    stream = ctx.stream(device)
    if ctx.rank == 1:
        say("waiting")
        time.sleep(letting)
    if on_stream:
        plan.run(stream)
    else:
        plan.start()

    def wait() -> None:
        stream.wait(50) if on_stream else plan.finish(timeout=50)

    if ctx.rank == 0:
        timed(wait)
    else:
        wait()
    ctx.team.barrier()


main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
