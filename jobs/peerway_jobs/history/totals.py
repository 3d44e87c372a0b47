"""Makes measurements of the totals of a job: the same use over its whole time."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from peerway_jobs.batch import Batch, Interval, Samples, encode
from peerway_jobs.hosts import expand_hosts
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Filed

BOOT = "00000000-0000-0000-0000-000000000000"
LEAST_S = 60.0  # a shorter job is too short for any rule
_SAMPLES = 24  # of a job that lasts two hours or longer
# Old samples become means over steps of 5 minutes. Those at the end of a step stay where they are.
_STEP_S = 300
_MOST_STEPS = 6
_INDEX = re.compile(r"[0-9]{1,4}", re.ASCII)


@dataclass(frozen=True)
class GpuTotals:
    """Mean utilization (0 to 1), peak and available memory (bytes) of a GPU; None if it is not known."""

    utilization: float | None
    memory: float | None = None
    memory_total: float | None = None


@dataclass(frozen=True)
class NodeTotals:
    """What a job used of a node: CPU time (s), peak memory (bytes), and its GPUs by their index."""

    cpu_seconds: float | None
    memory: float | None = None
    gpus: Mapping[str, GpuTotals] = field(default_factory=dict)


def batches(run: Run, totals: Mapping[str, NodeTotals]) -> Iterator[Filed]:
    """The measurements of a run, as if agents had sent them. Nodes that the run did not have are left out."""
    assert run.started is not None
    assert run.ended is not None
    if run.ended - run.started < LEAST_S:
        return
    period, times = _times(run.started, run.ended)
    short = {name.partition(".")[0]: name for name in expand_hosts(run.node_list)}
    for name, node in totals.items():
        if (known := short.get(name.partition(".")[0])) is None:
            continue
        gpus = {
            index: f"GPU-history-{run.job}-{run.restart}-{known}-{index}"
            for index in node.gpus
            if _INDEX.fullmatch(index)
        }
        for place, time in enumerate(times):
            yield _batch(run, known, node, gpus, place, time, period)


def _times(start: float, end: float) -> tuple[int, list[float]]:
    """When a job is measured: at its start, at its end, and once in a period (s) in between."""
    steps = min(_MOST_STEPS, max(1, int((end - start) / _SAMPLES / _STEP_S)))
    period = steps * _STEP_S
    first = math.floor(start / period + 1) * period
    return period, [start, *(float(time) for time in range(first, math.ceil(end), period)), end]


def _batch(
    run: Run, name: str, node: NodeTotals, gpus: Mapping[str, str], place: int, time: float, period: int
) -> Filed:
    assert run.started is not None
    assert run.ended is not None
    since, elapsed = time - run.started, run.ended - run.started
    stream = hashlib.sha256(f"totals {run.job} {run.restart} {run.started} {name}".encode()).hexdigest()[:32]
    batch = Batch(name, stream, place + 1, BOOT, round(time * 1000), round(since * 1000))
    slot = int(run.job)
    step: dict[str, float | int] = {}
    if node.cpu_seconds is not None:
        used = node.cpu_seconds * since / elapsed
        step = {"step_cpu_user_seconds_total": used, "step_cpu_system_seconds_total": 0}
    if node.memory is not None:
        step["step_memory_bytes"] = node.memory
    if step:
        batch.samples["step"] = Samples()
        batch.samples["step"].add(str(slot), step)
    for index, device in gpus.items():
        gpu = node.gpus[index]
        figures = {
            "gpu_utilization_ratio": gpu.utilization,
            "gpu_memory_used_bytes": gpu.memory,
            "gpu_memory_total_bytes": gpu.memory_total,
        }
        known = {key: value for key, value in figures.items() if value is not None}
        if known:
            batch.samples.setdefault("gpu", Samples()).add(device, known)
    if place == 0:
        batch.intervals = intervals(run, list(gpus.values()), has_steps=bool(step))
    return Filed(batch, 0, encode(batch), period * 1000)


def intervals(run: Run, gpus: list[str], *, has_steps: bool) -> list[Interval]:
    """A run's allocation on a node, and one step for all that it did there."""
    assert run.started is not None
    assert run.ended is not None
    start_ms, end_ms = round(run.started * 1000), round(run.ended * 1000)
    name = f"history-{run.job}-{run.restart}"
    nodes = max(run.nodes, 1)
    whole = Interval(
        name, int(run.job), start_ms, end_ms, restart=run.restart, user=run.user,
        partition=run.partition, cpus=round(run.cores / nodes), gpus=gpus,
        memory_bytes=round(run.memory / nodes), source="slurm",
    )  # fmt: skip
    if not has_steps:
        return [whole]
    step = Interval(
        f"{name}-step", int(run.job), start_ms, end_ms, step="batch", slot=int(run.job),
        restart=run.restart, source="slurm",
    )  # fmt: skip
    return [whole, step]
