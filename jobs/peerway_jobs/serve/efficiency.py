"""The first picture of a job page: how much of its GPUs, cores and memory the job used over its time. And
which other graphs are not worth a picture, because nothing in them changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerway_jobs.measured import Measured
from peerway_jobs.series import Floats, Series

SET = "use"
NAMES = ("gpu", "cpu", "memory")  # of its lines, as in words.py
_COLUMNS = 240
_PERIODS = 2  # of samples in a column, so that hardly any is empty
# By how much the values of a graph may differ if it is said to stay the same: in its unit, or as a share of
# the largest value.
_TOLERANCES = {
    "percent": 2.0, "cores": 0.05, "bytes": 64 << 20, "watts": 5.0, "bytes_s": 1e5, "per_second": 1.0,
}  # fmt: skip
_SHARE = 0.02
_LONGEST_GAP = 0.1  # of the job's time: a line with a longer one does not say what happened meanwhile


def efficiency(measured: Measured) -> dict[str, Any] | None:
    """A line each for GPUs, cores and memory, in per cent of what was allocated; None without data.

    A part of the time in which not all nodes were measured has no value for cores and memory.
    """
    run = measured.run
    if not run.started:
        return None
    start, end = run.started, run.ended or measured.now
    sets = (
        ("gpu", measured["gpu.utilization"], 0.0),
        ("cpu", measured["step.cpu"], run.cores),
        ("memory", measured["step.memory"], run.memory),
    )
    period = max((each.period for _, devices, _ in sets for each in devices or ()), default=10.0)
    columns = int(np.clip((end - start) / (_PERIODS * period), 1, _COLUMNS))
    middles = start + (np.arange(columns) + 0.5) * (end - start) / columns
    lines = []
    for name, devices, allocated in sets:
        if not devices or (name != "gpu" and not allocated):
            continue
        rows = np.array([_means(each, start, end, columns) for each in devices])
        share = _mean(rows) if name == "gpu" else rows.sum(axis=0) / allocated
        if np.isnan(share).all():
            continue
        percent = [None if np.isnan(v) else round(min(100.0, float(v) * 100), 2) for v in share]
        lines.append({"name": name, "x": np.round(middles * 1000).astype(np.int64).tolist(), "y": percent})
    return {"set": SET, "unit": "percent", "lines": lines, "left_out": 0, "flat": None} if lines else None


def _means(series: Series, start: float, end: float, columns: int) -> Floats:
    """The mean of the samples in each of equal parts of the time; NaN without one."""
    place = ((series.times - start) / max(end - start, 1) * columns).astype(int)
    place = np.clip(place, 0, columns - 1)
    count = np.bincount(place, minlength=columns)
    total = np.bincount(place, series.values, columns)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _mean(rows: Floats) -> Floats:
    """The mean over the devices that have a value; NaN where none has."""
    known = ~np.isnan(rows)
    total = np.where(known, rows, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def flat(plot: dict[str, Any], span: tuple[float, float] | None) -> float | None:
    """The value at which all lines of a graph stay, without a gap, over the job's time; None otherwise."""
    if span is None or plot["left_out"] or not plot["lines"]:
        return None
    start, end = (time * 1000 for time in span)
    for line in plot["lines"]:
        if None in line["y"] or np.diff([start, *line["x"], end]).max() > _LONGEST_GAP * (end - start):
            return None
    values = [value for line in plot["lines"] for value in line["y"]]
    low, high = min(values), max(values)
    return sum(values) / len(values) if high - low <= max(_TOLERANCES[plot["unit"]], _SHARE * high) else None


def flat_strips(cores: dict[str, Any] | None) -> float | None:
    """The same of the strips of cores, in per cent."""
    values = {value for row in cores["rows"] for value in row} if cores else {-1}
    return None if -1 in values or max(values) - min(values) > _TOLERANCES["percent"] else max(values)
