"""Moves random data between neighbours of a ring by one path and tells what did not arrive as it was sent.

    transfers.py PATH OP,TARGET-MEMORY,SOURCE-MEMORY,GROUP...

Every rank puts into (gets from) its right neighbour, and tells a line for each thing that it is asked for.
Both sides make the same data from the same seeds, so that each checks its own memory, all of it, with no help
of the path that is tested.
"""

from __future__ import annotations

import functools
import json
import mmap
import sys
import tempfile

import numpy as np
from layouts import Bytes, Case, Side, contiguous_cases, moved, noise, run, strided_cases

import peerway

SPAN = 5 << 20
PATIENCE = 300.0  # s: a NIC with one small operation at a time is slow on a busy machine, and not hanging
known_noise = functools.cache(noise)


def memory(ctx: peerway.Context, kind: str, size: int) -> tuple[peerway.Region, Bytes]:
    """A region of `size` bytes in memory of this kind, and its bytes."""
    if kind == "allocated":
        region = ctx.allocate("host", size)
        return region, region.array()
    if kind == "part":  # of a larger allocation, at an odd address
        whole = ctx.allocate("host", size + 12345)
        bytes_ = whole.array()[4099 : 4099 + size]
    elif kind == "malloc":
        bytes_ = np.empty(size, np.uint8)
    elif kind == "odd":
        bytes_ = np.empty(size + 64, np.uint8)[13 : 13 + size]
    elif kind == "file":
        with tempfile.TemporaryFile() as file:
            file.truncate(size)
            bytes_ = np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)
    else:
        raise ValueError(kind)
    return ctx.register(bytes_), bytes_


def cases_of(group: str) -> list[Case]:
    """The cases of a group."""
    if group == "contiguous":
        return contiguous_cases()
    if group == "strided":
        return strided_cases(1, 150, 40_000) + strided_cases(2, 25, SPAN)
    if group == "kinds":
        return [
            run("a page and a bit", 4097, 5, 9),
            run("1 MiB + 3", (1 << 20) + 3),
            *strided_cases(3, 6, 200_000),
        ]
    if group == "signal":
        return [*contiguous_cases()[::3], *strided_cases(4, 20, 500_000)]
    if group == "few":  # a NIC at its limits is slow
        return [run("two pages and a bit", 8195, 5, 9), *strided_cases(5, 6, 20_000)]
    raise ValueError(group)


def blocks(whole: peerway.Region | peerway.Remote, side: Side):  # type: ignore[no-untyped-def]
    """A side in the form of the library's interface."""
    if side.counts:
        return whole.block(side.counts, side.strides, side.block_bytes, side.offset)
    return whole[side.offset : side.offset + side.block_bytes]


class Tester:
    """This rank's memory and its right neighbour's."""

    def __init__(self, ctx: peerway.Context, op: str, target: str, source: str) -> None:
        self.ctx, self.op = ctx, op
        self.previous, self.right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
        self.target, self.target_bytes = memory(ctx, target, SPAN)
        self.source, self.source_bytes = memory(ctx, source, SPAN)
        self.far = self.import_right(self.target if op == "put" else self.source)
        self.arrived = ctx.signal(sender=self.previous)
        self.far_arrived = self.import_right(self.arrived)
        self.notified = 0
        self.noise_of = {rank: known_noise(rank, SPAN) for rank in {ctx.rank, self.previous, self.right}}
        self.poison = known_noise(-1 % 1000, SPAN)
        self.target_bytes[:] = self.poison
        self.expected = self.poison.copy()  # expected content of the whole target

    def import_right(self, mine: peerway.Region | peerway.Signal) -> peerway.Remote:
        return self.ctx.import_key(self.ctx.team.all_gather(mine.key(), timeout=PATIENCE)[self.right])

    def source_of(self, number: int, rank: int, window: int) -> Bytes:
        """The bytes that a rank sends in a case, different in each case."""
        return self.noise_of[rank][:window] ^ np.uint8(37 * number % 251)

    def try_case(self, number: int, case: Case, with_signal: bool) -> bool:
        """Whether the case moved what it should, and nothing else near it."""
        ctx = self.ctx
        window = min(SPAN, max(case.to.end, case.source.end) + 8192)
        poison = self.poison[:window] ^ np.uint8(number % 251)
        self.target_bytes[:window] = poison
        self.source_bytes[:window] = self.source_of(number, ctx.rank, window)
        ctx.team.barrier(timeout=PATIENCE)
        if self.op == "get":
            ctx.get(blocks(self.target, case.to), blocks(self.far, case.source))
            ctx.flush(self.right, timeout=PATIENCE)
        elif with_signal:
            self.notified += number + 1
            ctx.put(blocks(self.far, case.to), blocks(self.source, case.source), self.far_arrived, number + 1)
            self.arrived.wait(self.notified, timeout=PATIENCE)
            assert self.arrived.value == self.notified
        else:
            ctx.put(blocks(self.far, case.to), blocks(self.source, case.source))
            ctx.flush(self.right, timeout=PATIENCE)
            ctx.team.barrier(timeout=PATIENCE)
        giver = self.previous if self.op == "put" else self.right
        expected = moved(case, poison, self.source_of(number, giver, window))
        right = np.array_equal(self.target_bytes[:window], expected)
        self.expected[:window] = expected
        ctx.flush(timeout=PATIENCE)
        ctx.team.barrier(timeout=PATIENCE)
        return right

    def try_all(self, cases: list[Case], with_signal: bool) -> list[str]:
        """The wrong cases, and bytes far from all cases that were changed."""
        wrong = [case.label for n, case in enumerate(cases) if not self.try_case(n, case, with_signal)]
        if not wrong and not np.array_equal(self.target_bytes, self.expected):
            wrong.append("bytes far from every case")
        return wrong


def found_over(ctx: peerway.Context, path: str, op: str, target: str, source: str, group: str) -> object:
    """The number of the group's cases and the labels of the wrong ones, or why the path supports none."""
    tester = Tester(ctx, op, target, source)
    near = tester.source if op == "put" else tester.target
    answer = {info.name: info for info in ctx.paths(tester.far, near, op)}[path]
    found: dict[str, object] = {"available": answer.available, "why": answer.why_not}
    if answer.available:
        cases = cases_of(group)
        found |= {"cases": len(cases), "wrong": tester.try_all(cases, group in ("signal", "few"))}
    ctx.team.barrier(timeout=PATIENCE)
    return found


def main() -> int:
    """Run everything that was requested, in one context."""
    path, *asked = sys.argv[1:]
    with peerway.Context() as ctx:
        ctx.use(path)
        for words in asked:
            print(json.dumps(found_over(ctx, path, *words.split(","))), flush=True)
        ctx.team.barrier(timeout=PATIENCE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
