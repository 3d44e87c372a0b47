"""Divide a budget of time over what is still to be measured."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

LEAST_S = 2e-3  # of samples for one case
START_S = 2.0  # for a start of the ranks that measures anything
LONGEST_S = 7 * 24 * 3600  # that may be asked for
OVERHEAD = 2.0  # of a case beside its samples, before any was measured: connections, data, warm-up, check
_UNITS = {"s": 1, "m": 60, "h": 3600}

Job = TypeVar("Job")


class TimeBudget:
    """How long each case may sample. Time that one case does not use is left for those after it."""

    def __init__(self, ends: float) -> None:
        self._ends = time.monotonic() + ends - time.time()
        self._sampled = self._took = 0.0

    def over(
        self,
        jobs: Sequence[Job],
        group: Callable[[Job], object],
        case: Callable[[Job], object] = lambda job: job,
    ) -> Iterator[tuple[Job, float]]:
        """Each job, to be done before the next is asked for, with its seconds of samples; 0 when there is no
        time for it.

        Jobs in a row that are alike in `group` share a part of the time, by their number, so that where it
        does not suffice the last groups are not the ones to have nothing. The jobs of the first `case` of
        each group are always done: what was asked for is worth more than the moment at which it ends.
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
        """The seconds that the next of `cases` may sample, out of the remaining time."""
        return max(LEAST_S, remaining_s / cases / self._stretch()) if remaining_s > 0 else 0.0

    def _stretch(self) -> float:
        return max(1.0, self._took / self._sampled) if self._sampled else OVERHEAD


def spread(
    jobs: Iterable[Job], group: Callable[[Job], object], case: Callable[[Job], object] = lambda job: job
) -> Iterator[Job]:
    """The jobs, the cases of each group in an order of which any beginning lies evenly over them: the first,
    the last, the one in the middle, those in the middle of both halves, and so on. What there is no time for
    is then between what was measured, and not the largest sizes.
    """
    for _, alike in groupby(jobs, group):
        for together in _halving([list(several) for _, several in groupby(alike, case)]):
            yield from together


def _halving(parts: Sequence[list[Job]]) -> list[list[Job]]:
    ordered = [*parts[:1], *parts[1:][-1:]]
    between = [(0, len(parts) - 1)]
    for low, high in between:  # which grows meanwhile
        if high - low > 1:
            middle = (low + high) // 2
            ordered.append(parts[middle])
            between += [(low, middle), (middle, high)]
    return ordered


def within(ends: float, part: float) -> float:
    """The end of a part of the time that is left until `ends`; 0 where there is no such end."""
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
