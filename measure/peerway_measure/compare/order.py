"""Whether two sides were measured in turn. What changes with time (clocks, temperature, other work) is part
of the difference between sides that were measured one after the other, and no test can tell the two apart.
Sides in turn share it. Where modes last longer than a run, runs of one side that follow each other are alike:
so of sides in turn a sample is a turn, the runs of one side up to the next one of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TURNS = 4  # of a side, from which it was measured in turn: as many samples as a test needs at least


@dataclass(frozen=True, slots=True)
class Order:
    """The order in which the runs of both sides were measured, counted from 0 within each side."""

    before: NDArray[Any]
    after: NDArray[Any]

    @property
    def turns(self) -> int:
        """Turns of the side that had fewer."""
        return 1 + min(int(self.before.max()), int(self.after.max()))

    @property
    def in_turn(self) -> bool:
        """Each side had enough turns."""
        return self.turns >= TURNS


def order_of(before: NDArray[Any], after: NDArray[Any]) -> Order | None:
    """Derive the order from the start times of the runs. None where these are not conclusive: one is unknown,
    or all are the same, as those of records that were imported together.
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
    """The places of all runs in the order of time. Those of one second are taken in turn."""
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
