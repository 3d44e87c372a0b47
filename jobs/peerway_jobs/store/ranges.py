"""The batch numbers of a stream that have arrived, as ranges: [[1, 17], [19, 20]]. Gaps are few."""

from __future__ import annotations

MOST = 1000  # ranges of a stream; with more gaps, the oldest gap counts as filled
Ranges = list[list[int]]


def has(ranges: Ranges, number: int) -> bool:
    """Whether a range contains the number. The search begins at the end, where most numbers are."""
    return any(first <= number <= last for first, last in reversed(ranges))


def add(ranges: Ranges, number: int) -> bool:
    """Add a number; the ranges stay sorted and disjoint. Returns False if it was there already."""
    at = len(ranges)
    while at and ranges[at - 1][0] > number:
        at -= 1
    if at and ranges[at - 1][1] >= number:
        return False
    ranges.insert(at, [number, number])
    for place in (at, at - 1):
        if 0 <= place < len(ranges) - 1 and ranges[place][1] + 1 == ranges[place + 1][0]:
            ranges[place][1] = ranges.pop(place + 1)[1]
    while len(ranges) > MOST:
        ranges[0][1] = ranges.pop(1)[1]
    return True
