"""Describes jobs and their use in few words, and files them as agents' batches, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peerway_jobs.batch import Batch, Facts, Gpu, Interval, Note, Samples, encode
from peerway_jobs.metrics import METRICS
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Filed, Thinning

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor

GIB = 1 << 30
START = 1_790_000_000
PERIOD = 120
BOOT = "00000000-0000-4000-8000-000000000000"

Figure = (
    float | Sequence[float] | Callable[[int, int], float | None]
)  # of a device at a minute; counters as rates


@dataclass
class Job:
    """A job and its figures. Counters are given as rates per second; a list has one figure per device."""

    job: int
    figures: Mapping[str, Figure] = field(default_factory=dict)
    minutes: int = 120
    nodes: int = 1
    cores: int = 8
    gpus: int = 0  # per node
    memory: float = 64 * GIB
    node_cores: int = 64
    node_gpus: int = 0
    node_memory: int = 256 * GIB
    stepless: int = 0  # the number of its last nodes that have no step
    notes: Sequence[Note] = ()
    measured: float = 1.0  # the share of the time, from the beginning, with samples
    slurm: Mapping[str, Any] = field(default_factory=dict)

    def node(self, number: int) -> str:
        return f"n{self.job}-{number}"

    def gpu(self, node: int, number: int) -> str:
        return f"GPU-{self.job}-{node}-{number}"

    def run(self) -> Run:
        values: dict[str, Any] = {
            "user": "alice",
            "account": "phys",
            "name": "job",
            "partition": "gpu" if self.gpus else "cpu",
            "state": "COMPLETED",
            "submitted": START - 60.0,
            "started": float(START),
            "ended": float(START + self.minutes * 60),
            "time_limit": self.minutes * 120.0,
            "nodes": self.nodes,
            "cores": self.cores * self.nodes,
            "gpus": self.gpus * self.nodes,
            "memory": self.memory,
            "node_list": ",".join(self.node(n) for n in range(self.nodes)),
        }
        return Run(str(self.job), **{**values, **self.slurm})

    def batches(self) -> list[Filed]:
        return [
            filed(self._batch(node, minute))
            for node in range(self.nodes)
            for minute in range(0, int(self.minutes * self.measured) + 1, PERIOD // 60)
        ]

    def _batch(self, node: int, minute: int) -> Batch:
        at = (START + minute * 60) * 1000
        batch = Batch(
            self.node(node),
            f"{self.job:08x}{node:024x}",
            minute + 1,
            BOOT,
            at,
            minute * 60_000,
            samples=self._samples(node, minute),
        )
        if minute == 0:
            batch.intervals = self._intervals(node)
            gpus = [Gpu(self.gpu(node, n), "NVIDIA H100", 80 * GIB) for n in range(self.node_gpus)]
            batch.facts = Facts(
                self.node_cores,
                self.node_memory,
                PERIOD * 1000,
                "v2",
                "1",
                gpus=gpus,
                nics=["ib:mlx5_0:1"],
                filesystems=["lustre:scratch"],
            )
            batch.notes = list(self.notes)
        return batch

    def _intervals(self, node: int) -> list[Interval]:
        ends = (START + self.minutes * 60) * 1000
        gpus = [self.gpu(node, n) for n in range(self.gpus)]
        memory = int(self.memory / self.nodes)
        whole = Interval(
            f"a{self.job}",
            self.job,
            START * 1000,
            ends,
            user=self.run().user,
            partition="p",
            cpus=self.cores,
            cores=list(range(self.cores)),
            gpus=gpus,
            memory_bytes=memory,
        )
        if node >= self.nodes - self.stepless:
            return [whole]
        return [whole, Interval(f"s{self.job}", self.job, START * 1000, ends, step="batch", slot=0)]

    def _devices(self, kind: str, node: int) -> list[str]:
        return {
            "gpu": [self.gpu(node, n) for n in range(self.gpus)],
            "core": [str(n) for n in range(self.cores)],
            "step": ["0"],
            "node": ["node"],
            "nic": ["ib:mlx5_0:1"],
            "filesystem": ["lustre:scratch"],
        }[kind]

    def _samples(self, node: int, minute: int) -> dict[str, Samples]:
        found: dict[str, Samples] = {}
        for name, figure in self.figures.items():
            metric = METRICS[name]
            devices = self._devices(metric.kind, node)
            part = found.setdefault(metric.kind, Samples(devices))
            of = range(node * len(devices), (node + 1) * len(devices))
            part.values[name] = [_value(figure, device, minute, metric.type == "counter") for device in of]
        return found


def filed(batch: Batch, shift_ms: int = 0, period_ms: int = PERIOD * 1000) -> Filed:
    return Filed(batch, shift_ms, encode(batch), period_ms)


def _value(figure: Figure, device: int, minute: int, counter: bool) -> float | None:
    if callable(figure):
        return figure(device, minute)
    each = float(figure[device % len(figure)] if isinstance(figure, Sequence) else figure)
    return each * minute * 60 if counter else each


def put(monitor: Monitor, *jobs: Job) -> None:
    """File everything that the agents of these jobs sent, and what Slurm reports of them."""
    batches = [each for job in jobs for each in job.batches()]
    monitor.samples.put(batches)
    monitor.jobs.update([job.run() for job in jobs])
    monitor.jobs.file(batches)
    monitor.samples.tidy((START + 86_400) * 1000, Thinning())
