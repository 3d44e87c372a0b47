"""Rank 1 is killed while rank 0 puts into its GPU memory; rank 0 tells how that ended, as a line of JSON.

gpu_lost.py PATH
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

import peerway
from peerway import _core

SPAN = 64 << 20
WAIT = 60.0


def lost(body: Callable[[], None]) -> str:
    """The message of the loss with which `body` ends."""
    try:
        body()
    except peerway.PeerLost as error:
        return str(error)
    raise AssertionError("it ended well, although the other rank is dead")


def main(path: str) -> None:
    count = sum(name.startswith("cuda") for name, _ in _core.devices())
    with peerway.Context() as ctx:
        memory = ctx.allocate(f"cuda:{ctx.rank % count}", SPAN)
        arrived = ctx.signal(1 - ctx.rank)
        far = ctx.import_key(ctx.team.all_gather(memory.key(), WAIT)[1 - ctx.rank])
        notified = ctx.import_key(ctx.team.all_gather(arrived.key(), WAIT)[1 - ctx.rank])
        ctx.use(path)
        if ctx.rank == 1:
            arrived.wait(3, WAIT)
            os.kill(os.getpid(), signal.SIGKILL)  # the next puts are under way

        def put_for_ever() -> None:
            for _ in range(10**6):
                ctx.put(far, memory, notified)
                ctx.flush(1, WAIT)

        said = {"rank": ctx.rank, "put": lost(put_for_ever), "wait": lost(lambda: arrived.wait(1, WAIT))}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
