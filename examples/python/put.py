"""Every rank puts a message into its right neighbour's memory and waits for the one from its left.

peerway run -n 2 -- python put.py
"""

from __future__ import annotations

import sys

import peerway


def main() -> int:
    """Exchange one message around the ring."""
    with peerway.Context() as ctx:
        right, remaining = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        region = ctx.allocate("host", 128)  # two halves: what I send, what I receive
        arrived = ctx.signal(sender=remaining)  # a counter that the left neighbour notifies

        target = ctx.import_key(ctx.team.all_gather(region.key(), timeout=10)[right])
        their_signal = ctx.import_key(ctx.team.all_gather(arrived.key(), timeout=10)[right])

        memory = region.array()  # a NumPy view, no copy
        memory[:64] = list(f"hello from rank {ctx.rank}".encode().ljust(64, b"\0"))
        ctx.put(target[64:128], region[0:64], notify=their_signal)
        arrived.wait(1, timeout=10)
        received = bytes(memory[64:]).rstrip(b"\0").decode()
        correct = received == f"hello from rank {remaining}"
        print(f'rank {ctx.rank} received "{received}"{"" if correct else ": that is wrong"}', flush=True)

        del memory
        ctx.flush(timeout=10)
        ctx.team.barrier(timeout=10)  # nobody frees what a neighbour still uses
    return 0 if correct else 1


if __name__ == "__main__":
    sys.exit(main())
