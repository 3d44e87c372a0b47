"""Tries everything of which no halo can be made, and prints each exception with its message.

After all errors the same context still refreshes a halo.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from halo import OnlyDlpack

import peerway


def arrays(ctx: peerway.Context) -> dict[str, Callable[[], object]]:
    """Errors of arrays and their layouts, on three ranks."""
    rank = ctx.rank
    good = np.zeros((4, 5))
    frozen = np.zeros((4, 5))
    frozen.flags.writeable = False
    heights = [4, 6, 4]

    def halo(u: object, grid: object = (3,), **options: Any) -> object:
        return ctx.halo(u, grid=grid, **options)  # type: ignore[arg-type]

    return {
        "shadow wider than the neighbour's block": lambda: halo(np.zeros((8, 5)), shadow=3),
        "shadow wider than the last block": lambda: halo(np.zeros(([7, 7, 5][rank], 5)), shadow=2),
        "width over the shadow": lambda: halo(good, width=2),
        "more processes than elements": lambda: halo(np.zeros(([3, 3, 2][rank], 5))),
        "two dimensions of the grid over one": lambda: halo(good, grid=(3, 1), dims=(0, 0)),
        "a grid that is not the team": lambda: halo(good, grid=(2, 2)),
        "no grid": lambda: halo(good, grid=()),
        "mismatched dtype": lambda: halo(np.zeros((4, 5), "f8" if rank != 1 else "f4")),
        "mismatched shadow": lambda: halo(np.zeros((4 if rank != 1 else 6, 5)), shadow=2 if rank == 1 else 1),
        "mismatched width": lambda: halo(good, width=0 if rank == 2 else 1),
        "mismatched corners": lambda: halo(good, corners=rank == 1),
        "mismatched numbers of arrays": lambda: halo([good, np.zeros((4, 5))] if rank == 1 else good),
        "mismatched grids": lambda: halo(good, grid=(1, 3) if rank == 1 else (3, 1)),
        "parts of no block distribution": lambda: halo(np.zeros((heights[rank], 5))),
        "rows of different lengths": lambda: halo(np.zeros((4, 6 if rank == 2 else 5))),
        "negative strides": lambda: halo(good[::-1]),
        "strides in no order": lambda: halo(np.zeros((4, 3, 2)).transpose(0, 2, 1).transpose(1, 0, 2)),
        "negative strides by DLPack": lambda: halo(OnlyDlpack(good[::-1])),
        "a read-only array": lambda: halo(frozen),
        "one rank's read-only array": lambda: halo(frozen if rank == 1 else good),
        "no array": lambda: halo(object()),
        "no dimensions": lambda: halo(np.zeros(()), grid=(3,)),
        "eight dimensions": lambda: halo(np.zeros((3,) + (1,) * 7)),
        "an empty list": lambda: halo([]),
        "fewer elements than the shadow": lambda: halo(np.zeros((1, 5))),
        "shadow for another number of dimensions": lambda: halo(good, shadow=(1, 1, 1)),
        "negative shadow": lambda: halo(good, shadow=-1),
        "periodic for another number of dimensions": lambda: halo(good, periodic=(True,) * 3),
    }


def starts(ctx: peerway.Context) -> dict[str, Callable[[], object]]:
    """Errors of starting and finishing."""
    halo = ctx.halo(np.zeros((4, 5)), grid=(3,), periodic=True)
    closed = ctx.halo(np.zeros((4, 5)), grid=(3,))
    ctx.team.barrier(60)
    closed.close()

    def start_twice() -> None:
        halo.start()
        try:
            halo.start()
        finally:
            halo.finish(timeout=60)

    return {
        "a stream that is none": lambda: halo.start("stream"),
        "a stream of another device": lambda: halo.start(4711),
        "a timeout in a stream": lambda: halo.finish(ctx.stream(), timeout=2),
        "a finish of what was not started": lambda: halo.finish(timeout=60),
        "a second start": start_twice,
        "a closed halo": closed.start,
    }


def main() -> int:
    """Try all errors, and then a correct halo."""
    with peerway.Context() as ctx:
        told: dict[str, list[str]] = {}
        for tries in (arrays, starts):
            for name, body in tries(ctx).items():
                try:
                    body()
                except Exception as error:
                    told[name] = [type(error).__name__, str(error)]
                else:
                    told[name] = ["nothing", ""]
        u = np.full((4, 5), float(ctx.rank))
        halo = ctx.halo(u, grid=(3,), periodic=True)
        halo.start()
        halo.finish(timeout=60)
        assert (u[0] == (ctx.rank - 1) % 3).all(), u
        assert (u[-1] == (ctx.rank + 1) % 3).all(), u
        print(json.dumps(told), flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
