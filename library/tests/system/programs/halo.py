"""Halos of distributed arrays, refreshed again and again with new numbers. Every element of every rank's
memory is compared with what the global array holds there; what no halo covers must keep its poison.

halo.py CASE...    each case is a JSON object with the fields of Case; prints what was wrong in each

In every round the owned elements get new numbers, so that a halo that is one round old is found.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import peerway

POISON = -1.0


@dataclass(frozen=True)
class Case:
    """The array of a halo, and how the halo is started."""

    extents: list[int]
    grid: list[int]
    shadow: Any = 1
    periodic: Any = True
    corners: bool = False
    width: Any = None
    dims: list[int | None] | None = None
    dtype: str = "f8"  # or "V192": 24 doubles as one element
    arrays: int = 1
    memory: str = "numpy"  # "allocated", "strided", "fortran", "dlpack", "cuda"
    start: str = "host"  # "stream", "run", "ahead" (not with "cuda")
    rounds: int = 3

    @property
    def over(self) -> list[int]:
        """For each dimension the grid's dimension, or -1."""
        chosen = self.dims if self.dims is not None else list(range(len(self.grid)))
        return [chosen.index(axis) if axis in chosen else -1 for axis in range(len(self.extents))]

    def sides(self, given: Any) -> list[tuple[int, int]]:
        """(lower, upper) in each dimension."""
        if isinstance(given, int):
            return [(given, given) if place >= 0 else (0, 0) for place in self.over]
        return [(one, one) if isinstance(one, int) else tuple(one) for one in given]


def along(lines: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Each line along its own dimension, ready to be broadcast."""
    return [
        line.reshape([-1 if axis == other else 1 for other in range(len(lines))])
        for axis, line in enumerate(lines)
    ]


class OnlyDlpack:
    """An array of a library that supports DLPack only."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.shape = array.shape

    def __dlpack__(self, **_: Any) -> Any:
        return self._array.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class Device:
    """The same bytes on this rank's GPU, copied in both directions."""

    def __init__(self, ctx: peerway.Context, host: NDArray[Any]) -> None:
        self._ctx = ctx
        self._host = ctx.register(host)
        self.region = ctx.allocate("cuda", host.nbytes)
        self._remote = ctx.import_key(self.region.key())

    def write(self) -> None:
        """Copy from the host to the GPU."""
        self._ctx.put(self._remote, self._host)
        self._ctx.flush()

    def read(self) -> None:
        """Copy from the GPU to the host."""
        self._host.array()[...] = 0
        self._ctx.get(self._host, self._remote)
        self._ctx.flush()


class Part:
    """One rank's part of an array, and the expected value of each element."""

    def __init__(self, case: Case, ctx: peerway.Context, number: int) -> None:
        self.number = number
        shadow = case.sides(case.shadow)
        width = shadow if case.width is None else case.sides(case.width)
        periodic = case.periodic if isinstance(case.periodic, list) else [case.periodic] * len(case.extents)
        at = np.unravel_index(ctx.rank, case.grid)
        self.indices, self.owned, wanted = [], [], []
        for axis, (extent, place) in enumerate(zip(case.extents, case.over, strict=True)):
            parts = case.grid[place] if place >= 0 else 1
            block = -(-extent // parts)
            first = min(int(at[place]) * block, extent) if place >= 0 else 0
            end = min(first + block, extent)
            index = np.arange(first - shadow[axis][0], end + shadow[axis][1])
            self.owned.append((index >= first) & (index < end))
            near = (index >= first - width[axis][0]) & (index < end + width[axis][1])
            wanted.append(near & (periodic[axis] | ((index >= 0) & (index < extent))))
            self.indices.append(index % extent)
        outside = sum(~mask for mask in along(self.owned))
        self.filled = np.logical_and.reduce(np.broadcast_arrays(*along(wanted)))
        self.filled &= outside <= (len(case.extents) if case.corners else 1)
        self.inside = np.broadcast_to(outside == 0, self.filled.shape)
        self.empty = not self.inside.any()
        if self.empty:
            self.filled[...] = False
        self.memory = self._allocate(case, ctx)
        self.device: Device | None = None
        if case.memory == "cuda" and not self.empty:
            self.device = Device(ctx, self.memory)

    def _allocate(self, case: Case, ctx: peerway.Context) -> NDArray[Any]:
        shape, dtype = self.filled.shape, np.dtype(case.dtype)
        if case.memory in ("allocated", "cuda") and not self.empty:
            memory = ctx.allocate("host", int(np.prod(shape)) * dtype.itemsize).array(dtype, shape)
        elif case.memory == "strided":  # every other element of rows that are longer
            memory = np.zeros((*shape[:-1], 2 * shape[-1] + 3), dtype)[..., 1 : 2 * shape[-1] + 1 : 2]
        else:
            memory = np.zeros(shape, dtype, order="F" if case.memory == "fortran" else "C")
        self.values(memory)[...] = POISON
        return memory

    @staticmethod
    def values(memory: NDArray[Any]) -> NDArray[Any]:
        """The numbers in the elements: one each, or 24 in a new last dimension."""
        if memory.dtype.kind != "V":
            return memory
        return np.ndarray((*memory.shape, 24), np.float64, memory, 0, (*memory.strides, 8))

    def given(self, case: Case) -> object:
        """The argument for ctx.halo."""
        if self.device is not None:
            return self.device.region.array(self.memory.dtype, self.memory.shape)
        return OnlyDlpack(self.memory) if case.memory == "dlpack" else self.memory

    def expected(self, turn: int, mask: NDArray[np.bool_]) -> NDArray[Any]:
        """The numbers of this round where the mask is set, and poison elsewhere."""
        number = np.full(self.filled.shape, float(self.number + 10 * turn))
        for axis, index in enumerate(along(self.indices)):
            number = number + index * 100.0 ** (axis + 1)
        number = np.where(mask, number, POISON)
        if self.memory.dtype.kind != "V":
            return number
        return np.where(mask[..., None], number[..., None] + np.arange(24) / 32, POISON)

    def write(self, turn: int) -> None:
        """Write new numbers into the elements that this rank owns."""
        values = self.values(self.memory)
        values[self.inside] = self.expected(turn, self.inside)[self.inside]
        if self.device is not None:
            self.device.write()

    def wrong(self, turn: int) -> list[str]:
        """The elements with unexpected values."""
        if self.device is not None:
            self.device.read()
        found, right = self.values(self.memory), self.expected(turn, self.filled)
        places = np.argwhere(found != right)
        return [
            f"array {self.number}, round {turn}, {tuple(map(int, place))}: {found[tuple(place)]}, not "
            f"{right[tuple(place)]}"
            for place in places[:5]
        ]


def refresh(halo: peerway.Halo, stream: peerway.Stream | None, start: str) -> None:
    """One start with its finish, in the requested way."""
    if stream is None:
        halo.start()
        halo.finish(timeout=60)
        return
    if start == "run":
        halo.run(stream)
    else:
        halo.start(stream)
        halo.finish(stream)
    stream.wait(timeout=60)
    halo.check()


def run_ahead(case: Case, parts: list[Part], halo: peerway.Halo, stream: peerway.Stream) -> list[str]:
    """Enqueue all rounds (writing, refreshing and comparing) before the first must be done."""
    wrong: list[str] = []

    def write(turn: int) -> None:
        for part in parts:
            part.write(turn)

    def compare(turn: int) -> None:
        for part in parts:
            wrong.extend(part.wrong(turn))

    for turn in range(case.rounds):
        stream.call(lambda turn=turn: write(turn))  # type: ignore[misc]
        halo.start(stream)
        halo.finish(stream)
        stream.call(lambda turn=turn: compare(turn))  # type: ignore[misc]
    stream.wait(timeout=60)
    halo.check()
    return wrong


def run(case: Case, ctx: peerway.Context) -> dict[str, Any]:
    """Run all rounds of a case."""
    parts = [Part(case, ctx, number) for number in range(case.arrays)]
    given = [part.given(case) for part in parts]
    halo = ctx.halo(
        given if case.arrays > 1 else given[0],
        grid=case.grid,
        shadow=case.shadow if isinstance(case.shadow, int) else case.sides(case.shadow),
        periodic=case.periodic,
        corners=case.corners,
        width=case.width if case.width is None or isinstance(case.width, int) else case.sides(case.width),
        dims=case.dims,
    )
    stream = None if case.start == "host" else ctx.stream("cuda" if case.memory == "cuda" else "host")
    wrong: list[str] = []
    if case.start == "ahead" and stream is not None:
        wrong = run_ahead(case, parts, halo, stream)
    else:
        for turn in range(case.rounds):
            for part in parts:
                part.write(turn)
            refresh(halo, stream, case.start)
            for part in parts:
                wrong += part.wrong(turn)
    ctx.team.barrier(60)
    halo.close()
    if stream is not None:
        stream.close()
    return {
        "wrong": wrong[:10],
        "extents": [list(extents) for extents in halo.extents],
        "filled": sum(int((part.filled & ~part.inside).sum()) for part in parts),
    }


def main() -> int:
    """Run every case in one context."""
    with peerway.Context() as ctx:
        for text in sys.argv[1:]:
            print(json.dumps(run(Case(**json.loads(text)), ctx)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
