"""Finds where one path stops being the cheapest and another begins: sizes to measure more closely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from peerway_measure.tune.draft import Point

Costs = dict[str, tuple[float, float]]  # path -> microseconds at one size, and their spread


def sizes_between(by_path: Mapping[str, Sequence[Point]]) -> list[int]:
    """The neighbouring sizes whose cheapest paths differ by more than the spread, and the powers of two
    between them.
    """
    at: dict[int, Costs] = {}
    for path, points in by_path.items():
        for size, us, spread in points:
            at.setdefault(size, {})[path] = (us, spread)
    sizes: set[int] = set()
    for low, high in pairwise(sorted(at)):
        if _change(at[low], at[high]):
            sizes |= {low, high} | {1 << power for power in range(low.bit_length(), (high - 1).bit_length())}
    return sorted(sizes)


def _change(low: Costs, high: Costs) -> bool:
    """Whether the cheapest path of one size is clearly more expensive at the other."""
    before, after = min(low, key=low.__getitem__), min(high, key=high.__getitem__)
    return before != after and (_dearer(after, before, low) or _dearer(before, after, high))


def _dearer(path: str, cheapest: str, costs: Costs) -> bool:
    if path not in costs or cheapest not in costs:
        return True
    (us, spread), (least, least_spread) = costs[path], costs[cheapest]
    return us * (1 - spread) > least * (1 + least_spread)
