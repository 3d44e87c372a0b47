"""Which numbers of a stream have come, as ranges: [[1, 17], [19, 20]]. Streams are long, gaps are few."""

from __future__ import annotations

MOST = 1000  # ranges of a stream: of one with more gaps the oldest will not be filled any more
Ranges = list[list[int]]


def has(ranges: Ranges, number: int) -> bool:
    """Whether the number lies in one of them. The newest come last and are asked for most."""
    return any(first <= number <= last for first, last in reversed(ranges))


def add(ranges: Ranges, number: int) -> bool:
    """Put a number into the ranges, which stay sorted and apart; False where it was there."""
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
