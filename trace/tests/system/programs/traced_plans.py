"""Two ranks whose plans run from the host, on a stream and in kernels.

    python traced_plans.py DEVICE TURNS [LIBRARY]

Each plan sends 65,536 bytes to the other rank and receives as many, and notifies a signal that the other rank
waits for. The library is that of in_kernel.cpp.
"""

from __future__ import annotations

import ctypes
import sys

import peerway

WAIT = 600.0
BYTES = 65536


def main(device: str, turns: int, kernel: str | None = None) -> None:
    """Run the turns in each of the three starts, one after another."""
    starts = ["host", "stream"]
    if kernel is not None:
        starts.append("kernel")
        run = ctypes.CDLL(kernel).run
    with peerway.Context() as ctx:
        other = 1 - ctx.rank
        region = ctx.allocate(device, 2 * BYTES)
        arrived = ctx.signal(other, device)
        theirs = ctx.import_key(ctx.team.all_gather(arrived.key(), WAIT)[other])
        plan = ctx.plan(device).send(other, 0, region[0:BYTES]).receive(other, 0, region[BYTES : 2 * BYTES])
        plan = plan.notify(theirs).wait(arrived).prepare()
        stream = ctx.stream(device)
        for turn in range(turns):
            start = starts[turn % len(starts)]
            if start == "host":
                plan.start()
                plan.finish(timeout=WAIT)
            elif start == "stream":
                plan.start(stream)
                plan.finish(stream)
                stream.wait(WAIT)
            else:
                assert run(plan.handle()) == 0
        ctx.team.barrier(WAIT)
        plan.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
