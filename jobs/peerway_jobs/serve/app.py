"""Builds the application: its routes, the headers of every answer, and its background threads."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve import (
    admin_pages,
    api,
    cluster_pages,
    health,
    logins,
    pages,
    statistics_page,
    token_pages,
)
from peerway_jobs.serve.access import Access, Network, Portal
from peerway_jobs.serve.connections import Bounded, Headed, Heads, Proxied
from peerway_jobs.serve.errors import add_errors
from peerway_jobs.serve.ingest import Ingest
from peerway_jobs.serve.live import Live
from peerway_jobs.serve.logins import Logins
from peerway_jobs.serve.oidc import Provider
from peerway_jobs.serve.outward import Outward
from peerway_jobs.serve.people import People
from peerway_jobs.serve.recorder import Recorder
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import LOG, State
from peerway_jobs.serve.tiles import RACKS, rack_pattern
from peerway_jobs.slurm_watch import Watch
from peerway_jobs.store.disk import DiskFailed

HERE = Path(__file__).parent
PLOTLY = Path(str(files("peerway_common"))) / "assets" / "plotly"
# Only our own script files run, whatever a job's name contains. Plotly sets styles of its elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def create_app(
    monitor: Monitor,
    *,
    portal: Portal | None = None,
    provider: Provider | None = None,
    work: bool = True,
    secure: bool = False,
    slurm: bool = False,
    outward: Outward | None = None,
    proxies: Sequence[Network] = (),
    racks: re.Pattern[str] | None = None,
) -> FastAPI:
    """The application of a monitor.

    `work`: also judge and tidy. `secure`: send cookies only over TLS. `slurm`: ask Slurm for jobs and nodes.
    `outward`: send mails and messages, and act. `proxies`: trust X-Forwarded headers of these and of the
    portal. `racks`: the pattern of racks in the names of nodes (tiles.py).
    """
    outward = outward or Outward()
    people, live = People(monitor.jobs), Live(monitor.jobs.facts)
    ingest = Ingest(monitor, live, _report)
    access = Access(monitor, people, portal)
    state = State(monitor, access, people, live, ingest, racks or rack_pattern(RACKS))
    app = FastAPI(
        title="Peerway jobs",
        version="1",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lambda _: _beside(state, work, slurm, outward),
    )
    shown = Pages(state, provider is not None, outward.mail is not None)
    app.state.peerway, app.state.pages, app.state.logins = state, shown, Logins(provider, secure)
    for router in (
        api.ROUTER,
        health.router(state),
        logins.ROUTER,
        *([logins.OF_PROVIDER] if provider else []),
        pages.ROUTER,
        pages.OF_PEOPLE,
        cluster_pages.ROUTER,
        cluster_pages.WALL,
        statistics_page.ROUTER,
        admin_pages.ROUTER,
        token_pages.ROUTER,
    ):
        app.include_router(router)
    add_errors(app, shown, state.access, _report)
    app.add_middleware(Bounded)
    app.add_middleware(Heads)
    app.add_middleware(Proxied, proxies=(*proxies, *(portal.proxies if portal else ())))
    app.add_middleware(Headed, headers=HEADERS, saw=state.requests.saw)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    app.mount("/plotly", StaticFiles(directory=PLOTLY), name="plotly")

    return app


@asynccontextmanager
async def _beside(state: State, work: bool, slurm: bool, outward: Outward) -> AsyncIterator[None]:
    stop = threading.Event()
    writer = asyncio.create_task(state.ingest.write())
    workers = []
    if work:
        for task in (state.monitor.work, Recorder(state).work):
            workers.append(threading.Thread(target=task, args=(stop, _report), daemon=True))
    for target in outward.workers(state.monitor, LOG.warning):
        workers.append(threading.Thread(target=target, args=(stop,), daemon=True))
    watch = Watch(state.monitor.jobs, LOG.warning, _report) if slurm else None
    for worker in workers:
        worker.start()
    if watch:
        watch.start()
    try:
        yield
    finally:
        stop.set()
        writer.cancel()
        with suppress(asyncio.CancelledError):
            await writer
        for worker in workers:
            await asyncio.to_thread(worker.join, 30)
        if watch:
            await asyncio.to_thread(watch.stop)


_reported: dict[str, tuple[str, float]] = {}


def _report(task: str, error: Exception) -> None:
    """Log each new error once per task, and again after an hour, because a full disk fails every try.

    Errors of a disk or a database are logged without a traceback.
    """
    # The text of a DiskFailed contains the free space, which changes each time.
    why, now = error.sqlite_errorname if isinstance(error, DiskFailed) else str(error), time.monotonic()
    before, at = _reported.get(task, ("", 0.0))
    if why != before or now - at > 3600:
        _reported[task] = why, now
        named = "" if isinstance(error, DiskFailed) else f"{type(error).__name__}: "
        trace = None if isinstance(error, (sqlite3.Error, OSError)) else error
        LOG.error("%s failed: %s%s", task, named, error, exc_info=trace)
