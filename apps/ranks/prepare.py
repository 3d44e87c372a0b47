"""How long a rank of two takes to allocate memory and to prepare plans, one after another:

peerway run -n 2 -- python apps/ranks/prepare.py [cuda]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

import peerway

TIMES = 6
BYTES = 8


def main() -> int:
    """Print a JSON line for each operation: milliseconds of the first time, and of all later ones."""
    device = sys.argv[1] if len(sys.argv) > 1 else "host"
    with peerway.Context() as ctx:
        if ctx.size != 2:
            sys.exit(f"prepare.py runs on 2 ranks; this job has {ctx.size}")
        other = 1 - ctx.rank
        memory = ctx.allocate(device, 4096)
        kept: list[object] = []

        def plan(tag: int) -> object:
            messages = ctx.plan(device).send(other, tag, memory[:BYTES])
            return messages.receive(other, tag, memory[BYTES : 2 * BYTES]).prepare()

        def measure(name: str, make: Callable[[int], object]) -> None:
            took = []
            for turn in range(TIMES):
                began = time.perf_counter()
                kept.append(make(turn))
                took.append(round((time.perf_counter() - began) * 1e3, 3))
            if ctx.rank == 0:
                print(json.dumps({"test": name, "device": device, "first_ms": took[0], "later_ms": took[1:]}))

        measure("prepare a send and a receive", plan)
        measure("allocate 4 KiB", lambda _: ctx.allocate(device, 4096))
    return 0


if __name__ == "__main__":
    sys.exit(main())
