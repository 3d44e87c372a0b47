"""The server's own health: /healthz for a watchdog, /metrics for a Prometheus."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from peerway_jobs.serve.state import State

_COUNTS = {
    "jobs": ("Runs that are kept.", "SELECT count(*) FROM jobs WHERE NOT provisional"),
    "jobs_not_judged": ("Ended runs without a verdict.", "SELECT count(*) FROM jobs WHERE ended IS NOT NULL "
                        "AND judged <= 0 AND NOT provisional"),
    "jobs_unconfirmed": ("Runs that Slurm has not confirmed.", "SELECT count(*) FROM jobs WHERE provisional"),
    "alarms": ("Alarms about agents.", "SELECT count(*) FROM alarms"),
    "nodes": ("Nodes whose agents have told what they are.", "SELECT count(*) FROM nodes"),
}  # fmt: skip


class Figures(Collector):
    """The server's own metrics, read on each scrape."""

    def __init__(self, state: State) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        ingest, monitor = self._state.ingest, self._state.monitor
        for name, text, value in (
            ("batches_taken", "Batches of agents that were written.", ingest.taken),
            ("batches_refused", "POSTs of agents that were refused.", ingest.refused),
        ):
            yield CounterMetricFamily(f"peerway_jobs_{name}", text, value)
        yield GaugeMetricFamily(
            "peerway_jobs_posts_waiting", "POSTs that wait to be written.", ingest.waiting
        )
        for name, (text, query) in _COUNTS.items():
            count = monitor.jobs.reader.execute(query).fetchone()[0]
            yield GaugeMetricFamily(f"peerway_jobs_{name}", text, count)
        if answered := monitor.jobs.slurm_answered:
            age = monitor.clock() - answered
            yield GaugeMetricFamily("peerway_jobs_slurm_age_seconds", "Since squeue last answered.", age)


def router(state: State) -> APIRouter:
    """The two routes."""
    plain = APIRouter(include_in_schema=False)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures(state))

    @plain.get("/healthz")
    def health() -> Response:
        """Whether the server answers, can read its database and keeps up; no more, because anybody may
        ask.
        """
        try:
            state.monitor.jobs.reader.execute("SELECT 1 FROM jobs LIMIT 1").fetchone()
        except sqlite3.Error:
            return JSONResponse({"status": "the database cannot be read"}, 503)
        if state.ingest.is_full:
            return JSONResponse({"status": "batches wait to be written"}, 503)
        return JSONResponse({"status": "ok"})

    @plain.get("/metrics")
    def metrics(request: Request) -> Response:
        state.access.person(request, "cluster:read")
        text = generate_latest(registry)  # type: ignore[no-untyped-call]
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    return plain
