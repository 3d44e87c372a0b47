"""Moves a few bytes within regions of more than 4 GiB, so that an offset or stride cut to 32 bits shows. The
memory is sparse: only the pages that are touched are there.

    large.py PATH

Each rank puts from its own region into its right neighbour's and gets back from it, with offsets and strides
of many GiB, and tells which of its blocks did not arrive.
"""

from __future__ import annotations

import json
import mmap
import os
import sys

import numpy as np
from layouts import Bytes, Side, noise

import peerway

GIB = 1 << 30
SPAN = 13 * GIB
SIDES = {
    "one run": Side((), (), 70_001, 4 * GIB + 3),
    "over the border": Side((), (), 70_001, 4 * GIB - 35_000),
    "far strides": Side((2, 3), (5 * GIB + 11, 2 * GIB + 5), 4097, GIB + 1),
    "far and near strides": Side((3, 2, 2, 2), (4 * GIB + 7, 9000, 300, 100), 64, 5),
}


def sparse(ctx: peerway.Context, mapped: bool) -> tuple[peerway.Region, Bytes]:
    """A region of SPAN bytes that uses no memory until it is written."""
    if mapped:
        region = ctx.allocate("host", SPAN)
        return region, region.array()
    file = os.memfd_create("sparse")
    os.truncate(file, SPAN)
    bytes_ = np.frombuffer(mmap.mmap(file, SPAN), np.uint8)
    os.close(file)
    return ctx.register(bytes_), bytes_


def starts(side: Side) -> list[int]:
    """The offsets of the blocks."""
    return [int(start) for start in Side(side.counts, side.strides, 1, side.offset).indices()]


def write(memory: Bytes, side: Side, data: Bytes) -> None:
    """Fill the blocks in order."""
    for i, start in enumerate(starts(side)):
        memory[start : start + side.block_bytes] = data[i * side.block_bytes : (i + 1) * side.block_bytes]


def same(memory: Bytes, side: Side, data: Bytes) -> bool:
    """Whether the blocks contain the data, and the bytes beside them are still zero."""
    size = side.block_bytes
    return all(
        np.array_equal(memory[start : start + size], data[i * size : (i + 1) * size])
        and not memory[max(0, start - 5) : start].any()
        and not memory[start + size : start + size + 5].any()
        for i, start in enumerate(starts(side))
    )


def span(of: peerway.Region | peerway.Remote, side: Side):  # type: ignore[no-untyped-def]
    """A side in the form of the library's interface."""
    return of.block(side.counts, side.strides, side.block_bytes, side.offset)


def main() -> int:
    """Put to the right, check, get it back, check."""
    path = sys.argv[1]
    with peerway.Context() as ctx:
        ctx.use(path)
        left, right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
        target, target_bytes = sparse(ctx, path.startswith("peer/shm"))
        source, source_bytes = sparse(ctx, False)
        far = ctx.import_key(ctx.team.all_gather(target.key(), timeout=30)[right])
        wrong = []
        for number, (label, side) in enumerate(SIDES.items()):
            size = side.block_bytes * len(starts(side))
            mine, theirs = noise(10 * number + ctx.rank, size), noise(10 * number + left, size)
            write(source_bytes, side, mine)
            ctx.put(span(far, side), span(source, side))
            ctx.flush(timeout=30)
            ctx.team.barrier(timeout=30)
            wrong += [] if same(target_bytes, side, theirs) else [f"put, {label}"]
            write(source_bytes, side, np.zeros(size, np.uint8))
            ctx.get(span(source, side), span(far, side))
            ctx.flush(timeout=30)
            wrong += [] if same(source_bytes, side, mine) else [f"get, {label}"]
            ctx.team.barrier(timeout=30)
            for memory in (source_bytes, target_bytes):
                write(memory, side, np.zeros(size, np.uint8))
            ctx.team.barrier(timeout=30)
        print(json.dumps({"wrong": wrong, "tried": len(SIDES)}), flush=True)
        ctx.team.barrier(timeout=30)
        del target_bytes
    return 0


if __name__ == "__main__":
    sys.exit(main())
