"""Samples of one device while a job held it, and what is computed over their times.

A sample stands for the time since the one before it, at most for `_STRETCH` periods: what lies in a longer
gap has no data. So means are weighted by time, samples of several resolutions can follow each other, and
the share of the time that had data is known of every figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_STRETCH = 2.5  # periods that a sample may stand for: one lost sample is bridged, two are a gap


@dataclass(frozen=True)
class Series:
    """Values at times (seconds since 1970, ascending) within [start, end), about one a period."""

    start: float
    end: float
    period: float
    times: Floats
    values: Floats
    pauses: tuple[tuple[float, float], ...] = ()  # when its job was suspended: it has no values there

    @cached_property
    def weights(self) -> Floats:
        """The seconds that each sample stands for."""
        if not self.times.size:
            return np.empty(0)
        since = np.diff(self.times, prepend=max(self.start, self.times[0] - self.period))
        longest = _STRETCH * self.period
        return np.where(since > longest, self.period, np.maximum(since, 0.0))

    @property
    def seconds(self) -> float:
        """How long the device could be used: the time it was held, without that of a suspended job."""
        paused = sum(max(0.0, min(to, self.end) - max(begin, self.start)) for begin, to in self.pauses)
        return max(0.0, self.end - self.start - paused)

    @property
    def covered(self) -> float:
        """The seconds that have data."""
        return float(min(self.weights.sum(), self.seconds))

    def within(self, start: float, end: float) -> Series:
        """The part between two times."""
        start, end = max(start, self.start), min(end, self.end)
        inside = (self.times > start) & (self.times <= end)
        end = max(start, end)
        return Series(start, end, self.period, self.times[inside], self.values[inside], self.pauses)

    def without(self, pauses: Iterable[tuple[float, float]]) -> Series:
        """The series without what is in the pauses, which do not overlap: (from, to] each."""
        pauses = tuple(pauses)
        kept = np.ones(self.times.size, bool)
        for begin, to in pauses:
            kept &= (self.times <= begin) | (self.times > to)
        return Series(self.start, self.end, self.period, self.times[kept], self.values[kept], pauses)

    def mean(self) -> float:
        """Weighted by time; NaN without data."""
        total = self.weights.sum()
        return float((self.values * self.weights).sum() / total) if total > 0 else np.nan

    def quantile(self, q: float) -> float:
        """The value that q of the time lies at or below; NaN without data."""
        if not self.values.size:
            return np.nan
        order = np.argsort(self.values, kind="stable")
        upto = np.cumsum(self.weights[order])
        at = int(np.searchsorted(upto, q * upto[-1]))
        return float(self.values[order][min(at, len(order) - 1)])

    def peak(self) -> float:
        """The largest value; NaN without data."""
        return float(self.values.max()) if self.values.size else np.nan

    def low(self) -> float:
        """The smallest value; NaN without data."""
        return float(self.values.min()) if self.values.size else np.nan

    def amount(self) -> float:
        """The integral over the time with data: bytes of a rate in bytes a second; NaN without data."""
        return float((self.values * self.weights).sum()) if self.values.size else np.nan

    def share(self, chosen: npt.NDArray[np.bool_]) -> float:
        """The share of the time with data that the chosen samples stand for; NaN without data."""
        total = self.weights.sum()
        return float(self.weights[chosen].sum() / total) if total > 0 else np.nan

    def swing(self) -> float:
        """The mean step between neighbouring samples: large for a sawtooth; NaN below two samples."""
        return float(np.abs(np.diff(self.values)).mean()) if self.values.size > 1 else np.nan

    def runs_at_most(self, limit: float) -> list[tuple[float, float]]:
        """The unbroken times (from, to) in which no sample is above the limit; a gap in the data ends one."""
        if not self.values.size:
            return []
        low = self.values <= limit
        gap = np.diff(self.times) > _STRETCH * self.period
        begins = np.flatnonzero(np.concatenate(([True], (low[1:] != low[:-1]) | gap)))
        ends = np.append(begins[1:], low.size) - 1
        return [
            (float(self.times[begin] - self.weights[begin]), float(self.times[last]))
            for begin, last in zip(begins, ends, strict=True)
            if low[begin]
        ]

    def longest_at_most(self, limit: float) -> float:
        """The seconds of the longest of those times; NaN without data."""
        if not self.values.size:
            return np.nan
        return max((to - begin for begin, to in self.runs_at_most(limit)), default=0.0)

    def head_at_most(self, limit: float) -> float:
        """The seconds from the start of the data in which no sample is above the limit; NaN without data."""
        if not self.values.size:
            return np.nan
        runs = self.runs_at_most(limit)
        first = self.times[0] - self.weights[0]
        return runs[0][1] - runs[0][0] if runs and runs[0][0] <= first else 0.0

    def tail_at_most(self, limit: float) -> float:
        """The seconds up to the end of the data in which no sample is above the limit; NaN without data."""
        if not self.values.size:
            return np.nan
        runs = self.runs_at_most(limit)
        return runs[-1][1] - runs[-1][0] if runs and runs[-1][1] >= self.times[-1] else 0.0


def thinned(series: Series, points: int) -> tuple[Floats, Floats]:
    """At most about `points` points, and no peak lost: of each stretch its smallest and largest."""
    count = series.times.size
    if count <= points:
        return series.times, series.values
    width = -(-count * 2 // points)
    whole = count // width * width
    blocks = series.values[:whole].reshape(-1, width)
    rows = np.arange(blocks.shape[0]) * width
    chosen = np.concatenate((rows + blocks.argmin(1), rows + blocks.argmax(1), np.arange(whole, count)))
    chosen = np.unique(chosen)
    return series.times[chosen], series.values[chosen]
