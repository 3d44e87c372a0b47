"""Refreshes a halo again and again, from the host or on a stream, until a neighbour is gone; then says what
it was told."""

from __future__ import annotations

import json
import sys

import numpy as np

import peerway


def main() -> int:
    """Print when it runs, and then how it ended."""
    with peerway.Context() as ctx:
        halo = ctx.halo(np.zeros((4, 5)), grid=(ctx.size,), periodic=True)
        stream = ctx.stream("host") if sys.argv[1] == "stream" else None
        turn = 0
        try:
            while True:
                halo.start(stream)
                halo.finish(stream, timeout=None if stream is not None else 60)
                turn += 1
                if stream is not None and turn % 50 == 0:
                    stream.wait(timeout=60)
                    halo.check()
                if turn == 100:
                    print(json.dumps("running"), flush=True)
        except peerway.Error as error:
            told = [type(error).__name__, str(error)]
        print(json.dumps([*told, halo.status]), flush=True)
        sys.stdin.readline()  # until the other survivor has the error too, and not because this rank left
    return 0


if __name__ == "__main__":
    sys.exit(main())
