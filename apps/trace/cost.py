"""What a put of 8 B by a rank to itself costs in Python: prints nanoseconds.

The median of ROUNDS blocks of 200; trace_cost.py runs it with and without a trace.

    python apps/trace/cost.py ROUNDS
"""

from __future__ import annotations

import sys
from statistics import median
from time import perf_counter_ns

import peerway

BLOCK = 200


def main() -> None:
    """Measure and print."""
    rounds = int(sys.argv[1])
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 4096)
        remote = ctx.import_key(region.key())
        to, source = remote[0:8], region[2048:2056]
        times = []
        for _ in range(rounds + rounds // 10):
            began = perf_counter_ns()
            for _ in range(BLOCK):
                ctx.put(to, source)
            times.append((perf_counter_ns() - began) / BLOCK)
    print(f"{median(times[rounds // 10 :]):.3f}")


if __name__ == "__main__":
    main()
