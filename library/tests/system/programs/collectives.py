"""Collectives of each kind, type and operation, compared bit by bit with what NumPy computes in the order of
the group. Tells which cases were wrong.

collectives.py MEMORY START [few]: of arrays in "numpy" memory, in "allocated" memory of the host, at "odd"
addresses, or on a device such as "cuda"; started from the "host", on a "stream", as one "run" there, or in a
"graph".
collectives.py lost START MEMORY: says "running" and, once a rank is gone, what it was told.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from other_device import Memory

import peerway

SECONDS = 600
EPOCHS = 3  # each slot is used, and the first one again
INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = ["f2", "f4", "f8"]
with contextlib.suppress(ImportError):  # it comes with JAX
    import ml_dtypes  # noqa: F401

    FLOATS += ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
OF_HOST = ("numpy", "allocated", "odd")
OPERATIONS = ["sum", "min", "max", "prod", "and", "or"]
Array = NDArray[Any]


def values(dtype: str, count: int, rank: int, epoch: int) -> Array:
    """Random elements; of integers, all bits."""
    random = np.random.default_rng([rank, epoch, count])
    if dtype in FLOATS:
        return random.normal(size=count).astype(dtype)
    return np.frombuffer(random.bytes(count * np.dtype(dtype).itemsize), dtype).copy()


def whole_numbers(dtype: str, count: int, rank: int, epoch: int) -> Array:
    """Random elements whose sums have the same bits in any order."""
    return np.random.default_rng([rank, epoch, count]).integers(-99, 99, count).astype(dtype)


def combined(op: str, operands: list[Array]) -> Array:
    """The operands combined one after the other; numbers of 8 and 16 bits as 32-bit numbers, rounded once."""
    function: Any = {
        "sum": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "prod": np.multiply,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
    }[op]
    dtype = operands[0].dtype
    wide = np.dtype("f4") if dtype.kind not in "iu" and dtype.itemsize < 4 else dtype
    result = operands[0].astype(wide)
    with np.errstate(over="ignore"):
        for operand in operands[1:]:
            result = function(result, operand.astype(wide))
        return result.astype(dtype)


class Empty:
    """An array of a GPU without elements, as libraries give it."""

    def __init__(self, typestr: str) -> None:
        self.__cuda_array_interface__ = {"data": (0, False), "typestr": typestr, "shape": (0,), "version": 3}


class Buffer:
    """An array of a case, written and read from the host."""

    def __init__(self, ctx: peerway.Context, memory: str, dtype: str, count: int) -> None:
        bytes_ = count * np.dtype(dtype).itemsize
        self.dtype, self._there = np.dtype(dtype), None
        self.array: Any
        on_device = memory not in OF_HOST
        if on_device and bytes_ > 0:
            self._there = Memory(ctx, memory, bytes_)
            self.array = self._there.region.array(dtype, (count,))
        elif on_device:
            self.array = Empty(self.dtype.str)
        elif memory == "allocated" and bytes_ > 0:
            self.array = ctx.allocate("host", bytes_).array(dtype, (count,))
        elif memory == "odd":
            self.array = np.frombuffer(bytearray(bytes_ + 1), np.uint8)[1:].view(dtype)
        else:
            self.array = np.empty(count, dtype)

    def write(self, elements: Array) -> None:
        if self._there is not None:
            self._there.write(elements)
        elif elements.size > 0:
            self.array[:] = elements

    def read(self) -> Array:
        if self._there is not None:
            return self._there.read(self._there.region.bytes).view(self.dtype)
        return np.empty(0, self.dtype) if isinstance(self.array, Empty) else np.array(self.array)


@dataclass
class Case:
    """One collective: how to make it, what this rank's arrays hold before a start, and after its finish."""

    name: str
    make: Callable[[], peerway.Collective]
    before: list[tuple[Buffer, Callable[[int], Array]]] = field(default_factory=list)
    after: list[tuple[Buffer, Callable[[int], Array]]] = field(default_factory=list)
    ranks: list[int] | None = None


class Job:
    """This rank and its cases."""

    def __init__(self, ctx: peerway.Context, memory: str) -> None:
        self.ctx, self.memory = ctx, memory
        self.device = "host" if memory in OF_HOST else memory

    def buffer(self, dtype: str, count: int) -> Buffer:
        return Buffer(self.ctx, self.memory, dtype, count)

    def all_reduce(
        self, dtype: str, op: str, count: int, in_place: bool = False, ranks: list[int] | None = None
    ) -> Case:
        group = ranks or list(range(self.ctx.size))
        to = self.buffer(dtype, count)
        source = to if in_place else self.buffer(dtype, count)
        return Case(
            f"all_reduce {dtype} {op} {count} {in_place} {ranks}",
            lambda: self.ctx.all_reduce(to.array, None if in_place else source.array, op, ranks),
            [(source, lambda epoch: values(dtype, count, self.ctx.rank, epoch))],
            [(to, lambda epoch: combined(op, [values(dtype, count, rank, epoch) for rank in group]))],
            ranks,
        )

    def all_reduce_in_any_order(self, dtype: str, count: int, in_place: bool = False) -> Case:
        to = self.buffer(dtype, count)
        source = to if in_place else self.buffer(dtype, count)

        def total(epoch: int) -> Array:
            return combined("sum", [whole_numbers(dtype, count, r, epoch) for r in range(self.ctx.size)])

        return Case(
            f"all_reduce in any order {dtype} {count} {in_place}",
            lambda: self.ctx.all_reduce(to.array, None if in_place else source.array, order="any"),
            [(source, lambda epoch: whole_numbers(dtype, count, self.ctx.rank, epoch))],
            [(to, total)],
        )

    def reduce_scatter(self, counts: list[int], op: str = "sum", dtype: str = "f8") -> Case:
        me, total, equal = self.ctx.rank, sum(counts), len(set(counts)) == 1
        first = sum(counts[:me])
        source, to = self.buffer(dtype, total), self.buffer(dtype, counts[me])

        def wanted(epoch: int) -> Array:
            operands = [values(dtype, total, rank, epoch) for rank in range(self.ctx.size)]
            return combined(op, operands)[first : first + counts[me]]

        return Case(
            f"reduce_scatter {counts} {op} {dtype}",
            lambda: self.ctx.reduce_scatter(to.array, source.array, op, None if equal else counts),
            [(source, lambda epoch: values(dtype, total, me, epoch))],
            [(to, wanted)],
        )

    def all_gather(self, counts: list[int], in_place: bool = False, dtype: str = "i4") -> Case:
        me, equal = self.ctx.rank, len(set(counts)) == 1
        to, source = self.buffer(dtype, sum(counts)), self.buffer(dtype, counts[me])
        first = sum(counts[:me])

        def part(epoch: int, rank: int = me) -> Array:
            return values(dtype, counts[rank], rank, epoch)

        def own_part_only(epoch: int) -> Array:
            held = np.zeros(sum(counts), dtype)
            held[first : first + counts[me]] = part(epoch)
            return held

        return Case(
            f"all_gather {counts} {in_place}",
            lambda: self.ctx.all_gather(
                to.array, None if in_place else source.array, None if equal else counts
            ),
            [(to, own_part_only) if in_place else (source, part)],
            [(to, lambda epoch: np.concatenate([part(epoch, rank) for rank in range(self.ctx.size)]))],
        )

    def broadcast(self, count: int, root: int, dtype: str = "u2") -> Case:
        shared = self.buffer(dtype, count)
        return Case(
            f"broadcast {count} from {root}",
            lambda: self.ctx.broadcast(shared.array, root),
            [(shared, lambda epoch: values(dtype, count, self.ctx.rank, epoch))],
            [(shared, lambda epoch: values(dtype, count, root, epoch))],
        )

    def all_to_all(self, count_of: Callable[[int, int], int], dtype: str = "i8") -> Case:
        """`count_of(sender, receiver)`"""
        me, everybody = self.ctx.rank, range(self.ctx.size)
        sent = [count_of(me, rank) for rank in everybody]
        received = [count_of(rank, me) for rank in everybody]
        to, source = self.buffer(dtype, sum(received)), self.buffer(dtype, sum(sent))

        def parts(epoch: int) -> Array:
            pieces = []
            for rank in everybody:
                counts = [count_of(rank, receiver) for receiver in everybody]
                first = sum(counts[:me])
                pieces.append(values(dtype, sum(counts), rank, epoch)[first : first + counts[me]])
            return np.concatenate(pieces)

        equal = len({*sent, *received}) == 1
        given = [] if equal else [sent, received]
        return Case(
            f"all_to_all {sent} {received}",
            lambda: self.ctx.all_to_all(to.array, source.array, *given),
            [(source, lambda epoch: values(dtype, sum(sent), me, epoch))],
            [(to, parts)],
        )

    def barrier(self) -> Case:
        return Case("barrier", lambda: self.ctx.barrier(self.device))

    def cases(self, few: bool) -> Iterator[Case]:
        size = self.ctx.size
        yield self.all_reduce("f8", "sum", 1000)
        yield self.all_reduce("f4", "sum", 20_000, in_place=True)
        yield self.all_reduce_in_any_order("f4", 20_000, in_place=True)
        yield self.all_reduce_in_any_order("f8", 3)
        yield self.all_reduce("i4", "sum", 5000)
        yield self.reduce_scatter([100] * size)
        yield self.reduce_scatter([300] * size, dtype="i8")
        yield self.all_gather([50] * size)
        yield self.broadcast(5000, size - 1)
        yield self.all_to_all(lambda _, receiver: 20)
        yield self.barrier()
        if few:
            return
        for dtype in [*INTEGERS, *FLOATS]:
            for op in OPERATIONS:
                if dtype in INTEGERS or op not in ("and", "or"):
                    yield self.all_reduce(dtype, op, 300)
        for count in (0, 1, 7, 70_001, 300_000):
            yield self.all_reduce("f8", "sum", count)
            yield self.all_reduce("f2", "sum", count, in_place=True)
            yield self.broadcast(count, 0)
        if size > 2:
            for count in (3, 9000):
                yield self.all_reduce("f4", "sum", count, ranks=[size - 1, 0])
        yield self.reduce_scatter([7 * rank for rank in range(size)], "max", "i2")
        yield self.all_gather([30 * rank for rank in range(size)])
        yield self.all_gather([9] * size, in_place=True)
        yield self.all_gather([400 * rank + 1 for rank in range(size)], in_place=True)
        yield self.all_to_all(lambda sender, receiver: 10 * sender + 3 * receiver)

    def is_right(self, case: Case, begin: str) -> bool:
        """Whether the arrays hold the right elements after each of several starts."""
        with contextlib.ExitStack() as closing:
            plan = closing.enter_context(contextlib.closing(case.make()))
            stream = closing.enter_context(contextlib.closing(self.ctx.stream(self.device)))
            run = runner(plan, stream, begin, closing)
            for epoch in range(EPOCHS):
                for buffer, _ in case.after:
                    buffer.write(np.full(buffer.read().size, 77).astype(buffer.dtype))
                for buffer, held in case.before:
                    buffer.write(held(epoch))
                run()
                stream.wait(timeout=SECONDS)
                plan.check()
                if any(buffer.read().tobytes() != wanted(epoch).tobytes() for buffer, wanted in case.after):
                    return False
        return True


def runner(
    plan: peerway.Plan, stream: peerway.Stream, begin: str, closing: contextlib.ExitStack
) -> Callable[[], None]:
    """What starts and finishes the plan once."""

    def on_host() -> None:
        plan.start()
        plan.finish(timeout=SECONDS)

    def on_stream() -> None:
        plan.start(stream)
        plan.finish(stream)

    if begin == "graph":
        from graphs import Graph

        return closing.enter_context(contextlib.closing(Graph(stream, on_stream))).launch
    return {"host": on_host, "stream": on_stream, "run": lambda: plan.run(stream)}[begin]


def until_lost(ctx: peerway.Context, begin: str, memory: str) -> list[str]:
    """All-reduces until a rank is gone; what this rank was told. On "cuda" rank 1 ends itself."""
    device = "cuda" if memory == "cuda" else "host"
    total = ctx.all_reduce(Buffer(ctx, memory, "f8", 1000).array)
    stream = ctx.stream(device) if begin == "stream" else None
    try:
        for turn in range(sys.maxsize):
            total.run(stream)
            if stream is not None and turn % 50 == 0:
                stream.wait(timeout=SECONDS)
                total.check()
            if turn == 100 and memory == "numpy":
                print(json.dumps("running"), flush=True)
            if turn == 100 and memory == "cuda" and ctx.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
    except peerway.Error as error:
        return [type(error).__name__, str(error), total.status]
    return []


def main() -> int:
    """Print the wrong cases and the number of right ones."""
    memory, begin, *further = sys.argv[1:]
    with peerway.Context() as ctx:
        if memory == "lost":
            print(json.dumps(until_lost(ctx, begin, *further)), flush=True)
            if further == ["numpy"]:
                sys.stdin.readline()  # until the other survivors have the error, too
            return 0
        job = Job(ctx, memory)
        right, wrong = 0, []
        for case in job.cases(bool(further)):
            if case.ranks is None or ctx.rank in case.ranks:
                if job.is_right(case, begin):
                    right += 1
                else:
                    wrong.append(case.name)
            ctx.team.barrier(SECONDS)
        print(json.dumps([wrong, right]), flush=True)
        ctx.team.barrier(SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
