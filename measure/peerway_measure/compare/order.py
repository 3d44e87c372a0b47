"""Finds out whether two sides were measured in turn.

If one side was measured after the other, changes with time (clocks, temperature, other programs) are part of
the difference, and no test can separate them from it. Sides in turn are affected alike.

A state of the machine can last longer than a run, so that consecutive runs of one side are alike. So the
samples of sides in turn are turns: a turn is all runs of one side until the next run of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TURNS = 4  # the fewest turns of a side that was measured in turn: as many samples as a test needs at least


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which the runs of both sides were measured, counted from 0 within each side."""

    before: NDArray[Any]
    after: NDArray[Any]

    @property
    def turns(self) -> int:
        """The number of turns of the side that has fewer."""
        return 1 + min(int(self.before.max()), int(self.after.max()))

    @property
    def in_turn(self) -> bool:
        """Whether each side had enough turns."""
        return self.turns >= TURNS


def order_of(before: NDArray[Any], after: NDArray[Any]) -> Order | None:
    """Derive the order from the start times of the runs. None if they are not conclusive: a time is unknown,
    or all are equal, as for records that were imported together.
    """
    times = np.concatenate([before, after])
    if not np.isfinite(times).all() or times.min() == times.max():
        return None
    of_after = np.arange(len(times)) >= len(before)
    turns = [np.zeros(len(before), np.int64), np.zeros(len(after), np.int64)]
    last, count = None, [-1, -1]
    for place in _in_time(times, of_after):
        side = int(of_after[place])
        if side != last:
            last = side
            count[side] += 1
        turns[side][place - side * len(before)] = count[side]
    return Order(*turns)


def _in_time(times: NDArray[Any], of_after: NDArray[Any]) -> list[int]:
    """The indices of all runs in the order of time. Runs that began in the same second alternate between the
    sides.
    """
    ordered: list[int] = []
    for _, same in groupby(np.argsort(times, kind="stable").tolist(), key=times.__getitem__):
        waiting: list[list[int]] = [[], []]
        for place in same:
            waiting[int(of_after[place])].append(place)
        side = int(not of_after[ordered[-1]]) if ordered else 0
        while waiting[0] or waiting[1]:
            side = side if waiting[side] else 1 - side
            ordered.append(waiting[side].pop(0))
            side = 1 - side
    return ordered


def by_turn(values: NDArray[Any], turns: NDArray[Any]) -> NDArray[Any]:
    """The median of the runs of each turn."""
    if len(values) == int(turns.max()) + 1:
        return values
    return np.array([np.median(values[turns == turn]) for turn in range(int(turns.max()) + 1)])
