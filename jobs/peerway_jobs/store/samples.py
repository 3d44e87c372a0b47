"""The interface of the stores of samples, and what each store must guarantee.

A sample is (node, kind, device, metric, time, value). It names no job: intervals say who had a device when,
and can be corrected later. Storing the same sample twice has no effect, and samples may arrive late.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from peerway_jobs.batch import Batch
from peerway_jobs.metrics import KINDS
from peerway_jobs.store.chunk import Points
from peerway_jobs.store.sample_damage import SampleDamage

DAY_MS = 86_400_000
Key = tuple[str, str]  # device, metric


class StoreFailed(OSError):
    """The store cannot store or return samples now, for any job: its database is unavailable, for example."""


@dataclass(frozen=True)
class Filed:
    """A batch, the correction of its node's clock (ms), and the bytes in which it arrived."""

    batch: Batch
    shift_ms: int
    payload: bytes
    period_ms: int
    left_out: tuple[str, ...] = ()  # why parts of it were left out (credible.py)


@dataclass(frozen=True)
class Thinning:
    """How long samples are kept unchanged, how long as means (days), and the means' step (ms)."""

    raw_days: int = 30
    thin_days: int = 365
    thin_ms: int = 300_000


class Samples(ABC):
    """The samples of all nodes."""

    reads_together = False  # whether `read_node` costs less than `read` for each kind

    @abstractmethod
    def put(self, batches: Sequence[Filed]) -> None:
        """Store batches; when this returns, they survive the end of this process and of the machine."""

    @abstractmethod
    def read(
        self,
        node: str,
        kind: str,
        start_ms: int,
        end_ms: int,
        devices: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
    ) -> dict[Key, Points]:
        """The samples of a node's devices of one kind within (start, end]; None means all devices or
        metrics.
        """

    def read_node(
        self, node: str, start_ms: int, end_ms: int, metrics: Iterable[str] | None = None
    ) -> dict[str, dict[Key, Points]]:
        """The samples of all devices of a node within (start, end], by kind; None means all metrics."""
        only = None if metrics is None else frozenset(metrics)
        return {kind: self.read(node, kind, start_ms, end_ms, None, only) for kind in KINDS}

    @abstractmethod
    def tidy(self, now_ms: int, thinning: Thinning) -> None:
        """Compress what is complete, thin old samples, drop older ones; safe to interrupt at any time."""

    @abstractmethod
    def damage(self) -> list[SampleDamage]:
        """What could not be read of it, since this server started."""

    def unreadable(self, node: str, start_ms: int, end_ms: int) -> list[str]:
        """Which files may have more of a node's samples of that time than can be read."""
        return sorted({each.file for each in self.damage() if each.concerns(node, start_ms, end_ms)})

    @abstractmethod
    def close(self) -> None:
        """Close files and connections."""


def columns(filed: Filed) -> Iterable[tuple[str, str, str, float]]:
    """Yield (kind, device, metric, value) for all samples of a batch."""
    for kind, part in filed.batch.samples.items():
        for metric, values in part.values.items():
            for device, value in zip(part.devices, values, strict=True):
                if value is not None:
                    yield kind, device, metric, float(value)


def time_ms(filed: Filed) -> int:
    """When the batch was made (ms since 1970), by the server's clock."""
    return filed.batch.wall_ms + filed.shift_ms


def thinned(metric: str, points: Points, step_ms: int) -> Points:
    """Means over steps of time; for a counter the last value of each step, so
    that its differences stay exact.
    """
    if not points.times.size:
        return points
    slots = -(-points.times // step_ms)  # a sample stands for the time before it
    begins = np.flatnonzero(np.concatenate(([True], slots[1:] != slots[:-1])))
    ends = np.append(begins[1:], slots.size)
    if metric.endswith("_total"):  # a counter; a newer version may have stored one that is not in METRICS
        values = points.values[ends - 1]
        times = points.times[ends - 1]  # the sample's own time, so that no rate changes
    else:
        values = np.add.reduceat(points.values, begins) / (ends - begins)
        times = slots[begins] * step_ms
    return Points(times, values, max(step_ms, points.period))
