"""Typed views: elements of a region or a remote, sliced like NumPy arrays, and the blocks that a put or get
of two sides becomes. A view is only numbers; nothing here touches memory.

    theirs = remote.view(float, (ny, nx))
    ctx.put(theirs[1:-1, 0], u[1:-1, 1])       # a column of `u`, an array in registered memory
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import index
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from peerway import _core
from peerway._arguments.element_types import Element, element_of
from peerway.errors import InvalidArgument, OutOfRange

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class HasBytes(Protocol):
    """The interface of regions and remotes that a view uses."""

    bytes: int


Side = TypeVar("Side", bound=HasBytes)

Index = int | slice | EllipsisType

RAW = "|V"  # how the kinds of elements without a meaning begin


@dataclass(frozen=True, slots=True)
class Span(Generic[Side]):
    """Bytes of a region or remote that an operation touches: one contiguous range, or blocks at regular
    strides.
    """

    of: Side
    block: _core.Block


@dataclass(frozen=True, slots=True)
class View(Generic[Side]):
    """Elements of a region or remote, made by its `view` method. Put, get and plans take them in place of
    bytes.

    A slice of a view is a smaller view, by NumPy's rules for whole numbers, slices and `...`: `view[2:8, 0]`.
    Steps must be positive. `offset` and `strides` are in bytes.
    """

    of: Side
    kind: str  # of an element, as NumPy writes types
    item: int  # bytes of an element
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return np.dtype(self.kind)

    @property
    def nbytes(self) -> int:
        """Bytes of all its elements."""
        return prod(self.shape) * self.item

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("peerway: a view of one element has no length")
        return self.shape[0]

    def __getitem__(self, key: Index | tuple[Index, ...]) -> View[Side]:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis not in keys:
            keys.append(Ellipsis)
        at = keys.index(Ellipsis)
        missing = len(self.shape) - (len(keys) - 1)
        if missing < 0 or Ellipsis in keys[at + 1 :]:
            raise OutOfRange(
                f"peerway: {written(key)} has {len(keys) - 1} indices; the view has {len(self.shape)} "
                "dimensions."
            )
        keys[at : at + 1] = [slice(None)] * missing
        offset, shape, strides = self.offset, [], []
        for axis, (key_of_axis, count, stride) in enumerate(zip(keys, self.shape, self.strides, strict=True)):
            first, step, length = _part(key_of_axis, axis, count)
            offset += first * stride
            if isinstance(key_of_axis, slice):
                shape.append(length)
                strides.append(step * stride)
        return View(self.of, self.kind, self.item, tuple(shape), tuple(strides), offset)

    def __iter__(self) -> None:
        raise TypeError("peerway: a view cannot be iterated over; put and get move its elements.")

    def __repr__(self) -> str:
        return f"<peerway.View of {self.shape} {_name(self.kind)} in {self.of!r}>"


def view_of(of: Side, dtype: DTypeLike, shape: int | Sequence[int] | None, offset: int) -> View[Side]:
    """Implements the `view` methods."""
    element = element_of(dtype)
    whole = shape_for(of.bytes - offset, element, shape, f"byte {offset} on, {of!r}" if offset else repr(of))
    strides = [prod(whole[axis + 1 :]) * element.size for axis in range(len(whole))]
    return View(of, element.kind, element.size, whole, tuple(strides), offset)


def shape_for(room: int, element: Element, shape: int | Sequence[int] | None, where: str) -> tuple[int, ...]:
    """The shape as a tuple; without `shape` one dimension over all `room` bytes. Raises InvalidArgument if it
    does not fit.
    """
    if shape is None:
        return (max(room, 0) // element.size,)
    try:
        whole = tuple(index(count) for count in (shape if isinstance(shape, Sequence) else (shape,)))
    except TypeError:
        raise InvalidArgument(f"peerway: {shape!r} is not a shape; give whole numbers.") from None
    if min(whole, default=0) < 0 or prod(whole) * element.size > room:
        raise InvalidArgument(
            f"peerway: an array of shape {whole} and type {_name(element.kind)} needs "
            f"{prod(whole) * element.size} "
            f"bytes, but the region has {room}: {where}."
            if min(whole, default=0) >= 0
            else f"peerway: {whole} is not a shape; all its numbers must be 0 or more."
        )
    return whole


def blocks_of(view: View[Any] | Span[Any], other: View[Any] | Span[Any]) -> tuple[_core.Block, _core.Block]:
    """The blocks of the two sides of a transfer. Typed sides must have the same shape and type. Dimensions
    that are adjacent on both sides are joined, so that a slice costs what its bytes cost.
    """
    if isinstance(view, View) and isinstance(other, View):
        if view.shape != other.shape:
            raise InvalidArgument(f"peerway: elements of shape {other.shape} do not fit into {view.shape}.")
        if view.kind != other.kind and not (
            view.item == other.item and (view.kind.startswith(RAW) or other.kind.startswith(RAW))
        ):
            raise InvalidArgument(
                f"peerway: elements of type {_name(other.kind)} do not become {_name(view.kind)}; Peerway "
                "moves bytes and converts nothing. Take the same type on both sides."
            )
        first, second = _joined(view.shape, view.item, view.strides, other.strides)
        return _block(view, *first), _block(other, *second)
    return block_of(view), block_of(other)


def block_of(side: View[Any] | Span[Any]) -> _core.Block:
    """The block of one side alone."""
    if isinstance(side, Span):
        return side.block
    return _block(side, *_joined(side.shape, side.item, side.strides, side.strides)[0])


Dims = tuple[list[int], list[int], int]  # counts, strides, block bytes


def _joined(
    shape: tuple[int, ...], item: int, blocks: tuple[int, ...], other: tuple[int, ...]
) -> tuple[Dims, Dims]:
    """The dimensions of two layouts of the same shape, slowest first, joined into as few as possible."""
    if 0 in shape:
        return ([], [], 0), ([], [], 0)
    block = item
    dims: list[tuple[int, int, int]] = []  # the fastest first
    for count, a, b in sorted(zip(shape, blocks, other, strict=True), key=lambda dim: dim[1]):
        if count == 1:
            continue
        if not dims and a == block == b:
            block *= count
        elif dims and (a, b) == (dims[-1][0] * dims[-1][1], dims[-1][0] * dims[-1][2]):
            dims[-1] = (dims[-1][0] * count, dims[-1][1], dims[-1][2])
        else:
            dims.append((count, a, b))
    if len(dims) > _core.MAX_DIMS:
        raise InvalidArgument(
            f"peerway: elements of shape {shape} lie in {len(dims)} dimensions with gaps; one put or get "
            f"moves at most {_core.MAX_DIMS}. Move them in several."
        )
    dims.reverse()
    counts = [count for count, _, _ in dims]
    return (counts, [a for _, a, _ in dims], block), (counts, [b for _, _, b in dims], block)


def _block(side: View[Any], counts: list[int], strides: list[int], block_bytes: int) -> _core.Block:
    return _core.Block(counts, strides, block_bytes, side.offset)


def _part(key: Index, axis: int, count: int) -> tuple[int, int, int]:
    """First element, step and length of the part of an axis that an index selects."""
    if isinstance(key, slice):
        try:
            first, end, step = key.indices(count)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"peerway: {written(key)}: {error}.") from None
        if step < 0:
            raise InvalidArgument(f"peerway: {written(key)} runs backwards; steps must be positive.")
        return first if first < end else 0, step, len(range(first, end, step))
    try:
        place = index(key)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgument(
            f"peerway: {written(key)} is not an index of a view; use whole numbers, slices and ...."
        ) from None
    if not -count <= place < count:
        raise OutOfRange(f"peerway: index {place} is outside axis {axis}, which has {count} elements.")
    return place % count, 0, 1


def written(key: object) -> str:
    """An index as the program wrote it."""
    if isinstance(key, tuple):
        return f"[{', '.join(written(index)[1:-1] for index in key)}]"
    if isinstance(key, slice):
        ends = ["" if end is None else repr(end) for end in (key.start, key.stop)]
        return f"[{':'.join(ends)}{'' if key.step is None else f':{key.step!r}'}]"
    return "[...]" if key is Ellipsis else f"[{key!r}]"


def _name(kind: str) -> str:
    try:
        return str(np.dtype(kind))
    except TypeError:
        return kind
