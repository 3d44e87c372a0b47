"""Finds the extents of the arrays of a halo. Each rank knows the shape of its own parts, and all ranks that
make the same halo learn how large the whole arrays are.

Ranks add up the lengths of their parts along each dimension of the process grid. The number of steps is the
logarithm of the number of ranks. So a rank talks only to a few others of its row and of its column, and keeps
no data about the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any, Literal

from peerway import _core
from peerway.errors import Error, Interrupted, InvalidArgument

Part = Mapping[str, Any]  # one array's "shape", "owned", "dimensions", "dtype", "distribution" and "shadow"
Grid = tuple[int, ...]

# The use that a rank makes of the sum that its partner sends in a step.
Effect = Literal["add", "ignore", "replace"]


def agree(
    context: _core.Context,
    rank: int,
    grid: Grid,
    parts: Sequence[Part],
    device: str | None,
    refusal: Exception | None,
) -> tuple[list[tuple[int, ...]], str]:
    """Find the extents of the whole arrays, and the device of this rank's plan. Collective.

    If one rank refuses its arguments, or the parts do not fit, all ranks raise. `device` is the device of
    this rank's parts, None if it holds none.
    """
    exchange = _core.Exchange(context)
    try:
        if refusal is not None:
            raise refusal
        return _Agreement(exchange, rank, grid, parts).reach(device)
    except BaseException as error:
        # This rank may fail because another one objected before; then the objection is raised.
        alone = error is refusal or not isinstance(error, Exception)
        with suppress(*([Error] if alone else [])):
            exchange.abort(*_abort_reason(error))
        raise
    finally:
        exchange.close()  # otherwise a traceback that is kept would keep it open


def _abort_reason(error: BaseException) -> tuple[str, str]:
    """The status and message that other ranks get."""
    if isinstance(error, Exception):
        return (error.status if isinstance(error, Error) else InvalidArgument.status), str(
            error
        ).removeprefix("peerway: ")
    return Interrupted.status, f"its program was interrupted ({type(error).__name__})"


def line(rank: int, grid: Grid, place: int) -> range:
    """The ranks, including `rank`, that differ from it only in this dimension of the grid."""
    stride = prod(grid[place + 1 :])
    first = rank - rank // stride % grid[place] * stride
    return range(first, first + grid[place] * stride, stride)


def steps(index: int, count: int) -> list[tuple[int, Effect]]:
    """The partners with which the `index`-th of `count` ranks exchanges its sum so far, one for each step.
    Afterwards all ranks have the sum over all. Ranks beyond the largest power of two give their value to a
    partner below it, and get the sum from it at the end.
    """
    half = 1 << (count.bit_length() - 1)
    if index >= half:
        return [(index - half, "ignore"), (index - half, "replace")]
    result: list[tuple[int, Effect]] = [(index ^ 1 << bit, "add") for bit in range(count.bit_length() - 1)]
    if index + half < count:
        return [(index + half, "add"), *result, (index + half, "ignore")]
    return result


class _Agreement:
    """One rank's part of the exchange of the ranks that make a halo."""

    def __init__(self, exchange: _core.Exchange, rank: int, grid: Grid, parts: Sequence[Part]) -> None:
        self._exchange = exchange
        self._rank = rank
        self._grid = grid
        self._parts = json.loads(json.dumps(parts))  # in the form in which other ranks get it
        # For each dimension of the grid, the partner and the effect of each step.
        self._steps: list[list[tuple[int, Effect]]] = []
        for place in range(len(grid)):
            ranks = line(rank, grid, place)
            self._steps.append([(ranks[at], effect) for at, effect in steps(ranks.index(rank), grid[place])])

    def reach(self, device: str | None) -> tuple[list[tuple[int, ...]], str]:
        """Raise the objection of this rank or of another one."""
        self._compare()
        extents = [list(part["owned"]) for part in self._parts]
        elsewhere = device
        for place in range(len(self._grid)):
            along = [
                (number, axis)
                for number, part in enumerate(self._parts)
                for axis, over in enumerate(part["distribution"])
                if over == place
            ]
            sums, elsewhere = self._sums(place, [extents[number][axis] for number, axis in along], elsewhere)
            for (number, axis), extent in zip(along, sums, strict=True):
                self._check_block(number, axis, extent)
                extents[number][axis] = extent
        # No rank goes on before all have found that their parts fit.
        for place in range(len(self._grid)):
            self._sums(place, [], None)
        # A rank that owns nothing starts the plan on a device of the kind that the others use.
        return [tuple(extent) for extent in extents], device or (elsewhere or "host").partition(":")[0]

    def _compare(self) -> None:
        """Compare with the partners of all steps; through these each rank is compared with all others."""
        mine = {"grid": self._grid, "arrays": self._parts}
        partners = {rank for line_steps in self._steps for rank, _ in line_steps}
        for rank, theirs in self._round(sorted(partners), mine):
            here, there = (self._rank, mine), (rank, theirs)
            check_same(self._grid, *((here, there) if self._rank < rank else (there, here)))

    def _sums(self, place: int, mine: list[int], device: str | None) -> tuple[list[int], str | None]:
        """The sums over the ranks along this dimension of the grid, and the device of any of these ranks."""
        for rank, effect in self._steps[place]:
            ((_, theirs),) = self._round([rank], {"sums": mine, "device": device})
            device = device or theirs["device"]
            if effect == "add":
                mine = [own + other for own, other in zip(mine, theirs["sums"], strict=True)]
            elif effect == "replace":
                mine = theirs["sums"]
        return mine, device

    def _check_block(self, number: int, axis: int, extent: int) -> None:
        part = self._parts[number]
        place = part["distribution"][axis]
        count = self._grid[place]
        index = line(self._rank, self._grid, place).index(self._rank)
        expected = _core.grid_block(extent, count, index)[1]
        if part["owned"][axis] != expected:
            raise InvalidArgument(
                f"peerway: array {number} is not a block distribution over the process grid {self._grid}: "
                f"without the shadow its parts have {extent} elements along dimension {axis}, of which a "
                f"block distribution over {count} ranks gives rank {self._rank} {expected}, but it has "
                f"{part['owned'][axis]}. Its shape is {tuple(part['shape'])}."
            )

    def _round(self, ranks: Iterable[int], mine: object) -> list[tuple[int, Any]]:
        message = json.dumps(mine).encode()
        return [
            (rank, json.loads(theirs))
            for rank, theirs in self._exchange.exchange([(rank, message) for rank in ranks])
        ]


def check_same(grid: Grid, first: tuple[int, Any], second: tuple[int, Any]) -> None:
    """Raise InvalidArgument if two ranks, the lower one first, make different halos."""
    (rank, extents), (other_rank, other) = first, second

    def same(attribute: str, here: object, there: object) -> None:
        if here != there:
            raise InvalidArgument(
                f"peerway: ranks ask for different halos: {attribute} is {here} on rank {rank}, but "
                f"{there} on rank {other_rank}."
            )

    same("the grid", tuple(extents["grid"]), tuple(other["grid"]))
    same("the number of arrays", len(extents["arrays"]), len(other["arrays"]))
    for number, (part, other_part) in enumerate(zip(extents["arrays"], other["arrays"], strict=True)):
        for attribute in ("dimensions", "dtype", "distribution", "shadow"):
            same(f"the {attribute} of array {number}", part[attribute], other_part[attribute])
        for axis, place in enumerate(part["distribution"]):
            if place >= 0 and other_rank in line(rank, grid, place):
                continue  # each rank has a block of its own
            counts = sorted({part["owned"][axis], other_part["owned"][axis]})
            if len(counts) > 1:
                raise InvalidArgument(
                    f"peerway: array {number} is not a block distribution over the process grid {grid}: "
                    f"without the shadow its parts have {counts[0]} or {counts[1]} elements along dimension "
                    f"{axis}. The shapes are: rank {rank} {tuple(part['shape'])}, rank {other_rank} "
                    f"{tuple(other_part['shape'])}."
                )
