"""Computes the hours and efficiencies of a run, as docs/jobs/definitions.md defines them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from peerway_jobs.measured import Measured
from peerway_jobs.rules.former import former_part
from peerway_jobs.series import Series

HOUR = 3600.0
# The sets that they are computed from.
OF_HOURS = ("step.cpu", "gpu.utilization", "step.memory", "step.memory_limit", "step.memory_peak")


@dataclass(frozen=True)
class Hours:
    """What a run had, used and left idle. None means no data. Efficiencies and coverages are from 0 to 1."""

    core_hours: float
    gpu_hours: float
    idle_core_hours: float
    idle_gpu_hours: float
    cpu_efficiency: float | None
    gpu_efficiency: float | None
    memory_efficiency: float | None
    cpu_coverage: float
    gpu_coverage: float | None


def hours(measured: Measured, idle: float, window: float) -> Hours:
    """The hours and efficiencies of a run.

    A GPU is idle while its utilization is at most `idle` for at least `window` s.
    """
    run = measured.run
    elapsed = run.elapsed(measured.now)
    cpu, gpu = measured["step.cpu"], measured["gpu.utilization"]
    former = former_part(measured)
    core_seconds = run.cores * elapsed + former.core_seconds
    gpu_seconds = run.gpus * elapsed + former.gpu_seconds
    if former.node_seconds:  # it held its nodes for different times
        cpu_efficiency = _share(_sum(cpu, lambda each: each.mean() * (each.end - each.start)), core_seconds)
    else:
        cpu_efficiency = _share(_sum(cpu, Series.mean), run.cores)
    cpu_coverage = _coverage(cpu, elapsed * max(run.nodes, 1) + former.node_seconds)
    core_hours = core_seconds / HOUR
    return Hours(
        core_hours=core_hours,
        gpu_hours=gpu_seconds / HOUR,
        # Only time with data counts as idle. Measured efficiency may exceed 1, but idle time is never
        # negative.
        idle_core_hours=core_hours * cpu_coverage * max(0.0, 1 - cpu_efficiency)
        if cpu_efficiency is not None
        else 0,
        idle_gpu_hours=idle_seconds(gpu or (), idle, window) / HOUR,
        cpu_efficiency=cpu_efficiency,
        gpu_efficiency=_mean(gpu),
        memory_efficiency=_share(memory_peak(measured), run.memory + former.memory),
        cpu_coverage=cpu_coverage,
        gpu_coverage=_coverage(gpu, gpu_seconds) if gpu_seconds else None,
    )


def idle_seconds(gpus: tuple[Series, ...], idle: float, window: float) -> float:
    """The idle seconds of all GPUs: unbroken times of at least `window` s with a utilization of at most
    `idle`.
    """
    runs = (run for series in gpus for run in series.runs_at_most(idle))
    return sum(to - start for start, to in runs if to - start >= window)


def memory_peak(measured: Measured) -> float | None:
    """The peak memory of a run in bytes, summed over its nodes; None if nobody knows it.

    Samples may miss the peak of a short job. Slurm's accounts have the peak of its tasks, and a job that was
    killed for lack of memory used all that it was allowed.
    """
    run = measured.run
    peaks = [series.peak() for series in measured["step.memory"] or () if series.times.size]
    least = [run.max_rss] if run.max_rss else []
    if run.out_of_memory or run.state == "OUT_OF_MEMORY":
        limits = [series.minimum() for series in measured["step.memory_limit"] or () if series.times.size]
        seen = [series.peak() for series in measured["step.memory_peak"] or () if series.times.size]
        allowed = min([*limits, *([run.memory / max(run.nodes, 1)] if run.memory else [])], default=0.0)
        least += [allowed, *seen]
    if not peaks and not least:
        return None
    highest = max(peaks, default=0.0)
    return float(sum(peaks) - highest + max([highest, *least]))


def _sum(of: tuple[Series, ...] | None, figure: Callable[[Series], float]) -> float | None:
    values = [figure(series) for series in of or () if series.times.size]
    return float(sum(values)) if values else None


def _share(used: float | None, had: float) -> float | None:
    """The share of what the run had that it used, at most 1: use beyond its allocation does not count."""
    return min(1.0, used / had) if used is not None and had else None


def _mean(of: tuple[Series, ...] | None) -> float | None:
    values = [series.mean() for series in of or () if series.times.size]
    return float(np.mean(values)) if values else None


def _coverage(of: tuple[Series, ...] | None, expected: float) -> float:
    return min(1.0, sum(series.covered for series in of or ()) / expected) if expected > 0 else 0.0
