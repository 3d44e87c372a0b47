"""The server's own health: /healthz for a watchdog, /metrics and /metrics/nodes for a Prometheus."""

from __future__ import annotations

import sqlite3

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from peerway_jobs.serve.job_metrics import AccountMetrics, JobMetrics
from peerway_jobs.serve.node_metrics import ClusterMetrics, NodeMetrics
from peerway_jobs.serve.server_metrics import ServerMetrics
from peerway_jobs.serve.state import State


def router(state: State) -> APIRouter:
    """The three routes."""
    plain = APIRouter(include_in_schema=False)
    common = (ServerMetrics(state), JobMetrics(state), ClusterMetrics(state), ProcessCollector(registry=None))
    of_server, of_admins = _registry(*common), _registry(*common, AccountMetrics(state))
    of_nodes = _registry(NodeMetrics(state))

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
        """The figures; those by account only if the sender is an administrator. The token need not have the
        scope admin, with which Prometheus could change rules.
        """
        viewer = state.access.person(request, "cluster:read")
        return _page(of_admins if viewer.role == "admin" else of_server)

    @plain.get("/metrics/nodes")
    def metrics_of_nodes(request: Request) -> Response:
        state.access.person(request, "cluster:read")
        return _page(of_nodes)

    return plain


def _registry(*collectors: Collector) -> CollectorRegistry:
    registry = CollectorRegistry(auto_describe=False)
    for collector in collectors:
        registry.register(collector)
    return registry


def _page(registry: CollectorRegistry) -> Response:
    text = generate_latest(registry)  # type: ignore[no-untyped-call]
    return Response(text, media_type=CONTENT_TYPE_LATEST)
