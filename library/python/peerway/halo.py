"""Halos: the boundary layers of distributed arrays, refreshed by one plan.

halo = ctx.halo(u, grid=(2, 2), shadow=1, periodic=True)
halo.start(stream); interior(u, stream); halo.finish(stream); boundary(u, stream)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from peerway import _core
from peerway._arguments.array_layout import Layout, halo_layout_of
from peerway._arguments.extents import Part, agree
from peerway._arguments.validation import called, number
from peerway.errors import InvalidArgument
from peerway.memory import Region
from peerway.plan import Plan

Side = int | tuple[int, int]  # as many layers below as above, or (lower, upper)
Sides = int | Sequence[Side]

_Pairs = tuple[tuple[int, int], ...]
_MOST_PARTS = 2**32 - 1


def block_of(extent: int, parts: int, index: int) -> range:
    """The elements that part `index` has if `extent` elements are block-distributed over `parts`. Every part
    has ceil(extent / parts) elements except the last ones, which are shorter or empty.

    Raises InvalidArgument if there is no such part.
    """
    first, count = _core.grid_block(
        number("block_of: `extent`", extent),
        number("block_of: `parts`", parts, 1, _MOST_PARTS),
        number("block_of: `index`", index, 0, _MOST_PARTS),
    )
    return range(first, first + count)


class Halo(Plan):
    """The plan that refreshes the halos of distributed arrays, made by Context.halo. Start and finish it like
    any plan; between the two the program may compute all elements that no halo touches.
    """

    def __init__(
        self,
        core: _core.Plan,
        parts: Sequence[_Local],
        grid: tuple[int, ...],
        extents: Sequence[tuple[int, ...]],
        device: str,
    ) -> None:
        super().__init__(core, device, [part.layout.keep for part in parts])
        self._regions = [part.region for part in parts if part.region is not None]
        self.grid = grid
        self.extents = tuple(extents)  # extents of the whole arrays, over all ranks

    def close(self) -> None:
        """Ends the halo and releases the arrays. Do not call it between a start and its finish. Closing twice
        does nothing.
        """
        super().close()
        for region in self._regions:
            region.close()


@dataclass(frozen=True, slots=True)
class HaloOptions:
    """The arguments of Context.halo that apply to all its arrays."""

    grid: int | Sequence[int]
    shadow: Sides
    periodic: bool | Sequence[bool]
    corners: bool
    width: Sides | None
    dims: Sequence[int | None] | None


@dataclass(slots=True)
class _Local:
    """This rank's part of one array."""

    array: object
    layout: Layout
    over: tuple[int, ...]  # for each dimension, the dimension of the grid that it is distributed over, or -1
    periodic: tuple[bool, ...]
    shadow: _Pairs
    width: _Pairs
    region: Region | None = None

    @property
    def owned(self) -> tuple[int, ...]:
        """The number of elements without the shadow, for each dimension; 0 if the array has no element
        in it.
        """
        return tuple(
            max(count - sum(sides), 0) for count, sides in zip(self.layout.shape, self.shadow, strict=True)
        )


def make_halo(context: _core.Context, rank: int, size: int, u: object, options: HaloOptions) -> Halo:
    """Implements Context.halo. A rank that refuses its arguments tells the others, so that none waits
    for it.
    """
    places = places_of(options.grid)
    arrays = list(u) if isinstance(u, list | tuple) else [u]
    parts: list[_Local] = []
    refusal: Exception | None = None
    try:
        check_grid(places, size)
        for array in arrays:
            parts.append(_local(array, places, options))
        for part in parts:
            if part.layout.extent_bytes > 0 and 0 not in part.owned:
                core_region = context.register(part.layout.address, part.layout.extent_bytes)
                part.region = Region(core_region, part.layout.keep)
    except Exception as error:  # even of another library: the other ranks must hear of it
        refusal = error
    try:
        device = next((part.region.device for part in parts if part.region is not None), None)
        extents, device = agree(context, rank, places, [_announced(part) for part in parts], device, refusal)
        core = _core.make_halo(
            context,
            [_described(part, extent) for part, extent in zip(parts, extents, strict=True)],
            places,
            bool(options.corners),
        )
    except BaseException:
        for part in parts:
            if part.region is not None:
                part.region.close()
        raise
    return Halo(core, parts, places, extents, device)


def places_of(grid: int | Sequence[int]) -> tuple[int, ...]:
    """The extents of a process grid."""
    return (grid,) if isinstance(grid, int) else tuple(int(extent) for extent in grid)


def check_grid(grid: tuple[int, ...], size: int) -> None:
    """Raise InvalidArgument unless the process grid has as many places as the team has ranks."""
    if min(grid, default=0) < 1 or prod(grid) != size:
        raise InvalidArgument(
            f"peerway: a process grid of {grid} has {prod(grid) if grid else 0} places, but the team has "
            f"{size} ranks; the two must be equal."
        )


def _local(array: object, grid: tuple[int, ...], options: HaloOptions) -> _Local:
    layout = halo_layout_of(array)
    ndim = len(layout.shape)
    if not 1 <= ndim <= _core.MAX_ARRAY_DIMS:
        raise InvalidArgument(
            f"peerway: {called(array)} has {ndim} dimensions; 1 to {_core.MAX_ARRAY_DIMS} are possible."
        )
    over = _distribution(array, ndim, grid, options.dims)
    layers = sides_of("shadow", options.shadow, over)
    periodic = options.periodic
    wrapped = (periodic,) * ndim if isinstance(periodic, bool | int) else tuple(map(bool, periodic))
    if len(wrapped) != ndim:
        raise InvalidArgument(
            f"peerway: periodic={periodic!r} has {len(wrapped)} entries for the {ndim} dimensions of "
            f"{called(array)}; give one for each, or one for all."
        )
    for axis, (count, sides) in enumerate(zip(layout.shape, layers, strict=True)):
        if 0 < count < sum(sides):
            raise InvalidArgument(
                f"peerway: {called(array)} has {count} elements in dimension {axis}, fewer than its shadow "
                f"of {sides[0]}:{sides[1]}."
            )
    refreshed = layers if options.width is None else sides_of("width", options.width, over)
    return _Local(array, layout, over, tuple(map(bool, wrapped)), layers, refreshed)


def _distribution(
    array: object, ndim: int, grid: tuple[int, ...], dims: Sequence[int | None] | None
) -> tuple[int, ...]:
    """For each dimension of the array, the dimension of the grid that it is distributed over, or -1."""
    if dims is None and len(grid) > ndim:
        raise InvalidArgument(
            f"peerway: {called(array)} has {ndim} dimensions, the process grid {grid} has {len(grid)}; say "
            "by dims which dimension of the array is distributed over each of the grid's, None for a copy on "
            "every rank."
        )
    chosen = tuple(range(len(grid))) if dims is None else tuple(dims)
    named = [dim for dim in chosen if dim is not None]
    if len(chosen) != len(grid) or len(set(named)) != len(named) or not all(0 <= dim < ndim for dim in named):
        raise InvalidArgument(
            f"peerway: dims={chosen} for {called(array)} and the process grid {grid}; give for each of the "
            f"{len(grid)} dimensions of the grid another dimension of the array, 0 to {ndim - 1}, or None."
        )
    over = [-1] * ndim
    for place, dim in enumerate(chosen):
        if dim is not None:
            over[dim] = place
    return tuple(over)


def sides_of(name: str, given: Sides, over: tuple[int, ...]) -> _Pairs:
    """(lower, upper) for each dimension. A single number applies to all distributed dimensions."""
    if isinstance(given, int):
        pairs = [(given, given) if place >= 0 else (0, 0) for place in over]
    else:
        pairs = [_pair(name, given, side) for side in given]
    if len(pairs) != len(over) or min((min(pair) for pair in pairs), default=0) < 0:
        raise InvalidArgument(
            f"peerway: {name}={given!r} for an array of {len(over)} dimensions; give one number of layers, 0 "
            "or more, for all distributed dimensions, or for each dimension a number or (lower, upper)."
        )
    return tuple(pairs)


def _pair(name: str, given: Sides, side: Side) -> tuple[int, int]:
    if isinstance(side, int):
        return side, side
    try:
        lower, upper = (int(layers) for layers in side)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"peerway: {name}={given!r} has an entry {side!r}; give a number of layers or (lower, upper)."
        ) from None
    return lower, upper


def _announced(part: _Local) -> Part:
    return {
        "shape": part.layout.shape,
        "owned": part.owned,
        "dimensions": len(part.layout.shape),
        "dtype": part.layout.kind,
        "distribution": part.over,
        "shadow": part.shadow,
    }


def _described(
    part: _Local, extent: tuple[int, ...]
) -> tuple[_core.Region | None, int, int, list[tuple[int, int, bool, int, int, int, int, int]]]:
    dims = [
        (length, over, periodic, *shadow, *width, stride)
        for length, over, periodic, shadow, width, stride in zip(
            extent, part.over, part.periodic, part.shadow, part.width, part.layout.strides, strict=True
        )
    ]
    return None if part.region is None else part.region._core, 0, part.layout.item, dims
