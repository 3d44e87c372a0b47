"""Whether all GPUs of a running job are idle, with the figures behind it.

Whatever is missing makes it "no data": GPUs that no agent attributed to the job, a GPU without samples, a
gap, a damaged file of samples, or a last sample that is not of now. Nothing is assumed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peerway_jobs.monitor import Monitor
from peerway_jobs.series import STRETCH, Series
from peerway_jobs.store.chunk import Points
from peerway_jobs.store.runs import Run

_METRIC = "gpu_utilization_ratio"
_LEAD_S = 600.0  # read before the time in question, so that its beginning is inside


@dataclass(frozen=True)
class Idleness:
    """What the samples of a job's GPUs show. Without data `idle_s` is None and `why` says what is missing."""

    idle_s: float | None
    why: str = ""
    gpus: list[dict[str, Any]] = field(default_factory=list)


def idleness(monitor: Monitor, run: Run, now: float, use: float, within_s: float) -> Idleness:
    """For how long all GPUs of a run have been at or below `use`; at most a little more than `within_s`."""
    if run.suspended or run.state != "RUNNING":
        return Idleness(None, "Slurm has suspended it, and it could not compute in this time")
    if run.component:
        return Idleness(None, "it is a part of a heterogeneous job, whose other parts may compute")
    held = _held(monitor, run)
    devices = {device for _, device in held}
    if len(devices) != int(run.gpus) or not devices:
        return Idleness(None, f"agents report {len(devices)} of its {run.gpus:g} GPUs")
    since = max(run.started or now, now - within_s - _LEAD_S)
    of_node: defaultdict[str, set[str]] = defaultdict(set)
    for node, device in held:
        of_node[node].add(device)
    gpus: list[dict[str, Any]] = []
    for node, names in sorted(of_node.items()):
        start_ms, end_ms = int(since * 1000), int(now * 1000) + 1000
        points_of = monitor.samples.read(node, "gpu", start_ms, end_ms, names, [_METRIC])
        if files := monitor.samples.unreadable(node, start_ms, end_ms):
            return Idleness(None, f"samples of {node} cannot be read: {', '.join(files)}")
        for name in sorted(names):
            gpu = _gpu(node, name, points_of.get((name, _METRIC)), since, now, use)
            if isinstance(gpu, str):
                return Idleness(None, gpu)
            gpus.append(gpu)
    return Idleness(min(gpu["idle_s"] for gpu in gpus), "", gpus)


def _held(monitor: Monitor, run: Run) -> set[tuple[str, str]]:
    """The node and device of each GPU that agents attribute to a run now."""
    parts = [part for part in monitor.jobs.intervals(run) if part["step"] is None and part["open"]]
    return {(part["node"], device) for part in parts for device in part["gpus"]}


def _gpu(
    node: str, name: str, points: Points | None, since: float, now: float, use: float
) -> dict[str, Any] | str:
    """The figures of a GPU, or what is missing."""
    if points is None or not points.times.size:
        return f"no samples of {name} on {node}"
    times, period = points.times / 1000, points.period / 1000
    last = float(times[-1])
    if now - last > STRETCH * period:
        return f"the last sample of {name} on {node} is {now - last:.0f} s old"
    series = Series(since, now, period, times, points.values)
    idle_s = series.tail_at_most(use)
    tail = times > last - idle_s
    if not np.isfinite(points.values[tail]).all():
        return f"a sample of {name} on {node} is no number"
    return {
        "node": node,
        "gpu": name,
        "idle_s": round(idle_s, 1),
        "highest_use": float(points.values[tail].max()) if tail.any() else None,
        "samples": int(tail.sum()),
        "last_sample": last,
        "period_s": period,
    }
