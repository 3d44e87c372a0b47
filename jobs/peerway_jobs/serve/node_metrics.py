"""Metrics of each node: what Slurm has allocated of it, and what its agent last measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peerway_jobs.serve.state import STALE_S, State
from peerway_jobs.store.cluster import NODE_STATES, ClusterState, cluster_state

_ALLOCATED = {
    "cores": ("node_cores", "Cores of the node."),
    "cores_busy": ("node_cores_busy", "Cores that Slurm has allocated."),
    "gpus": ("node_gpus", "GPUs of the node."),
    "gpus_busy": ("node_gpus_busy", "GPUs that Slurm has allocated."),
}


class ClusterMetrics(Collector):
    """Sums over all nodes, as the live page shows them."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        cluster = cluster_state(self._state.monitor.jobs.reader)
        if not cluster.at:
            return
        up = [node for node in cluster.nodes if node["state"] != "off"]
        nodes = GaugeMetricFamily("peerway_jobs_cluster_nodes", "Nodes by state.", labels=["state"])
        for state in NODE_STATES:
            nodes.add_metric([state], sum(node["state"] == state for node in cluster.nodes))
        yield nodes
        cores = GaugeMetricFamily("peerway_jobs_cluster_cores", "Cores by state.", labels=["state"])
        for state, count in _cores(up).items():
            cores.add_metric([state], count)
        yield cores
        gpus = GaugeMetricFamily("peerway_jobs_cluster_gpus", "GPUs by state.", labels=["state", "gpu_type"])
        for (state, kind), count in _gpus(up).items():
            gpus.add_metric([state, kind], count)
        yield gpus


def _cores(up: list[dict[str, Any]]) -> dict[str, float]:
    busy = sum(node["cores_busy"] for node in up)
    closed = [node for node in up if node["state"] in ("blocked", "reserved")]
    blocked = sum(node["cores"] - node["cores_busy"] for node in closed)
    return {"busy": busy, "blocked": blocked, "free": sum(node["cores"] for node in up) - busy - blocked}


def _gpus(up: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for node in up:
        if node["gpus"]:
            kind = node["gpu_type"]
            counts["busy", kind] += node["gpus_busy"]
            counts["blocked", kind] += node["gpus_blocked"]
            counts["free", kind] += node["gpus"] - node["gpus_busy"] - node["gpus_blocked"]
    return counts


class NodeMetrics(Collector):
    """A few series for each node, and one for each GPU."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield from _allocated(cluster_state(self._state.monitor.jobs.reader))
        yield from self._measured()

    def _measured(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "peerway_jobs_node_seen_age_seconds", "Since the agent's last batch.", labels=["node"]
        )
        cpu = GaugeMetricFamily(
            "peerway_jobs_node_cpu_ratio", "Share of its cores that work.", labels=["node"]
        )
        memory = GaugeMetricFamily(
            "peerway_jobs_node_memory_ratio", "Share of its memory in use.", labels=["node"]
        )
        gpus = GaugeMetricFamily(
            "peerway_jobs_node_gpu_utilization_ratio", "Use of a GPU.", labels=["node", "gpu"]
        )
        now = self._state.monitor.clock()
        for name, seen in sorted(self._state.live.nodes().items()):
            age.add_metric([name], now - seen.seen)
            if now - seen.seen >= STALE_S:
                continue  # what it measured is no longer so
            for family, value in ((cpu, seen.cpu), (memory, seen.memory)):
                if value is not None:
                    family.add_metric([name], value)
            for gpu, use in seen.gpus:
                if gpu and use is not None:
                    gpus.add_metric([name, gpu], use)
        yield from (age, cpu, memory, gpus)


def _allocated(cluster: ClusterState) -> Iterator[Metric]:
    for key, (name, text) in _ALLOCATED.items():
        family = GaugeMetricFamily(f"peerway_jobs_{name}", text, labels=["node"])
        for node in cluster.nodes:
            family.add_metric([node["name"]], node[key])
        yield family
