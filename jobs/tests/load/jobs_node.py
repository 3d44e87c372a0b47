"""A busy node with 8 GPUs for load tests: its agent's batches, and a day of it as a server stores it."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

from peerway_jobs.batch import Batch, Facts, Gpu, Interval, Samples
from peerway_jobs.metrics import Metric, of_kind
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.chunk import Points, packed
from peerway_jobs.store.incoming import STRETCH_MS
from peerway_jobs.store.samples import Filed

BOOT = "00000000-0000-4000-8000-000000000000"
CORES, GPUS, STEPS = 64, 8, 4


def cpu_of(pid: int) -> float:
    """CPU seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def batch(node: str, seq: int, wall_ms: int, *, figures: bool = True) -> Batch:
    """A batch of a node with 8 busy GPUs, as its agent sends it every 10 s: all metrics of all devices."""
    stream = f"{hash(node) & 0xFFFFFFFF:032x}"
    if not figures:
        return Batch(node, stream, seq, BOOT, wall_ms, seq * 10_000)
    devices = {
        "node": ["node"],
        "core": [str(n) for n in range(CORES)],
        "gpu": [f"GPU-{node}-{n}" for n in range(GPUS)],
        "nic": ["net:eth0", "ib:mlx5_0:1"],
        "step": [str(n) for n in range(STEPS)],
        "filesystem": ["lustre:scratch"],
    }
    samples = {
        kind: Samples(names, {metric.name: [_figure(metric) for _ in names] for metric in of_kind(kind)})
        for kind, names in devices.items()
    }
    for kind, part, whole in (("gpu", "used", "total"), ("node", "available", "total")):
        values = samples[kind].values  # a part is never more than its whole
        values[f"{kind}_memory_{part}_bytes"] = [
            (each or 0) / 2 for each in values[f"{kind}_memory_{whole}_bytes"]
        ]
    return Batch(node, stream, seq, BOOT, wall_ms, seq * 10_000, samples)


def _figure(metric: Metric) -> float:
    """A random figure that can be true, so that the server keeps it."""
    return round(random.random() * (1 if metric.unit == "ratio" else 100), 3)


def fill(monitor: Monitor, node: str, start: int, *, ended: bool = True) -> None:
    """Store 24 h of a node as sealed chunks, as sealing would make them, and the allocation of job 1
    there.
    """
    end = (start + 86_400) * 1000 if ended else None
    one = batch(node, 1, start * 1000)
    one.intervals = [
        Interval(
            "a",
            1,
            start * 1000,
            end,
            user="admin",
            cpus=CORES,
            cores=list(range(CORES)),
            gpus=one.samples["gpu"].devices,
            memory_bytes=1 << 39,
        ),
        Interval("s", 1, start * 1000, end, step="0", slot=0),
    ]
    one.facts = Facts(
        CORES, 1 << 39, 10_000, "v2", "1", gpus=[Gpu(uuid) for uuid in one.samples["gpu"].devices]
    )
    monitor.jobs.file([Filed(one, 0, b"", 10_000)])
    samples: Any = monitor.samples
    random_of = np.random.default_rng(1)
    for first in range(start * 1000, (start + 86_400) * 1000, STRETCH_MS):
        times = np.arange(first + 10_000, first + STRETCH_MS + 1, 10_000)
        base = samples._files.file(f"day-{time.strftime('%Y-%m-%d', time.gmtime(first / 1000))}")
        rows = []
        for kind, part in one.samples.items():
            for device in part.devices:
                values = {
                    m.name: Points(times, value_of(m.name, times, random_of), 10_000) for m in of_kind(kind)
                }
                rows.append((node, kind, device, int(times[0]), int(times[-1]), packed(values)))
        base.execute("BEGIN")
        base.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", rows)
        base.execute("COMMIT")


def value_of(metric: str, times: Any, random_of: np.random.Generator) -> Any:
    noise = np.round(random_of.random(times.size), 3)
    return times / 1000 + noise if metric.endswith("_total") else noise
