"""One rank of a job that loses a rank. It works until the library reports an error, then prints the error.

    faults.py VICTIM PATH WORK

The victim's neighbours work with it: WORK is put, get, strided (towards the victim), wait (for a signal that
the victim notifies), served (the victim puts into them while they wait), flush, barrier or all_gather. The
victim does its part too, until it is killed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import peerway

SPAN = 8 << 20


class Worker:
    """This rank's memory, and its operations."""

    def __init__(self, ctx: peerway.Context, victim: int) -> None:
        self.ctx, self.victim = ctx, victim
        self.region = ctx.allocate("host", SPAN)
        self.arrived = ctx.signal(sender=victim)
        keys = ctx.team.all_gather(self.region.key(), timeout=30)
        signals = ctx.team.all_gather(self.arrived.key(), timeout=30)
        self.remotes = {rank: ctx.import_key(key) for rank, key in enumerate(keys)}
        self.notified = {rank: ctx.import_key(key) for rank, key in enumerate(signals) if ctx.rank == victim}
        self.seen = 0

    @property
    def partner(self) -> int:
        """The rank with which this rank moves data: the victim, or for the victim its right neighbour."""
        return self.victim if self.ctx.rank != self.victim else (self.victim + 1) % self.ctx.size

    def put(self) -> None:
        self.ctx.put(self.remotes[self.partner], self.region)

    def get(self) -> None:
        self.ctx.get(self.region, self.remotes[self.partner])

    def strided(self) -> None:
        far = self.remotes[self.partner].block((1000, 50), (8192, 128), 64, 32)
        near = self.region.block((1000, 50), (64, 64000), 64)
        self.ctx.put(far, near)

    def flush(self) -> None:
        self.ctx.put(self.remotes[self.partner][0:100_000], self.region[0:100_000])
        self.ctx.flush(timeout=60)

    def wait(self) -> None:
        if self.ctx.rank == self.victim:
            for signal in self.notified.values():
                self.ctx.notify(signal)
            time.sleep(0.001)
        else:
            self.seen += 1
            self.arrived.wait(self.seen, timeout=60)

    def served(self) -> None:
        if self.ctx.rank == self.victim:
            for rank, signal in self.notified.items():
                if rank != self.victim:
                    self.ctx.put(self.remotes[rank], self.region, signal)
        else:
            self.seen += 1
            self.arrived.wait(self.seen, timeout=60)

    def barrier(self) -> None:
        self.ctx.team.barrier(timeout=60)

    def all_gather(self) -> None:
        self.ctx.team.all_gather(bytes(1000), timeout=60)


def work_until_it_fails(work: Callable[[], None]) -> dict[str, object]:
    """Repeat the work until the library reports an error."""
    rounds = 0
    while True:
        try:
            work()
        except peerway.Error as error:
            return {
                "error": type(error).__name__,
                "message": str(error),
                "at": time.monotonic(),
                "rounds": rounds,
            }
        rounds += 1
        if rounds == 3:
            print(json.dumps("working"), flush=True)


def main() -> int:
    """Work, print how it ended, and close everything in order."""
    victim, path, work = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    with peerway.Context() as ctx:
        ctx.use(path)
        worker = Worker(ctx, victim)
        ctx.team.barrier(timeout=30)
        print(json.dumps(work_until_it_fails(getattr(worker, work))), flush=True)
        others = [rank for rank in range(ctx.size) if rank not in (victim, ctx.rank)]
        for rank in others:  # living ranks still exchange data
            ctx.put(worker.remotes[rank][0:64], worker.region[0:64])
            ctx.flush(rank, timeout=30)
        print(json.dumps("moved"), flush=True)
        sys.stdin.readline()  # until all ranks are done
    return 0


if __name__ == "__main__":
    sys.exit(main())
