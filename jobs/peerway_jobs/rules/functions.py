"""The functions of the rules' language: first over the time of each device, then over the devices.

A set of devices (`gpu.utilization`) is a tuple of series. A function over time makes one figure per device of
it; a function over devices makes one figure of those. A device without data has the figure NaN and is left
out. If no device has data, the result is NaN, which the language takes for "no data".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from peerway_jobs.device_series import Devices
from peerway_jobs.series import Floats, Series


def _devices(value: Any) -> Devices:
    if not isinstance(value, tuple) or not all(isinstance(each, Series) for each in value):
        raise TypeError("this needs devices such as gpu.utilization")
    return value


def _figures(value: Any) -> Floats:
    if isinstance(value, (bool, int, float)):
        return np.array([float(value)])
    if not isinstance(value, np.ndarray):
        raise TypeError("this needs one figure a device, as mean(gpu.utilization) gives")
    return value.astype(float)


def _over_time(figure: Callable[[Series], float]) -> Callable[[Any], Floats]:
    return lambda devices: np.array([figure(series) for series in _devices(devices)])


def _over_time_with(figure: Callable[[Series, float], float]) -> Callable[[Any, Any], Floats]:
    return lambda devices, limit: np.array([figure(series, float(limit)) for series in _devices(devices)])


def _over_devices(figure: Callable[[Floats], Any]) -> Callable[[Any], float]:
    def reduced(value: Any) -> float:
        figures = _figures(value)
        known = figures[~np.isnan(figures)]
        return float(figure(known)) if known.size else float("nan")

    return reduced


def _cut(devices: Any, span: Callable[[Series], tuple[float, float]]) -> Devices:
    return tuple(series.within(*span(series)) for series in _devices(devices))


def _coverage(devices: Any) -> float:
    """The share (0 to 1) of the time with data, over all devices."""
    held = sum(series.seconds for series in _devices(devices))
    return sum(series.covered for series in _devices(devices)) / held if held > 0 else float("nan")


def _pick(value: Any, other: Any, where: Callable[[Floats], Any]) -> float:
    """The figure in `value` of the device that `where` chooses by the figures in `other`."""
    figures, others = _figures(value), _figures(other)
    if figures.shape != others.shape:
        raise ValueError("both need the same devices")
    return float(figures[where(others)]) if figures.size and not np.isnan(others).all() else float("nan")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    # over the time of each device
    "mean": _over_time(Series.mean),
    "peak": _over_time(Series.peak),
    "min_over_time": _over_time(Series.minimum),
    "integral": _over_time(Series.integral),
    "swing": _over_time(Series.swing),
    "quantile": _over_time_with(Series.quantile),
    "share_above": _over_time_with(lambda series, limit: series.share(series.values > limit)),
    "share_below": _over_time_with(lambda series, limit: series.share(series.values < limit)),
    "longest_idle": _over_time_with(Series.longest_at_most),
    "idle_from_start": _over_time_with(Series.head_at_most),
    "idle_until_end": _over_time_with(Series.tail_at_most),
    # a part of the time
    "last": lambda devices, seconds: _cut(devices, lambda series: (series.end - seconds, series.end)),
    "first": lambda devices, seconds: _cut(devices, lambda series: (series.start, series.start + seconds)),
    "after": lambda devices, seconds: _cut(devices, lambda series: (series.start + seconds, series.end)),
    # over the devices
    "average": _over_devices(np.mean),
    "highest": _over_devices(np.max),
    "lowest": _over_devices(np.min),
    "total": _over_devices(np.sum),
    "spread": _over_devices(lambda figures: figures.max() - figures.min()),
    "count": _over_devices(np.count_nonzero),
    "any": _over_devices(np.any),
    "all": _over_devices(np.all),
    "at_lowest": lambda value, other: _pick(value, other, np.nanargmin),
    "devices": lambda devices: sum(series.times.size > 0 for series in _devices(devices)),
    "coverage": _coverage,
    # of plain numbers
    "min": min,
    "max": max,
    "abs": abs,
    "rounded": round,
    "ceiling": math.ceil,
    "floor": math.floor,
    "known": lambda *values: next((each for each in values if each is not None), None),
}

TAKES_NONE = frozenset(("known",))
# Old names of these functions -> new ones. Rules may use the old names in this release, with a note; the next
# release refuses them.
RENAMED = {"low": "min_over_time", "amount": "integral", "smaller": "min", "larger": "max", "size": "abs"}
