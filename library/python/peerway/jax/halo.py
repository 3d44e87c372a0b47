"""The halo of an array that JAX computes, refreshed inside compiled functions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from peerway._arguments.validation import number
from peerway.context import Context
from peerway.errors import InvalidArgument
from peerway.halo import Sides, check_grid, places_of, sides_of
from peerway.jax.calls import ArrayType, Started
from peerway.jax.exchange import Exchange, Message


class Halo:
    """The halo of a block-distributed array of JAX, refreshed inside compiled functions.

    Making one is collective over the team. `shape` is that of this rank's part with its shadow; all ranks
    have the same. `grid` is the process grid over the array's first dimensions, row after row; `shadow` the
    number of layers around them, or for each dimension a number or (lower, upper). Without `corners` a face
    covers only its owner's block.

    Raises InvalidArgument for a grid, a shadow or elements that do not fit together, and Unavailable if this
    build of Peerway has no calls for JAX.
    """

    def __init__(
        self,
        ctx: Context,
        shape: Sequence[int],
        dtype: Any,
        grid: int | Sequence[int],
        shadow: Sides = 1,
        periodic: bool | Sequence[bool] = False,
        corners: bool = False,
        device: str = "host",
    ) -> None:
        places = places_of(grid)
        check_grid(places, ctx.size)
        self.shape = tuple(number("Halo: an extent of `shape`", extent) for extent in shape)
        self._type = ArrayType.of(self.shape, dtype)
        over = tuple(axis if axis < len(places) else -1 for axis in range(len(self.shape)))
        layers = sides_of("shadow", shadow, over)
        wrapped = (periodic,) * len(places) if isinstance(periodic, bool) else tuple(periodic)
        _check_halo(self.shape, places, layers, wrapped)
        directions = _directions(len(places), corners)
        here = np.unravel_index(ctx.rank, places)
        sends, receives = [], []
        self._sent: list[tuple[slice, ...]] = []
        self._received: list[tuple[slice, ...]] = []
        for tag, direction in enumerate(directions):
            opposite = directions.index(tuple(-step for step in direction))
            rank = _neighbour(here, direction, places, wrapped)
            if rank is None:
                continue
            sent = _face(self.shape, layers, direction, inside=True)
            received = _face(self.shape, layers, direction, inside=False)
            if extent := _extent(sent):
                sends.append(Message(rank, tag, extent, dtype))
                self._sent.append(sent)
            if extent := _extent(received):
                receives.append(Message(rank, opposite, extent, dtype))
                self._received.append(received)
        self._exchange = Exchange(ctx, sends, receives, device)
        self._exchange.noun = "halo"

    def start(self, u: Any) -> Started:
        """Sends the borders of `u`, this rank's part with its shadow, and returns what the finish takes.

        Raises InvalidArgument for an array of another shape or type than the halo was made for.
        """
        given = ArrayType(tuple(u.shape), np.dtype(u.dtype))
        if given != self._type:
            raise InvalidArgument(f"peerway: start: an array of {given}; the halo was made for {self._type}.")
        # The border may not depend on the halo, so without this XLA could start before the last finish.
        halo = [u[tuple(part.start for part in face)] for face in self._received]
        return self._exchange.start(*(u[face] for face in self._sent), after=halo)

    def finish(self, u: Any, started: Started) -> Any:
        """Returns `u` with its halo refreshed; in place where JAX may reuse the memory of `u`.

        Raises InvalidArgument for what another halo's start returned.
        """
        for face, values in zip(self._received, self._exchange.finish(started), strict=True):
            u = u.at[face].set(values)
        return u

    def refresh(self, u: Any) -> Any:
        """A start and its finish."""
        return self.finish(u, self.start(u))

    def check(self) -> None:
        """As Exchange.check."""
        self._exchange.check()

    def close(self) -> None:
        """As Exchange.close."""
        self._exchange.close()


def _directions(dimensions: int, corners: bool) -> list[tuple[int, ...]]:
    """Where neighbours are: one step along one dimension, or with corners along any of them."""
    steps = product((-1, 0, 1), repeat=dimensions)
    most = dimensions if corners else 1
    return [step for step in steps if 0 < sum(map(abs, step)) <= most]


def _neighbour(
    here: Sequence[Any], direction: Sequence[int], grid: Sequence[int], wrapped: Sequence[bool]
) -> int | None:
    place = []
    for at, step, extent, wraps in zip(here, direction, grid, wrapped, strict=True):
        moved = int(at) + step
        if not (wraps or 0 <= moved < extent):
            return None
        place.append(moved % extent)
    return int(np.ravel_multi_index(place, tuple(grid)))


def _face(
    shape: Sequence[int], layers: Sequence[tuple[int, int]], direction: Sequence[int], inside: bool
) -> tuple[slice, ...]:
    """The elements that a rank sends in a direction (`inside`, of its block) or receives from there (of its
    shadow). It sends as many layers as the neighbour has on the side that faces it.
    """
    face = []
    for axis, (count, (lower, upper)) in enumerate(zip(shape, layers, strict=True)):
        first, end = lower, count - upper
        step = direction[axis] if axis < len(direction) else 0
        if step > 0:
            face.append(slice(end - lower, end) if inside else slice(end, count))
        elif step < 0:
            face.append(slice(first, first + upper) if inside else slice(0, first))
        else:
            face.append(slice(first, end))
    return tuple(face)


def _extent(face: Sequence[slice]) -> tuple[int, ...]:
    """The shape of a face; empty if it has no elements."""
    extent = tuple(part.stop - part.start for part in face)
    return extent if prod(extent) > 0 else ()


def _check_halo(
    shape: Sequence[int], grid: Sequence[int], layers: Sequence[tuple[int, int]], wrapped: Sequence[bool]
) -> None:
    if len(grid) > len(shape) or len(wrapped) != len(grid):
        raise InvalidArgument(
            f"peerway: Halo: an array of shape {tuple(shape)}, a process grid of {tuple(grid)} and periodic="
            f"{tuple(wrapped)}; the grid is over the array's first dimensions, and periodic has an entry for "
            "each of the grid's, or is one value."
        )
    for axis, (count, (lower, upper)) in enumerate(zip(shape, layers, strict=True)):
        owned = count - lower - upper
        if axis < len(grid) and owned < max(lower, upper, 1):
            raise InvalidArgument(
                f"peerway: Halo: {count} elements in dimension {axis} with a shadow of {lower}:{upper} leave "
                f"{owned} of its own, fewer than the neighbour needs."
            )
