"""Turns samples of one device into a series (counters as rates, without impossible values), and sums
series.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from peerway_jobs import plausible
from peerway_jobs.metrics import Metric
from peerway_jobs.series import Floats, Series
from peerway_jobs.store.chunk import Points

_JITTER = 1.5  # factor by which a busy machine may measure a rate too high

Devices = tuple[Series, ...]


def series_of(metric: Metric, points: Points | None, start: float, end: float) -> Series:
    """The samples of one device while it was held, in seconds since 1970; counters become rates per
    second.
    """
    if points is None:
        return Series(start, end, 10.0, np.empty(0), np.empty(0))
    times, values = points.times / 1000, points.values
    good = can_be_true(metric, values)  # older servers stored what their agents sent, unchecked
    times, values = times[good], values[good]
    if metric.type == "counter":
        times, values = _rates(times, values)
    whole = Series(start, end, points.period / 1000, times, values)
    return whole.within(start, end)


def pauses_of(
    steps: list[tuple[np.ndarray, np.ndarray]], start: float, end: float
) -> tuple[tuple[float, float], ...]:
    """The times (from, to) in which every step of a node that was measured then was suspended.

    A pause lasts from the last sample before the suspension to the first sample after it.
    """
    if not steps:
        return ()
    times, place = np.unique(np.concatenate([each for each, _ in steps]), return_inverse=True)
    share = np.ones(times.size)
    np.minimum.at(share, place, np.concatenate([values for _, values in steps]))
    pauses = []
    begin = None
    for at, (time, suspended) in enumerate(zip(times, share >= 0.5, strict=True)):
        if suspended and begin is None:
            begin = float(times[at - 1]) if at else start
        elif not suspended and begin is not None:
            pauses.append((begin, float(time)))
            begin = None
    return (*pauses, *(((begin, end),) if begin is not None else ()))


def _rates(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The increase per second since the sample before. After a fall the counter has started from zero."""
    steps, seconds = np.diff(values), np.diff(times)
    steps = np.where(steps < 0, values[1:], steps)
    return times[1:], steps / seconds


def uncovered(start: float, end: float, parts: list[tuple[float, float]]) -> float:
    """The number of seconds from `start` to `end` that no part covers."""
    seconds = 0.0
    for first, last in sorted(parts):
        seconds += max(0.0, min(first, end) - start)
        start = max(start, last)
    return seconds + max(0.0, end - start)


def summed(parts: list[Devices]) -> Devices | None:
    """The sum of several sets, device by device; a device that only one set has counts alone."""
    if not parts:
        return None
    return tuple(added(list(each), each[0].start, each[0].end) for each in zip(*parts, strict=True))


def added(several: list[Series], start: float, end: float) -> Series:
    """The sum of series that are sampled at the same times while they exist,
    such as a job's steps on one node.
    """
    several = [each for each in several if each.times.size]
    if len(several) == 1:
        return replace(several[0], start=start, end=end)
    if not several:
        return Series(start, end, 10.0, np.empty(0), np.empty(0))
    times, place = np.unique(np.concatenate([each.times for each in several]), return_inverse=True)
    values = np.zeros(times.size)
    np.add.at(values, place, np.concatenate([each.values for each in several]))
    return Series(start, end, max(each.period for each in several), times, values, several[0].pauses)


def within_node(metric: Metric, values: Floats, cpus: float | None, memory: float | None) -> Floats:
    """Limit the values of one step or core to what its node can have.

    A value slightly above the limit is the clock's rounding and is cut off; a value far above it becomes NaN.
    `cpus` and `memory` (bytes) are None for a node of unknown size.
    """
    if metric.kind == "core":
        most: float | None = 1.0  # a second of CPU time in each second
    elif metric.name.startswith("step_cpu_") and metric.unit == "seconds":
        most = cpus
    else:
        most = memory if metric.name in ("step_memory_bytes", "step_memory_peak_bytes") else None
    if not most:
        return values
    return np.where(values > _JITTER * most, np.nan, np.minimum(values, most))


def can_be_true(metric: Metric, values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """A mask of the stored values that can be true."""
    return (values >= 0) & (values <= plausible.largest(metric))  # NaN fails both
