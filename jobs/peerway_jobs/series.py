"""Samples of one device while a job held it, and statistics over their times.

A sample stands for the time since the sample before it, but for at most `STRETCH` periods: a longer gap has
no data. So means are weighted by time, samples of several resolutions can follow one another, and for every
figure the share of the time with data is known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

STRETCH = 2.5  # periods that a sample may stand for: one lost sample is bridged, two are a gap


@dataclass(frozen=True)
class Series:
    """Values at ascending times (seconds since 1970) within [start, end), about one per `period` seconds."""

    start: float
    end: float
    period: float
    times: Floats
    values: Floats
    pauses: tuple[tuple[float, float], ...] = ()  # (from, to] while the job was suspended, without values

    @cached_property
    def weights(self) -> Floats:
        """The number of seconds that each sample stands for."""
        if not self.times.size:
            return np.empty(0)
        since = np.diff(self.times, prepend=max(self.start, self.times[0] - self.period))
        longest = STRETCH * self.period
        return np.where(since > longest, self.period, np.maximum(since, 0.0))

    @property
    def seconds(self) -> float:
        """How long the device could be used (s): the time it was held minus the pauses."""
        paused = sum(max(0.0, min(to, self.end) - max(begin, self.start)) for begin, to in self.pauses)
        return max(0.0, self.end - self.start - paused)

    @property
    def covered(self) -> float:
        """The number of seconds with data."""
        return float(min(self.weights.sum(), self.seconds))

    def within(self, start: float, end: float) -> Series:
        """The part from `start` to `end`."""
        start, end = max(start, self.start), min(end, self.end)
        inside = (self.times > start) & (self.times <= end)
        end = max(start, end)
        return Series(start, end, self.period, self.times[inside], self.values[inside], self.pauses)

    def without(self, pauses: Iterable[tuple[float, float]]) -> Series:
        """The series without the samples in the pauses; these are (from, to] and must not overlap."""
        pauses = tuple(pauses)
        kept = np.ones(self.times.size, bool)
        for begin, to in pauses:
            kept &= (self.times <= begin) | (self.times > to)
        return Series(self.start, self.end, self.period, self.times[kept], self.values[kept], pauses)

    def mean(self) -> float:
        """The mean, weighted by time; NaN without data."""
        total = self.weights.sum()
        return float((self.values * self.weights).sum() / total) if total > 0 else np.nan

    def quantile(self, share: float) -> float:
        """The value that is not exceeded in this share (0 to 1) of the time; NaN without data."""
        if not self.values.size:
            return np.nan
        order = np.argsort(self.values, kind="stable")
        upto = np.cumsum(self.weights[order])
        at = int(np.searchsorted(upto, share * upto[-1]))
        return float(self.values[order][min(at, len(order) - 1)])

    def peak(self) -> float:
        """The largest value; NaN without data."""
        return float(self.values.max()) if self.values.size else np.nan

    def minimum(self) -> float:
        """The smallest value; NaN without data."""
        return float(self.values.min()) if self.values.size else np.nan

    def integral(self) -> float:
        """The integral over the time with data: for a rate in bytes per second, bytes; NaN without data."""
        return float((self.values * self.weights).sum()) if self.values.size else np.nan

    def share(self, chosen: npt.NDArray[np.bool_]) -> float:
        """The share (0 to 1) of the time with data that the chosen samples stand for; NaN without data."""
        total = self.weights.sum()
        return float(self.weights[chosen].sum() / total) if total > 0 else np.nan

    def swing(self) -> float:
        """The mean absolute difference of neighbouring samples: large for a sawtooth; NaN without two."""
        return float(np.abs(np.diff(self.values)).mean()) if self.values.size > 1 else np.nan

    def runs_at_most(self, limit: float) -> list[tuple[float, float]]:
        """The unbroken times (from, to) without a sample above the limit; a gap in the data ends one."""
        if not self.values.size:
            return []
        low = self.values <= limit
        gap = np.diff(self.times) > STRETCH * self.period
        begins = np.flatnonzero(np.concatenate(([True], (low[1:] != low[:-1]) | gap)))
        ends = np.append(begins[1:], low.size) - 1
        return [
            (float(self.times[begin] - self.weights[begin]), float(self.times[last]))
            for begin, last in zip(begins, ends, strict=True)
            if low[begin]
        ]

    def longest_at_most(self, limit: float) -> float:
        """The length (s) of the longest time without a sample above the limit; NaN without data."""
        if not self.values.size:
            return np.nan
        return max((to - begin for begin, to in self.runs_at_most(limit)), default=0.0)

    def head_at_most(self, limit: float) -> float:
        """The length (s) of the unbroken time at the start of the data without a sample above the limit.

        NaN without data.
        """
        if not self.values.size:
            return np.nan
        runs = self.runs_at_most(limit)
        first = self.times[0] - self.weights[0]
        return runs[0][1] - runs[0][0] if runs and runs[0][0] <= first else 0.0

    def tail_at_most(self, limit: float) -> float:
        """The length (s) of the unbroken time at the end of the data without a sample above the limit.

        NaN without data.
        """
        if not self.values.size:
            return np.nan
        runs = self.runs_at_most(limit)
        return runs[-1][1] - runs[-1][0] if runs and runs[-1][1] >= self.times[-1] else 0.0


def thinned(series: Series, points: int) -> tuple[Floats, Floats]:
    """At most about `points` points that keep all peaks: the smallest and largest value of each stretch."""
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
