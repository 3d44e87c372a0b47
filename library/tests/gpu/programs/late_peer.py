"""Rank 1 of two begins late: what a round trip of many blocks takes then, beside one of a single warp.

Both ranks put all round trips of a round on a stream before they wait. Each rank prints the median of the
rounds, in microseconds a round trip, as a line of JSON.
"""

from __future__ import annotations

import json
import statistics
import time

import peerway

ROUNDS, TRIPS = 9, 100
LATE = 0.005  # seconds
WAIT = 60.0


def main() -> None:
    with peerway.Context() as ctx:
        ctx.use("plan/packets")
        device = f"cuda:{ctx.rank}"
        memory = ctx.allocate(device, 512 << 10)
        stream = ctx.stream(device)
        found = {}
        for name, size in (("warp", 128), ("blocks", 128 << 10)):
            there = ctx.plan(device)
            back = ctx.plan(device)
            for plan, sends in ((there, ctx.rank == 0), (back, ctx.rank == 1)):
                if sends:
                    plan.send(1 - ctx.rank, 0, memory[0:size])
                else:
                    plan.receive(1 - ctx.rank, 0, memory[256 << 10 : (256 << 10) + size])
            trip = [there.prepare(), back.prepare()]
            taken = []
            for _ in range(ROUNDS):
                ctx.team.barrier()
                if ctx.rank == 1:
                    time.sleep(LATE)
                began = time.perf_counter()
                for _ in range(TRIPS):
                    for plan in trip:
                        plan.run(stream)
                stream.wait(WAIT)
                taken.append((time.perf_counter() - began) / TRIPS * 1e6)
            for plan in trip:
                plan.check()
            found[name] = statistics.median(taken)
        print(json.dumps({"rank": ctx.rank, **found}), flush=True)
        ctx.team.barrier()


main()
