"""The data of a job page's graphs: lines for each GPU and node, strips for each core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from peerway_jobs.measured import Measured
from peerway_jobs.series import Series, thinned
from peerway_jobs.serve.efficiency import NAMES, SET, efficiency, flat, flat_strips

POINTS = 600  # per line
COLUMNS = 240  # per strip
MOST_LINES = 64

# set (also the key of its title in words.py), unit on the axis
PLOTS = [
    ("gpu.utilization", "percent"),
    ("gpu.sm_activity", "percent"),
    ("gpu.memory_used", "bytes"),
    ("gpu.power", "watts"),
    ("step.cpu", "cores"),
    ("step.memory", "bytes"),
    ("step.read", "bytes_s"),
    ("step.written", "bytes_s"),
    ("fabric.bytes", "bytes_s"),
    ("nic.bytes", "bytes_s"),
    ("filesystem.metadata_operations", "per_second"),
]
GRAPH_TITLES = (*(name for name, _ in PLOTS), SET, *NAMES)
DRAWN = (*(name for name, _ in PLOTS), "core.busy")


def plots(measured: Measured) -> dict[str, Any]:
    """All graphs of a run that have data, as values for JSON."""
    drawn = []
    for name, unit in PLOTS:
        devices = measured[name]
        if devices:
            labels = measured.labels(name.partition(".")[0])
            scale = 100.0 if unit == "percent" else 1.0
            several = list(zip(labels, devices, strict=True))[:MOST_LINES]
            lines = [_line(label, each, scale) for label, each in several if each.times.size]
            drawn.append(
                {"set": name, "unit": unit, "lines": lines, "left_out": max(0, len(devices) - MOST_LINES)}
            )
    cores = _strips(measured)
    run = measured.run
    whole = (run.started, run.ended or measured.now) if run.started else None
    drawn = [{**plot, "flat": flat(plot, whole)} for plot in drawn]
    whole_job = efficiency(measured)
    unreadable = measured.unreadable  # known once all was read
    return {
        "span": whole,
        "efficiency": whole_job,
        "plots": drawn,
        "cores": cores and {**cores, "flat": flat_strips(cores)},
        "steps": _steps(measured),
        "unreadable": unreadable,
    }


def _line(label: str, series: Series, scale: float) -> dict[str, Any]:
    times, values = thinned(_with_gaps(series), POINTS)
    shown = np.round(values * scale, 4).astype(object)
    shown[~np.isfinite(values)] = None
    return {"name": label, "x": np.round(times * 1000).astype(np.int64).tolist(), "y": shown.tolist()}


def _with_gaps(series: Series) -> Series:
    """The series with a NaN where data is missing, so that no line is drawn across the gap."""
    gaps = np.flatnonzero(np.diff(series.times) > 2.5 * series.period)
    if not gaps.size or series.times.size > POINTS:
        return series
    times = np.insert(series.times, gaps + 1, series.times[gaps] + series.period)
    return replace(series, times=times, values=np.insert(series.values, gaps + 1, np.nan))


def _strips(measured: Measured) -> dict[str, Any] | None:
    """Each core's busy percentage in columns of time; -1 means no data."""
    devices = measured["core.busy"]
    if not devices:
        return None
    start, end = min(each.start for each in devices), max(each.end for each in devices)
    rows = []
    for series in devices:
        place = np.minimum((series.times - start) / max(end - start, 1) * COLUMNS, COLUMNS - 1).astype(int)
        total = np.bincount(place, series.values, COLUMNS)
        count = np.bincount(place, minlength=COLUMNS)
        mean = np.where(count > 0, total / np.maximum(count, 1), -0.01)
        rows.append(_filled(np.clip(np.round(mean * 100), -1, 100).astype(int), series, end - start).tolist())
    return {"labels": measured.labels("core"), "start": start, "end": end, "rows": rows}


def _filled(row: np.ndarray[Any, np.dtype[np.int64]], series: Series, whole: float) -> Any:
    """Fill columns narrower than a sampling period with the value of the next column that has a sample."""
    wide = int(np.ceil(series.period * COLUMNS / max(whole, 1)))
    for _ in range(min(wide, COLUMNS) - 1):
        empty = np.flatnonzero((row[:-1] < 0) & (row[1:] >= 0))
        row[empty] = row[empty + 1]
    return row


def _steps(measured: Measured) -> list[dict[str, Any]]:
    return [
        {
            "step": part["step"],
            "node": part["node"],
            "start": part["start"] / 1000,
            "end": min(part["end"] / 1000, measured.now),
            "open": bool(part["open"]),
        }
        for part in measured.intervals
        if part["step"] is not None
    ]
