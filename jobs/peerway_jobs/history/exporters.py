"""What the exporters of a node measured, and to which jobs it belongs.

Prometheus does not know which GPUs a job had: that comes from a label or a metric with the job's number, or
it is clear because the job had all GPUs of the node. Otherwise GPUs stay without a job. In the same way the
figures of the whole node count only for a job that was alone there and has no cgroup of its own.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from peerway_jobs.history.prometheus import Labels, Prometheus, Values
from peerway_jobs.store.runs import Run
from peerway_jobs.untrusted import DEVICE

MIB = 1 << 20
_JOB = re.compile(r"(?:^|/)job_(\d{1,10})$", re.ASCII)
# Metric of an exporter -> ours, and the factor.
_GPU = {
    "DCGM_FI_DEV_GPU_UTIL": ("gpu_utilization_ratio", 0.01),
    "DCGM_FI_DEV_FB_USED": ("gpu_memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_FREE": ("free", MIB),
    "DCGM_FI_DEV_POWER_USAGE": ("gpu_power_watts", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("gpu_temperature_celsius", 1.0),
    "nvidia_gpu_duty_cycle": ("gpu_utilization_ratio", 0.01),
    "nvidia_gpu_memory_used_bytes": ("gpu_memory_used_bytes", 1.0),
    "nvidia_gpu_memory_total_bytes": ("gpu_memory_total_bytes", 1.0),
    "nvidia_gpu_jobId": ("job", 1.0),
    "gpu_gfx_activity": ("gpu_utilization_ratio", 0.01),  # these are of AMD's Device Metrics Exporter
    "gpu_used_vram": ("gpu_memory_used_bytes", MIB),
    "gpu_total_vram": ("gpu_memory_total_bytes", MIB),
    "gpu_package_power": ("gpu_power_watts", 1.0),
    "gpu_junction_temperature": ("gpu_temperature_celsius", 1.0),
}
_CGROUP = {
    "cgroup_cpu_user_seconds": "step_cpu_user_seconds_total",
    "cgroup_cpu_system_seconds": "step_cpu_system_seconds_total",
    "cgroup_cpu_total_seconds": "total",
    "cgroup_memory_rss_bytes": "step_memory_bytes",
}
_HOST_LABELS = ["Hostname", "hostname", "instance"]  # of DCGM's exporter, of AMD's, and Prometheus' own
Figures = dict[str, Values]  # metric -> values


@dataclass
class NodeHistory:
    """What was measured on a node. GPUs are named by UUID, cgroups by the number of their job."""

    node: Figures = field(default_factory=dict)
    gpus: dict[str, Figures] = field(default_factory=dict)
    jobs_of_gpu: dict[str, dict[int, str]] = field(default_factory=dict)  # UUID -> time -> job
    cgroups: dict[str, Figures] = field(default_factory=dict)


def ask(server: Prometheus, node: str, label: str, start: int, end: int, step: int) -> NodeHistory:
    """What the exporters measured on a node. `label` has the node's name; if empty, Hostname, hostname or
    instance. Raises PrometheusFailed.
    """
    history = NodeHistory()
    named = node.replace(".", r"\\.")  # a node's name has no other special character
    where = [f'{each}=~"{named}([.:].*)?"' for each in ([label] if label else _HOST_LABELS)]

    def series(query: str, metrics: Iterable[str]) -> list[tuple[Labels, Values]]:
        names = "|".join(metrics)
        selectors = (query.format(f'{{__name__=~"{names}",{each}}}') for each in where)
        return server.series(" or ".join(selectors), start, end, step)

    busy = 'sum(node_cpu_seconds_total{{mode!~"idle|iowait",{}}})'
    by_label = " or ".join(busy.format(each) for each in where)
    for _, values in server.series(by_label, start, end, step)[:1]:
        history.node["busy"] = values
    for labels, values in series("{}", ("node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes")):
        history.node[labels.get("__name__", "")] = values
    for labels, values in series("{}", _GPU):
        _add_gpu(history, labels, values)
    for labels, values in series("{}", _CGROUP):
        _add_cgroup(history, labels, values)
    for figures in history.gpus.values():
        _complete_gpu(figures)
    for figures in history.cgroups.values():
        _complete_cgroup(figures)
    return history


def _add_gpu(history: NodeHistory, labels: Labels, values: Values) -> None:
    names = (labels.get(each) for each in ("UUID", "uuid", "gpu_uuid", "serial_number"))
    uuid = next(filter(None, names), "")
    divided = labels.get("GPU_I_ID") or labels.get("gpu_compute_partition_type", "").lower() not in (
        "",
        "spx",
    )
    if divided or DEVICE.fullmatch(uuid) is None:
        return  # of a MIG instance or of a partition these metrics do not say what its job had
    name, factor = _GPU[labels["__name__"]]
    jobs = history.jobs_of_gpu.setdefault(uuid, {})
    if name == "job":
        jobs.update({time: f"{value:.0f}" for time, value in values.items() if value > 0})
        return
    if job := labels.get("hpc_job") or labels.get("job_id"):
        jobs.update(dict.fromkeys(values, job))
    figures = history.gpus.setdefault(uuid, {})
    figures.setdefault(name, {}).update({time: value * factor for time, value in values.items()})


def _complete_gpu(figures: Figures) -> None:
    """DCGM reports used and free memory, and the total is their sum."""
    free, used = figures.pop("free", {}), figures.get("gpu_memory_used_bytes", {})
    if free and "gpu_memory_total_bytes" not in figures:
        figures["gpu_memory_total_bytes"] = {
            time: free[time] + used[time] for time in free.keys() & used.keys()
        }


def _add_cgroup(history: NodeHistory, labels: Labels, values: Values) -> None:
    if labels.get("step") or labels.get("task"):
        return  # a part of the job
    match = _JOB.search(labels.get("cgroup", ""))
    job = labels.get("jobid") or (match[1] if match else "")
    if job.isdecimal():
        history.cgroups.setdefault(job, {})[_CGROUP[labels["__name__"]]] = values


def _complete_cgroup(figures: Figures) -> None:
    """One exporter reports the sum of user and system time, which counts as user time."""
    total = figures.pop("total", {})
    if total and "step_cpu_user_seconds_total" not in figures:
        figures["step_cpu_user_seconds_total"] = total
        figures["step_cpu_system_seconds_total"] = dict.fromkeys(total, 0.0)


def gpus_of(history: NodeHistory, run: Run) -> list[str]:
    """The GPUs that a run had on the node; empty if it is not known."""
    per_node = round(run.gpus / max(run.nodes, 1))
    if not per_node:
        return []
    start, end = run.started or 0.0, run.ended or 0.0
    named = [
        uuid
        for uuid, jobs in sorted(history.jobs_of_gpu.items())
        if uuid in history.gpus and any(job == run.job for time, job in jobs.items() if start < time < end)
    ]
    if named:
        return named
    attributed = any(history.jobs_of_gpu.values())
    return sorted(history.gpus) if not attributed and len(history.gpus) == per_node else []


def steps_of(history: NodeHistory, run: Run, others: Sequence[Run]) -> Figures:
    """The CPU time and memory of a run on the node; empty if it is not known. `others` were there, too."""
    if figures := history.cgroups.get(run.job):
        return figures
    start, end = run.started or 0.0, run.ended or 0.0
    if any((each.started or 0.0) < end and (each.ended or end) > start for each in others):
        return {}
    figures = {}
    if busy := history.node.get("busy"):
        figures["step_cpu_user_seconds_total"] = busy
        figures["step_cpu_system_seconds_total"] = dict.fromkeys(busy, 0.0)
    total, free = (history.node.get(f"node_memory_Mem{name}_bytes", {}) for name in ("Total", "Available"))
    if memory := {time: total[time] - free[time] for time in total.keys() & free.keys()}:
        figures["step_memory_bytes"] = memory
    return figures


def by_time(figures: Figures, start: float, end: float) -> dict[int, dict[str, float]]:
    """The figures within a time, by their times."""
    rows: defaultdict[int, dict[str, float]] = defaultdict(dict)
    for name, values in figures.items():
        for time, value in values.items():
            if start <= time <= end:
                rows[time][name] = value
    return rows
