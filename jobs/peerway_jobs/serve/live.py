"""The present state of each node, from the newest batches; kept in memory only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from peerway_jobs.batch import Samples
from peerway_jobs.store.cluster import MOST_GPUS
from peerway_jobs.store.samples import Filed, time_ms


@dataclass(frozen=True)
class NodeNow:
    """The figures of a node's last batch. Shares are between 0 and 1; None means no figure."""

    node: str
    seen: float
    cores: int = 0
    cpu: float | None = None
    memory: float | None = None
    gpus: tuple[tuple[str, float | None], ...] = ()  # UUID and utilization
    memory_bytes: float | None = None  # that the node has
    watts: float | None = None  # that its GPUs draw, as far as they say
    node_watts: float | None = None  # that the whole node draws
    gpu_name: str = ""
    busy_seconds: float | None = field(default=None, repr=False)


class Live:
    """The newest figures of all nodes."""

    def __init__(self, facts: Callable[[str], dict[str, Any]]) -> None:
        """`facts` returns the properties that a node's agent last sent; agents rarely send them."""
        self._facts = facts
        self._places: dict[str, dict[str, int]] = {}  # node -> UUID -> the GPU's square on the page
        self._parents: dict[str, frozenset[str]] = {}  # GPUs that are divided into MIG instances
        self._gpu_names: dict[str, str] = {}  # node -> the product name of its first GPU
        self._nodes: dict[str, NodeNow] = {}
        self._lock = threading.Lock()

    def saw(self, filed: Filed) -> None:
        """Take a batch, unless a newer one of its node was seen before."""
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
                self._know(batch.node, [asdict(gpu) for gpu in batch.facts.gpus])
            elif batch.node not in self._places:
                self._know(batch.node, self._facts(batch.node).get("gpus", []))
            now = NodeNow(
                batch.node,
                seen,
                cores or (before.cores if before else 0),
                None,
                None if total is None or free is None or not total else 1 - free / total,
                _gpus(batch.samples, self._places[batch.node], self._parents[batch.node]),
                total,
                _sum(batch.samples.get("gpu", Samples()), "gpu_power_watts"),
                _first(node, "node_power_watts"),
                self._gpu_names[batch.node],
                busy,
            )
            self._nodes[batch.node] = replace(now, cpu=_busy_share(before, now))

    def _know(self, node: str, gpus: list[dict[str, Any]]) -> None:
        self._places[node] = _places(gpus)
        self._parents[node] = frozenset(gpu["parent"] for gpu in gpus if gpu["parent"])
        self._gpu_names[node] = gpus[0]["name"] if gpus else ""

    def nodes(self) -> dict[str, NodeNow]:
        """All nodes that have sent a batch since the server started."""
        with self._lock:
            return dict(self._nodes)


def _busy_share(before: NodeNow | None, now: NodeNow) -> float | None:
    if before is None or before.busy_seconds is None or now.busy_seconds is None or not now.cores:
        return None
    used = now.busy_seconds - before.busy_seconds
    return min(1.0, used / (now.seen - before.seen) / now.cores) if used >= 0 else None


def _places(gpus: list[dict[str, Any]]) -> dict[str, int]:
    """The place of each GPU of a node on the page.

    The place is the GPU's index, which leaves the place of a lost GPU free. MIG instances have no index: if
    there are any, all devices are numbered in order, and instances take the place of the GPU that they
    divide.
    """
    parents = {gpu["parent"] for gpu in gpus}
    index_of = {gpu["uuid"]: gpu["index"] for gpu in gpus}
    devices = [gpu for gpu in gpus if gpu["uuid"] not in parents]
    indices = [gpu["index"] for gpu in devices]
    if None not in indices and len({*indices}) == len(indices) and max(indices, default=0) < MOST_GPUS:
        return {gpu["uuid"]: gpu["index"] for gpu in devices}

    def order(gpu: dict[str, Any]) -> tuple[bool, int, str]:
        index = index_of.get(gpu["parent"]) if gpu["parent"] else gpu["index"]
        return index is None, index or 0, gpu["uuid"]

    return {gpu["uuid"]: place for place, gpu in enumerate(sorted(devices, key=order))}


def _first(samples: Samples, metric: str) -> float | None:
    values: list[Any] = samples.values.get(metric, [])
    return values[0] if values else None


def _sum(samples: Samples, metric: str) -> float | None:
    values = [value for value in samples.values.get(metric, []) if value is not None]
    return float(sum(values)) if values else None


def _gpus(
    samples: dict[str, Samples], places: dict[str, int], parents: frozenset[str]
) -> tuple[tuple[str, float | None], ...]:
    """The GPUs by place. A GPU that the batch lacks has no utilization, and a place without a GPU has no
    name.

    Devices that are not in the node's facts follow at the end.
    """
    part = samples.get("gpu", Samples())
    values = part.values.get("gpu_utilization_ratio", [None] * len(part.devices))
    uses = {uuid: use for uuid, use in zip(part.devices, values, strict=True) if uuid not in parents}
    if not uses:
        return ()
    gpus: list[tuple[str, float | None]] = [("", None)] * (max(places.values(), default=-1) + 1)
    for uuid, place in places.items():
        gpus[place] = (uuid, uses.pop(uuid, None))
    return (*gpus, *sorted(uses.items()))
