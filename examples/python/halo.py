"""Heat spreads over a ring of 16 x 16 cells, whose rows are distributed over all ranks. Each step refreshes
the halo, and meanwhile computes the cells that do not need it.

peerway run -n 2 -- python halo.py
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

import peerway

CELLS, STEPS = 16, 50


def spread(u: NDArray[np.float64], first: int, end: int) -> NDArray[np.float64]:
    """Rows `first` to `end` of the array one step later."""
    middle = u[first:end, 1:-1]
    around = u[first - 1 : end - 1, 1:-1] + u[first + 1 : end + 1, 1:-1]
    return middle + 0.1 * (around + u[first:end, :-2] + u[first:end, 2:] - 4 * middle)


def main() -> int:
    """Heat the cell in the middle and print how much of the heat this rank has at the end."""
    with peerway.Context() as ctx:
        mine = peerway.block_of(CELLS, ctx.size, ctx.rank)  # of many ranks the last have fewer rows, or none
        rows = len(mine)
        edges = sorted({1, rows}) if rows else []  # the rows that need the halo
        u = np.zeros((rows + 2, CELLS + 2))  # with one layer of shadow on all sides
        if CELLS // 2 in mine:
            u[CELLS // 2 - mine.start + 1, CELLS // 2 + 1] = 100

        halo = ctx.halo(u, grid=ctx.size, shadow=(1, 1), periodic=True)
        for _ in range(STEPS):
            halo.start()
            inner = spread(u, 2, rows)
            halo.finish(timeout=10)
            outer = [spread(u, row, row + 1) for row in edges]
            u[2:rows, 1:-1] = inner
            for row, later in zip(edges, outer, strict=True):
                u[row, 1:-1] = later

        print(f"rank {ctx.rank} has {u[1:-1, 1:-1].sum():.6f} of the heat", flush=True)
        ctx.team.barrier(timeout=10)  # nobody closes what a neighbour still uses
    return 0


if __name__ == "__main__":
    sys.exit(main())
