"""Two ranks move random data by one path and tell what did not arrive as it was sent.

    gpu_transfers.py PATH OP REMOTE-MEMORY LOCAL-MEMORY [OTHER-GPU]

Each argument may be a comma-separated list; all combinations are tried, in one context. OP is put, get or
signal (a put that notifies a signal). Memory is host (of pw_region_allocate), malloc, cuda (of
pw_region_allocate), cuda-malloc, cuda-pool, cuda-async (a pool that cannot be shared), cupy, torch or
torch-expandable. Each rank uses another GPU as far as there are some, or all GPU 0 with OTHER-GPU=no. Every
byte of the target is checked, also those that must not change, through copies of the driver alone. Each rank
prints one line of JSON for each combination.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

import peerway
from peerway import _core

SPAN = 3 << 20
WAIT = 60.0


class Gpu:
    """One GPU, fake or real, used through the driver alone, so that the library is checked independently."""

    def __init__(self, ordinal: int) -> None:
        self.driver = ctypes.CDLL(os.environ.get("PEERWAY_CUDA_LIBRARY") or "libcuda.so.1")
        self.ordinal = ordinal
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
        self.call("cuCtxPushCurrent_v2", context)

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name} gave {result}")

    def copy(self, to: int, source: int, size: int) -> None:
        self.call("cuMemcpy", *(ctypes.c_uint64(value) for value in (to, source, size)))
        self.call("cuStreamSynchronize", None)

    def malloc(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value

    def from_pool(self, size: int, handles: int) -> int:
        """Memory of a new pool that can be shared by descriptor (handles = 1) or not at all (0)."""
        wanted = (ctypes.c_int * 22)(1, handles, 1, self.ordinal)  # CUmemPoolProps: pinned, on a GPU
        pool, address = ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuMemPoolCreate", ctypes.byref(pool), wanted)
        self.call("cuMemAllocFromPoolAsync", ctypes.byref(address), ctypes.c_size_t(size), pool, None)
        self.call("cuStreamSynchronize", None)
        return address.value


class Memory:
    """A region of one kind of memory that can be read and written as a whole."""

    def __init__(self, ctx: peerway.Context, kind: str, gpu: Gpu | None, ordinal: int) -> None:
        self._gpu = gpu if kind not in ("host", "malloc") else None
        self.keep: object = None
        if kind == "host":
            self.region = ctx.allocate("host", SPAN)
        elif kind == "malloc":
            self.region = ctx.register(np.empty(SPAN, np.uint8))
        elif kind == "cuda":
            self.region = ctx.allocate(f"cuda:{ordinal}", SPAN)
        else:
            self.region = self._foreign(ctx, kind, ordinal)
        if self._gpu is None:
            self._bytes = self.region.array()

    def _foreign(self, ctx: peerway.Context, kind: str, ordinal: int) -> peerway.Region:
        assert self._gpu is not None
        if kind == "cuda-malloc":
            return ctx.register_memory(self._gpu.malloc(SPAN), SPAN)
        if kind in ("cuda-pool", "cuda-async"):
            return ctx.register_memory(self._gpu.from_pool(SPAN, int(kind == "cuda-pool")), SPAN)
        if kind == "cupy":
            import cupy

            with cupy.cuda.Device(ordinal):
                self.keep = cupy.empty(SPAN, cupy.uint8)
                cupy.cuda.Device().synchronize()
            return ctx.register(self.keep)
        assert kind.startswith("torch")
        if kind == "torch-expandable":  # before torch makes its allocator
            os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        import torch

        whole = torch.empty(16 * SPAN, dtype=torch.uint8, device=f"cuda:{ordinal}")
        torch.cuda.synchronize(ordinal)
        self.keep = whole
        # An expandable segment consists of handles of 20 MiB (2 MiB in small segments): begin in one and end
        # in the next.
        first = (20 << 20) - SPAN // 2
        return ctx.register(whole[first : first + SPAN])

    def write(self, data: np.ndarray) -> None:
        if self._gpu is None:
            self._bytes[:] = data
        else:
            self._gpu.copy(self.region.address, data.ctypes.data, SPAN)

    def read(self) -> np.ndarray:
        data = np.empty(SPAN, np.uint8)
        if self._gpu is None:
            data[:] = self._bytes
        else:
            self._gpu.copy(data.ctypes.data, self.region.address, SPAN)
        return data


@dataclass(frozen=True)
class Side:
    offset: int
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    name: str
    block: int
    counts: tuple[int, ...]
    to: Side
    source: Side


CASES = (
    Case("1 byte", 1, (), Side(7), Side(3)),
    Case("8 bytes", 8, (), Side(64), Side(8)),
    Case("4099 bytes at odd places", 4099, (), Side(5), Side(1001)),
    Case("2 MiB and 3 bytes", (2 << 20) + 3, (), Side(16), Side(32)),
    Case("column of doubles", 8, (700,), Side(8, (64,)), Side(16, (80,))),
    Case("rows of 48 bytes", 48, (500,), Side(0, (128,)), Side(32, (112,))),
    Case("packed to strided", 7, (900,), Side(1, (7,)), Side(2, (64,))),
    Case("2-D", 12, (9, 30), Side(0, (2000, 60)), Side(4, (1996, 52))),
    Case("3-D", 16, (4, 5, 6), Side(16, (8192, 1024, 64)), Side(0, (6144, 960, 32))),
    Case("4-D", 8, (3, 4, 5, 6), Side(0, (20000, 4000, 640, 96)), Side(8, (15000, 3000, 504, 72))),
)


def places(case: Case, side: Side) -> Iterator[int]:
    """The offset of each block, in order."""
    for index in product(*map(range, case.counts)):
        yield side.offset + sum(i * stride for i, stride in zip(index, side.strides, strict=True))


def expected(case: Case, before: np.ndarray, sent: np.ndarray) -> np.ndarray:
    after = before.copy()
    for to, source in zip(places(case, case.to), places(case, case.source), strict=True):
        after[to : to + case.block] = sent[source : source + case.block]
    return after


def span(whole: peerway.Region | peerway.Remote, case: Case, side: Side):  # type: ignore[no-untyped-def]
    if not case.counts:
        return whole[side.offset : side.offset + case.block]
    return whole.block(case.counts, side.strides, case.block, side.offset)


@functools.cache
def seeded(rank: int, which: int) -> np.ndarray:
    return np.random.default_rng((rank, which)).integers(0, 256, SPAN, np.uint8)


def noise(number: int, rank: int, which: int) -> np.ndarray:
    return seeded(rank, which) ^ np.uint8(37 * number % 251)


class Tester:
    """This rank's memory, and the other rank's memory of the remote kind."""

    def __init__(self, ctx: peerway.Context, op: str, remote: Memory, local: Memory) -> None:
        self.ctx, self.op, self.other = ctx, op, 1 - ctx.rank
        self.remote, self.local = remote, local
        self.far = ctx.import_key(ctx.team.all_gather(remote.region.key(), WAIT)[self.other])
        self.arrived = ctx.signal(self.other)
        self.notified = ctx.import_key(ctx.team.all_gather(self.arrived.key(), WAIT)[self.other])

    def right(self, number: int, case: Case) -> bool:
        """Move the case both ways at once; returns whether this rank's target is exactly right."""
        target, source = (self.local, self.remote) if self.op == "get" else (self.remote, self.local)
        before = noise(number, self.ctx.rank, 0)
        target.write(before)
        source.write(noise(number, self.ctx.rank, 1))
        self.ctx.team.barrier(WAIT)
        self._move(case)
        self.ctx.flush(timeout=WAIT)
        if self.op == "signal":
            self.arrived.wait(number + 1, WAIT)
        else:
            self.ctx.team.barrier(WAIT)
        same = bool((target.read() == expected(case, before, noise(number, self.other, 1))).all())
        self.ctx.team.barrier(WAIT)
        return same

    def _move(self, case: Case) -> None:
        if self.op == "get":
            self.ctx.get(span(self.local.region, case, case.to), span(self.far, case, case.source))
            return
        notified = self.notified if self.op == "signal" else None
        self.ctx.put(span(self.far, case, case.to), span(self.local.region, case, case.source), notified)


def answer(
    ctx: peerway.Context, gpu: Gpu | None, ordinal: int, path: str, op: str, remote: str, local: str
) -> dict[str, object]:
    make: Callable[[str], Memory] = lambda kind: Memory(ctx, kind, gpu, ordinal)  # noqa: E731
    tester = Tester(ctx, op, make(remote), make(local))
    infos = {one.name: one for one in ctx.paths(tester.far, tester.local.region, op.replace("signal", "put"))}
    # If one rank cannot use a path, both skip it: the other rank would wait.
    can = ctx.team.all_gather(b"1" if infos[path].available else b"0", WAIT)
    found: dict[str, object] = {
        "rank": ctx.rank,
        "what": [path, op, remote, local],
        "available": infos[path].available,
        "why": infos[path].why_not,
    }
    if can == [b"1", b"1"]:
        wrong = [case.name for number, case in enumerate(CASES) if not tester.right(number, case)]
        found |= {"cases": len(CASES), "wrong": wrong}
    ctx.team.barrier(WAIT)
    return found


def gpus() -> int:
    return sum(name.startswith("cuda") for name, _ in _core.devices())


def main(path: str, ops: str, remotes: str, locals_: str, other_gpu: str = "yes") -> None:
    with peerway.Context() as ctx:
        ctx.use(path)
        ordinal = ctx.rank % max(gpus(), 1) if other_gpu == "yes" else 0
        needs_gpu = not {*remotes.split(","), *locals_.split(",")} <= {"host", "malloc"}
        gpu = Gpu(ordinal) if needs_gpu else None
        for op, remote, local in product(ops.split(","), remotes.split(","), locals_.split(",")):
            print(json.dumps(answer(ctx, gpu, ordinal, path, op, remote, local)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
