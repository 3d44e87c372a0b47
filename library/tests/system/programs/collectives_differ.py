"""Ranks that make different collectives, or of which one refuses its arguments. Each rank prints, for each
case, how its call ended and, at the end, whether the ranks are in step."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable

import numpy as np
from outcomes import outcome

import peerway


def calls(ctx: peerway.Context) -> dict[str, Callable[[], object]]:
    """One call of each name, in which rank 1 does something else than rank 0."""
    other = ctx.rank == 1
    array, size = np.zeros(12), ctx.size

    def closed(make: Callable[[], peerway.Collective]) -> Callable[[], object]:
        return lambda: make().close()

    def counts() -> list[int]:
        return [12 // size + (1 if other else 0), *[12 // size] * (size - 1)]

    return {
        "kind": closed(lambda: ctx.broadcast(array) if other else ctx.all_reduce(array)),
        "operation": closed(lambda: ctx.all_reduce(array, op="max" if other else "sum")),
        "size": closed(lambda: ctx.all_reduce(array[: 9 if other else 12])),
        "type": closed(lambda: ctx.all_reduce(array.astype("i8") if other else array)),
        "root": closed(lambda: ctx.broadcast(array, int(other))),
        "group": closed(lambda: ctx.all_reduce(array, ranks=[1, 0, 2] if other else [0, 1, 2])),
        "counts": closed(lambda: ctx.all_gather(np.zeros(sum(counts())), None, counts())),
        "receive counts": closed(
            lambda: ctx.all_to_all(np.zeros(6), np.zeros(6), [2, 2, 2], [1, 3, 2] if other else [2, 2, 2])
        ),
        "an array with gaps": closed(lambda: ctx.all_reduce(np.zeros(24)[::2] if other else array)),
        "complex numbers": closed(lambda: ctx.all_reduce(np.zeros(12, "c16") if other else array)),
        "read-only": closed(lambda: ctx.all_reduce(np.frombuffer(bytes(96)) if other else array)),
        "overlap": closed(
            lambda: (
                ctx.all_reduce(array[:6], array[3:9]) if other else ctx.all_reduce(np.zeros(6), np.zeros(6))
            )
        ),
        "bits of floats": closed(lambda: ctx.all_reduce(array, op="and")),
        "no member": closed(
            lambda: ctx.all_reduce(array, ranks=[rank for rank in range(size) if rank != ctx.rank])
        ),
    }


def in_step(ctx: peerway.Context) -> bool:
    """Whether the ranks can make a collective that works."""
    array = np.full(3, float(ctx.rank))
    with contextlib.closing(ctx.all_reduce(array)) as total:
        total.run()
    return bool((array == sum(range(ctx.size))).all())


def main() -> int:
    """Print how each call ended."""
    with peerway.Context() as ctx:
        ends = {name: outcome(call) for name, call in calls(ctx).items()}
        print(json.dumps([ends, in_step(ctx)]), flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
