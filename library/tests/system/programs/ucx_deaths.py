"""A rank of a job whose ranks put into one another by UCX while they die one after another.

    ucx_deaths.py BYTES

Every rank takes itself for a host of its own (not with ONE_HOST in the environment), puts BYTES and a signal
into each rank that is alive, again and again, and tells of each rank that it finds lost. A line on its
standard input ends it.
"""

from __future__ import annotations

import json
import os
import sys
import threading

if not os.environ.get("ONE_HOST"):
    os.environ["PEERWAY_HOST_ID"] = f"host {os.environ['PEERWAY_RANK']}"

import peerway

ROUNDS = 3  # with every rank, before this rank reports that it works


def main() -> int:
    """Put until told to end."""
    size = int(sys.argv[1])
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    with peerway.Context() as ctx:
        region, source = ctx.allocate("host", size * ctx.size), ctx.allocate("host", size)
        arrived = ctx.signal()
        keys, signals = (ctx.team.all_gather(each.key()) for each in (region, arrived))
        alive = {
            rank: (ctx.import_key(keys[rank]), ctx.import_key(signals[rank]))
            for rank in range(ctx.size)
            if rank != ctx.rank
        }
        mine = slice(ctx.rank * size, (ctx.rank + 1) * size)
        rounds = 0
        while not over.is_set():
            for rank, (far, signal) in list(alive.items()):
                try:
                    ctx.put(far[mine], source, signal)
                    if rounds % 4 == rank:
                        ctx.flush(rank, timeout=60)
                except peerway.StaleKey:  # it was told to end before this rank
                    over.set()
                except peerway.PeerLost:
                    del alive[rank]
                    print(json.dumps({"lost": rank}), flush=True)
            rounds += 1
            if rounds == ROUNDS:
                print(json.dumps("working"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
