"""Exchanges and halos inside compiled functions of JAX: the start and the finish of a plan are two calls in
the function, and on a GPU both are enqueued in XLA's stream.

    halo = Halo(ctx, u.shape, u.dtype, grid=(2, 2), shadow=1, periodic=True, device="cuda")

    @partial(jax.jit, donate_argnums=0)
    def step(u):
        started = halo.start(u)
        inner = interior(u)                    # meanwhile
        return join(inner, border(halo.finish(u, started)))

JAX chooses where arrays are at each call, and a plan needs memory that stays where it is. So a start copies
what it sends into memory of the plan, and a finish copies what came out of it: faces, never the whole array.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import jax  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from peerway import _core
from peerway._arguments.element_types import element_of
from peerway._arguments.validation import number
from peerway.context import Context
from peerway.errors import InvalidArgument, Unavailable
from peerway.halo import Sides, check_grid, places_of, sides_of
from peerway.plan import Plan

_ALIGNMENT = 256  # the alignment of each array in the plan's memory, in bytes


class Message(NamedTuple):
    """An array that another rank gets, or that comes from it."""

    rank: int
    tag: int  # distinguishes the messages between two ranks in one direction
    shape: tuple[int, ...]
    dtype: Any

    @property
    def bytes(self) -> int:
        """Bytes of the array."""
        return prod(self.shape) * element_of(self.dtype).size


class Exchange:
    """A plan of sends and receives that functions compiled by JAX start and finish.

    Making one is collective over the team. Each start takes the arrays to send, in the order of `sends`; its
    finish gives those received, in the order of `receives`. A start must not begin before the finish of the
    one before it has been called: let its arrays depend on what that finish gave, as they do in a loop.

    Raises Unavailable if this build of Peerway has no calls for JAX.
    """

    def __init__(
        self, ctx: Context, sends: Sequence[Message], receives: Sequence[Message], device: str = "host"
    ) -> None:
        _register_targets()
        self._sends, self._receives = tuple(sends), tuple(receives)
        spans, whole = _spans([*self._sends, *self._receives])
        self._region = ctx.allocate(device, max(whole, 1))
        builder = ctx.plan(device)
        for message, (offset, size) in zip(self._sends, spans, strict=False):
            builder.send(message.rank, message.tag, self._region[offset, size])
        for message, (offset, size) in zip(self._receives, spans[len(self._sends) :], strict=True):
            builder.receive(message.rank, message.tag, self._region[offset, size])
        self._plan: Plan = builder.prepare()
        self._number = np.int64(
            _core.open_jax_exchange(
                self._plan._core, self._region._core, spans[: len(self._sends)], spans[len(self._sends) :]
            )
        )

    def start(self, *arrays: Any) -> Any:
        """Sends the arrays and returns a token for the finish. Works in and outside of compiled functions.

        Raises InvalidArgument for arrays of another number, shape or type than the exchange was made for.
        """
        given = [jax.numpy.asarray(array) for array in arrays]
        if len(given) != len(self._sends):
            raise InvalidArgument(
                f"peerway: start: {len(given)} arrays for an exchange that sends {len(self._sends)}."
            )
        for place, (array, message) in enumerate(zip(given, self._sends, strict=True)):
            if tuple(array.shape) != tuple(message.shape) or array.dtype != np.dtype(message.dtype):
                raise InvalidArgument(
                    f"peerway: start: array {place} is {array.dtype} of shape {tuple(array.shape)}; the "
                    f"exchange was made for {np.dtype(message.dtype)} of shape {tuple(message.shape)}."
                )
        call: Any = jax.ffi.ffi_call("peerway_start", _result((), np.uint8), has_side_effect=True)
        return call(*given, exchange=self._number)

    def finish(self, token: Any) -> list[Any]:
        """Waits for the arrays that the other ranks have sent, and returns them."""
        results = [_result(message.shape, message.dtype) for message in self._receives]
        call: Any = jax.ffi.ffi_call("peerway_finish", results, has_side_effect=True)
        return list(call(token, exchange=self._number))

    def check(self) -> None:
        """Raises the error that cancelled the plan, if it was cancelled. On a GPU a finish whose peer was
        lost ends without an error, and the arrays that it gave are not valid.
        """
        self._plan.check()

    def close(self) -> None:
        """Ends the exchange once all functions that use it have ended. Closing twice does nothing."""
        _core.close_jax_exchange(int(self._number))
        self._plan.close()
        self._region.close()


class Halo:
    """The halo of a block-distributed array of JAX, refreshed inside compiled functions.

    Making one is collective over the team. `shape` is that of this rank's part with its shadow; all ranks
    have the same. `grid` is the process grid over the array's first dimensions, row after row; `shadow` the
    number of layers around them, or for each dimension a number or (lower, upper). Without `corners` a face
    covers only its owner's block.
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

    def start(self, u: Any) -> Any:
        """Sends the borders of `u` and returns a token for the finish."""
        if tuple(u.shape) != self.shape:
            raise InvalidArgument(
                f"peerway: start: an array of shape {tuple(u.shape)} for a halo made for {self.shape}."
            )
        return self._exchange.start(*(u[face] for face in self._sent))

    def finish(self, u: Any, token: Any) -> Any:
        """Returns `u` with its halo refreshed; in place where JAX may reuse the memory of `u`."""
        for face, values in zip(self._received, self._exchange.finish(token), strict=True):
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


def _result(shape: tuple[int, ...], dtype: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call, unused-ignore]


def _register_targets() -> None:
    """Register the calls with XLA, once in a process."""
    if not hasattr(_core, "jax_targets"):
        raise Unavailable(
            "peerway: this build has no calls for JAX: they are built where jaxlib is installed. Install "
            "jaxlib, then build Peerway from source with --no-build-isolation."
        )
    if _registered:
        return
    for platform, targets in _core.jax_targets.items():
        for name, target in zip(("peerway_start", "peerway_finish"), targets, strict=True):
            jax.ffi.register_ffi_target(name, target, platform=platform)
    _registered.append(True)


_registered: list[bool] = []


def _spans(messages: Sequence[Message]) -> tuple[list[tuple[int, int]], int]:
    """The offset and bytes of each message in one piece of memory, and the bytes of all messages."""
    spans, end = [], 0
    for message in messages:
        spans.append((end, message.bytes))
        end += -(-message.bytes // _ALIGNMENT) * _ALIGNMENT
    return spans, end


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
