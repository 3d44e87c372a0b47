"""Keeps the rollups: once a minute how much of the cluster is in use, by node type, from Slurm's last report
and from the newest batch of each node, and how many jobs wait; the sums of each month.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from peerway_jobs.serve.state import STALE_S, State
from peerway_jobs.store import months, queue_history, utilization

_MONTHS_EVERY_S, _PAST_EVERY_S = 3600.0, 86_400.0
Minute = dict[str, dict[str, float]]  # node type -> figure


class Recorder:
    """Records until it is told to stop."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._summed = self._past = 0.0  # when the months, and the past ones, were last summed

    def work(self, stop: threading.Event, failed: Callable[[str, Exception], None]) -> None:
        """Record each minute until `stop` is set. A failure is passed to `failed`."""
        clock = self._state.monitor.clock
        while not stop.wait(utilization.MINUTE_S - clock() % utilization.MINUTE_S):
            for task, step in (
                ("recording the use of the cluster", self.record),
                ("summing months", lambda: self.sum_months(stop.is_set)),
            ):
                try:
                    if self._state.monitor.jobs.database.leads():  # of servers that share a database, one
                        step()
                except Exception as error:
                    failed(task, error)

    def sum_months(self, is_stopping: Callable[[], bool]) -> None:
        """Once an hour sum the months that are not over, once a day also past ones that have changed."""
        monitor = self._state.monitor
        now = monitor.clock()
        if now - self._summed < _MONTHS_EVERY_S:
            return
        past = now - self._past >= _PAST_EVERY_S
        months.sum_months(monitor.jobs, now, is_stopping, past=past)
        self._summed = now
        self._past = now if past else self._past

    def record(self) -> None:
        """Record this minute."""
        monitor = self._state.monitor
        now, cluster = monitor.clock(), self._state.cluster()
        if minute := minute_of(cluster, now):
            utilization.record(monitor.jobs, now, minute)
        if waiting := waiting_of(cluster, now):
            queue_history.record(monitor.jobs, now, waiting)


def waiting_of(cluster: Mapping[str, Any], now: float) -> dict[str, float]:
    """The jobs that wait in this minute, and the cores and GPUs that they want; empty while Slurm does not
    answer.
    """
    names = {"jobs": "waiting", "cores": "waiting_cores", "gpus": "waiting_gpus"}
    return {name: cluster[of] for name, of in names.items()} if _is_fresh(cluster, now) else {}


def minute_of(cluster: Mapping[str, Any], now: float) -> Minute:
    """The figures of a minute by node type; nodes that are off count nowhere, as on the page.

    What Slurm says counts only while Slurm answers, and what a node measured only while it sends batches.
    """
    is_fresh = _is_fresh(cluster, now)
    minute: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for node in cluster["nodes"]:
        if node["state"] == "off":
            continue
        figures = minute[node["node_type"]]
        figures["nodes"] += 1
        if is_fresh and node["state"] != "unknown":
            for name in ("cores", "gpus", "memory"):
                figures[name] += node[name]
                figures[f"{name}_allocated"] += min(node[f"{name}_busy"], node[name])
        _add_measured(figures, node, node.get("now") or {})
    for figures in minute.values():
        figures["minutes"] = 1
        for name in ("power_minutes", "node_power_minutes"):
            figures[name] = min(1.0, figures[name])
    return {name: dict(figures) for name, figures in minute.items()}


def _is_fresh(cluster: Mapping[str, Any], now: float) -> bool:
    return cluster["at"] is not None and now - cluster["at"] < STALE_S


def _add_measured(figures: dict[str, float], node: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    memory = node["memory"] or now.get("memory_bytes") or 0.0
    for name, size, share in (
        ("cores", node["cores"], now.get("cpu")),
        ("memory", memory, now.get("memory")),
        *(("gpus", 1, use) for _, use in now.get("gpus", ())),
    ):
        if share is not None:
            figures[f"{name}_measured"] += size
            figures[f"{name}_used"] += size * min(max(share, 0.0), 1.0)
    if now.get("watts") is not None:
        figures["power_minutes"] += 1
        figures["watts"] += now["watts"]
    if now.get("node_watts") is not None:
        figures["node_power_minutes"] += 1
        figures["node_watts"] += now["node_watts"]
