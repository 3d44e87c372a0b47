"""The state that all routes share."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from peerway_jobs.hosts import expand_hosts
from peerway_jobs.monitor import Monitor
from peerway_jobs.replay import replayed
from peerway_jobs.rules.load import rules_of
from peerway_jobs.serve.access import Access
from peerway_jobs.serve.ingest import Ingest
from peerway_jobs.serve.live import Live, NodeNow
from peerway_jobs.serve.people import People, Viewer
from peerway_jobs.serve.request_times import RequestTimes
from peerway_jobs.serve.tiles import RACKS, rack_of, rack_pattern
from peerway_jobs.store.cluster import NODE_STATES, cluster_state
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import is_damaged

STALE_S = 120  # after which Slurm's report, or what a node sent, is no longer the present
_MOST_RUNNING = 20_000  # jobs on the cluster's page
LOG = logging.getLogger("peerway_jobs")


@dataclass
class State:
    """The monitor, access control, the people, the nodes' present state, the input from agents, and the
    pattern of racks in the names of nodes.
    """

    monitor: Monitor
    access: Access
    people: People
    live: Live
    ingest: Ingest
    racks: re.Pattern[str] = field(default_factory=lambda: rack_pattern(RACKS))
    requests: RequestTimes = field(default_factory=RequestTimes)

    def cluster(self) -> dict[str, Any]:
        """The cluster now: what Slurm says of it, and what the agents sent."""
        state = cluster_state(self.monitor.jobs.reader)
        cluster: dict[str, Any] = {"at": state.at, "unreadable": state.unreadable, **state.totals}
        now = self.monitor.clock()
        nodes = {node["name"]: node for node in state.nodes}
        for name, seen in self.live.nodes().items():
            if name not in nodes:
                nodes[name] = _unknown_to_slurm(seen)
            node = nodes[name]
            if now - seen.seen < STALE_S:
                node["now"] = {
                    "cpu": seen.cpu,
                    "memory": seen.memory,
                    "gpus": [list(gpu) for gpu in seen.gpus],
                    "memory_bytes": seen.memory_bytes,
                    "watts": seen.watts,
                    "node_watts": seen.node_watts,
                }
        cluster["nodes"] = [nodes[name] for name in sorted(nodes, key=_natural)]
        for node in cluster["nodes"]:
            node["rack"] = rack_of(node["name"], self.racks)
        cluster["counts"] = _counts(cluster["nodes"])
        return cluster

    def running(self, viewer: Viewer) -> dict[str, list[dict[str, Any]]]:
        """The running jobs on each node, as far as the viewer may see them."""
        condition, values = viewer.clause()
        rows = self.monitor.jobs.reader.execute(
            "SELECT job, restart, array, user, node_list FROM jobs WHERE ended IS NULL AND NOT provisional "
            f"AND {condition} AND NOT {is_damaged(JOBS, 'restart', 'array', 'user', 'node_list')} "
            "ORDER BY started LIMIT ?",
            [*values, _MOST_RUNNING],
        )
        jobs: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            for node in expand_hosts(row["node_list"]):
                jobs.setdefault(node, []).append(dict(row))
        return jobs

    def replay(self, text: str, days: float, most: int) -> dict[str, Any]:
        """Judge past jobs by the rules in `text`. Raises BadRules."""
        return replayed(self.monitor, rules_of(text), self.monitor.clock() - days * 86400, most)


def _unknown_to_slurm(seen: NodeNow) -> dict[str, Any]:
    return {
        "name": seen.node,
        "state": "unknown",
        "cores": seen.cores,
        "cores_busy": 0,
        "memory": 0,
        "memory_busy": 0,
        "gpus": len(seen.gpus),
        "gpus_busy": 0,
        "gpus_blocked": 0,
        "gpu_type": seen.gpu_name,
        "node_type": seen.gpu_name,
        "reason": "",
        "partitions": [],
    }


@lru_cache(1 << 14)
def _natural(name: str) -> list[Any]:
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def _counts(nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums over the nodes; cores and GPUs of nodes that are off count neither as free nor as busy."""
    up = [node for node in nodes if node["state"] != "off"]
    cores, busy = sum(n["cores"] for n in up), sum(n["cores_busy"] for n in up)
    open_to_jobs = [n for n in up if n["state"] not in ("blocked", "reserved")]
    gpus, used = sum(n["gpus"] for n in up), sum(n["gpus_busy"] for n in up)
    blocked = sum(n["gpus_blocked"] for n in up)
    return {
        "cores": cores,
        "cores_busy": busy,
        "cores_free": sum(n["cores"] - n["cores_busy"] for n in open_to_jobs),
        "gpus": gpus,
        "gpus_busy": used,
        "gpus_blocked": blocked,
        "gpus_free": gpus - used - blocked,
        "nodes": {state: sum(n["state"] == state for n in nodes) for state in NODE_STATES},
    }
