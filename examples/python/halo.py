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
        if CELLS % ctx.size != 0:
            sys.exit(f"{CELLS} rows cannot be divided evenly among {ctx.size} ranks; start 1, 2, 4, 8 or 16")
        rows = CELLS // ctx.size
        first = ctx.rank * rows
        u = np.zeros((rows + 2, CELLS + 2))  # with one layer of shadow on all sides
        if first <= CELLS // 2 < first + rows:
            u[CELLS // 2 - first + 1, CELLS // 2 + 1] = 100

        halo = ctx.halo(u, grid=ctx.size, shadow=(1, 1), periodic=True)
        for _ in range(STEPS):
            halo.start()
            inner = spread(u, 2, rows)  # needs no halo
            halo.finish(timeout=10)
            outer = spread(u, 1, 2), spread(u, rows, rows + 1)
            u[2:rows, 1:-1] = inner
            u[1, 1:-1], u[rows, 1:-1] = outer[0][0], outer[1][0]

        print(f"rank {ctx.rank} has {u[1:-1, 1:-1].sum():.6f} of the heat", flush=True)
        ctx.team.barrier(timeout=10)  # nobody closes what a neighbour still uses
    return 0


if __name__ == "__main__":
    sys.exit(main())
