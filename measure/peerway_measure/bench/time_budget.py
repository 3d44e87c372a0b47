"""Divides a budget of time over the cases that are still to be measured."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

LEAST_S = 2e-3  # the shortest sampling of one case
START_S = 2.0  # the least time in which a start of the ranks measures anything
LONGEST_S = 7 * 24 * 3600  # the longest budget that may be requested
# How many times as long as its samples a case takes, for connections, data, warm-up and check. It is an
# assumption that applies until a case was measured.
OVERHEAD = 2.0
_UNITS = {"s": 1, "m": 60, "h": 3600}

Job = TypeVar("Job")


class TimeBudget:
    """How long each case may sample. Time that one case does not use goes to the cases after it."""

    def __init__(self, ends: float) -> None:
        self._ends = time.monotonic() + ends - time.time()
        self._sampled = self._took = 0.0

    def shares(
        self,
        jobs: Sequence[Job],
        group: Callable[[Job], object],
        case: Callable[[Job], object] = lambda job: job,
    ) -> Iterator[tuple[Job, float]]:
        """Yield each job with the seconds that it may sample, 0 if there is no time left for it. The caller
        does the job before it asks for the next.

        Successive jobs of the same `group` share a part of the time, in proportion to their number. So if the
        time is too short, the last groups get their part too. The jobs of the first `case` of each group are
        always done: the end may be late, but each group has a result.
        """
        remaining = len(jobs)
        for _, alike in groupby(jobs, group):
            members = list(alike)
            now = time.monotonic()
            until = now + (self._ends - now) * len(members) / remaining
            for number, job in enumerate(members):
                start = time.monotonic()
                seconds = self._share(until - start, len(members) - number)
                seconds = max(seconds, LEAST_S) if case(job) == case(members[0]) else seconds
                yield job, seconds
                self._sampled += seconds
                self._took += time.monotonic() - start
            remaining -= len(members)

    def _share(self, remaining_s: float, cases: int) -> float:
        """The seconds that the next one of `cases` cases may sample, out of the remaining time."""
        return max(LEAST_S, remaining_s / cases / self._time_per_sampled()) if remaining_s > 0 else 0.0

    def _time_per_sampled(self) -> float:
        return max(1.0, self._took / self._sampled) if self._sampled else OVERHEAD


def spread(
    jobs: Iterable[Job], group: Callable[[Job], object], case: Callable[[Job], object] = lambda job: job
) -> Iterator[Job]:
    """The jobs, with the cases of each group reordered so that any number of first cases is spread evenly
    over the group.

    The order is: the first, the last, the one in the middle, those in the middle of both halves, and so on.
    If the time is too short, the missing cases then lie between measured ones, instead of all large sizes
    missing.
    """
    for _, alike in groupby(jobs, group):
        for together in _halving([list(several) for _, several in groupby(alike, case)]):
            yield from together


def _halving(parts: Sequence[list[Job]]) -> list[list[Job]]:
    ordered = [*parts[:1], *parts[1:][-1:]]
    between = [(0, len(parts) - 1)]
    for low, high in between:  # the loop appends to `between`
        if high - low > 1:
            middle = (low + high) // 2
            ordered.append(parts[middle])
            between += [(low, middle), (middle, high)]
    return ordered


def within(ends: float, part: float) -> float:
    """The end of a part of the time that is left until `ends`; 0 if `ends` is 0, which stands for no end."""
    return time.time() + (ends - time.time()) * part if ends else 0


def parse_time(text: str) -> float:
    """Read "90", "90s", "5m", "1h30m". Raises ValueError."""
    text = text.strip().lower()
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"'{text}' is not a time; write 90s, 5m or 1h30m")
    seconds = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not 0 < seconds <= LONGEST_S:
        raise ValueError(
            f"'{text}' is out of range: a time is above 0s and at most {LONGEST_S // 3600}h (a week)"
        )
    return seconds
