"""Two ranks whose plans run from the host, and on a stream: traced_plans.py DEVICE TURNS. Each plan sends
65,536 bytes to the other rank and receives as many, and raises a signal that the other rank waits for.
"""

from __future__ import annotations

import sys

import peerway

WAIT = 60.0
BYTES = 65536


def main(device: str, turns: int) -> None:
    """Half of the turns from the host, half on a stream, the last of them in one launch each."""
    with peerway.Context() as ctx:
        other = 1 - ctx.rank
        region = ctx.allocate(device, 2 * BYTES)
        arrived = ctx.signal(other, device)
        theirs = ctx.import_key(ctx.team.all_gather(arrived.key(), WAIT)[other])
        plan = ctx.plan(device).send(other, 0, region[0:BYTES]).receive(other, 0, region[BYTES : 2 * BYTES])
        plan = plan.raise_signal(theirs).wait(arrived).prepare()
        stream = ctx.stream(device)
        for turn in range(turns):
            if turn % 2 == 0:
                plan.start()
                plan.finish(timeout=WAIT)
            else:
                plan.start(stream)
                plan.finish(stream)
                stream.wait(WAIT)
        ctx.team.barrier(WAIT)
        plan.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
