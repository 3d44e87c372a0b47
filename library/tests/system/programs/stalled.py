"""Rank 0 has a plan with rank 1, which stands still, and one with rank 2, which does not; and it puts into
memory of rank 1, whereupon rank 2's signal is to be notified.

stalled.py BYTES ROUNDS
"""

from __future__ import annotations

import sys

import numpy as np

import peerway


def main() -> int:
    """Rank 0 tells how often the living plan finished meanwhile, and that its own put was started; then that
    all has arrived. Rank 2 tells that its signal was not notified before the data of rank 1 was there.
    """
    size, rounds = int(sys.argv[1]), int(sys.argv[2])
    with peerway.Context() as ctx:
        memory = np.full(size, ctx.rank + 1, np.uint8)
        region = ctx.register(memory)
        keys = ctx.team.all_gather(region.key())
        signal = ctx.signal(sender=0)
        signals = ctx.team.all_gather(signal.key())
        if ctx.rank == 0:
            far, behind = ctx.import_key(keys[1]), ctx.import_key(signals[2])
            plans = {
                rank: ctx.plan().put(ctx.import_key(keys[rank]), region).prepare(alone=True)
                for rank in (1, 2)
            }
            for plan in plans.values():  # with all that a first transfer makes
                plan.start()
                plan.finish(timeout=30)
            ctx.put(far, region, behind)
            ctx.flush(timeout=30)
        ctx.team.barrier(60)
        print("true", flush=True)
        if ctx.rank == 0:
            sys.stdin.readline()
            plans[1].start()
            for _ in range(rounds):
                plans[2].start()
                plans[2].finish(timeout=30)
            print(rounds, flush=True)
            ctx.put(far, region, behind)
            print("true", flush=True)
            sys.stdin.readline()
            plans[1].finish(timeout=30)
            ctx.flush(timeout=30)
            print("true", flush=True)
        if ctx.rank == 2:
            sys.stdin.readline()
            print(signal.value, flush=True)
            signal.wait(2, timeout=30)
            print(signal.value, flush=True)
        ctx.team.barrier(60)
        arrived = bool((memory == 1).all())
        print("true" if arrived else "false", flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
