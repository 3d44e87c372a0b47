"""What each node does at this moment, from the newest batches; kept in memory alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from peerway_jobs.batch import Samples
from peerway_jobs.store.samples import Filed, time_ms


@dataclass(frozen=True)
class NodeNow:
    """A node's last batch, in figures. Shares are between 0 and 1; None is no figure."""

    node: str
    seen: float
    cores: int = 0
    cpu: float | None = None
    memory: float | None = None
    gpus: tuple[tuple[str, float | None], ...] = ()  # UUID and utilization
    busy_seconds: float | None = field(default=None, repr=False)


class Live:
    """The newest figures of all nodes."""

    def __init__(self, facts: Callable[[str], dict[str, Any]]) -> None:
        """`facts` are those that a node's agent last sent: an agent sends them seldom."""
        self._facts = facts
        self._places: dict[str, dict[str, int]] = {}  # of a node's GPUs: each keeps its square on the page
        self._nodes: dict[str, NodeNow] = {}
        self._lock = threading.Lock()

    def saw(self, filed: Filed) -> None:
        """Take a batch, unless a newer one of its node came before."""
        batch, seen = filed.batch, time_ms(filed) / 1000
        with self._lock:
            before = self._nodes.get(batch.node)
            if before and before.seen >= seen:
                return
            node = batch.samples.get("node", Samples())
            busy = _first(node, "node_cpu_busy_seconds_total")
            total, free = _first(node, "node_memory_total_bytes"), _first(node, "node_memory_available_bytes")
            cores = len(batch.samples["core"].devices) if "core" in batch.samples else 0
            if batch.facts:
                cores = batch.facts.cpus
                self._places[batch.node] = _places([asdict(gpu) for gpu in batch.facts.gpus])
            elif batch.node not in self._places:
                self._places[batch.node] = _places(self._facts(batch.node).get("gpus", []))
            now = NodeNow(
                batch.node,
                seen,
                cores or (before.cores if before else 0),
                None,
                None if total is None or free is None or not total else 1 - free / total,
                _gpus(batch.samples, self._places[batch.node]),
                busy,
            )
            self._nodes[batch.node] = replace(now, cpu=_busy_share(before, now))

    def nodes(self) -> dict[str, NodeNow]:
        """All nodes that sent anything since the server started."""
        with self._lock:
            return dict(self._nodes)


def _busy_share(before: NodeNow | None, now: NodeNow) -> float | None:
    if before is None or before.busy_seconds is None or now.busy_seconds is None or not now.cores:
        return None
    used = now.busy_seconds - before.busy_seconds
    return min(1.0, used / (now.seen - before.seen) / now.cores) if used >= 0 else None


def _places(gpus: list[dict[str, Any]]) -> dict[str, int]:
    """The place of each GPU among those of its node: by NVML's index, where that is known."""
    ordered = sorted(gpus, key=lambda gpu: (gpu["index"] is None, gpu["index"] or 0, gpu["uuid"]))
    return {gpu["uuid"]: place for place, gpu in enumerate(ordered)}


def _first(samples: Samples, metric: str) -> float | None:
    values: list[Any] = samples.values.get(metric, [])
    return values[0] if values else None


def _gpus(samples: dict[str, Samples], places: dict[str, int]) -> tuple[tuple[str, float | None], ...]:
    """In the order of the node's facts: a batch has them in any, and without one that is lost."""
    part = samples.get("gpu", Samples())
    values = part.values.get("gpu_utilization_ratio", [None] * len(part.devices))
    uses = zip(part.devices, values, strict=True)
    return tuple(sorted(uses, key=lambda use: (places.get(use[0], len(places)), use[0])))
