"""The pages of the cluster: what is and was in use, each node, the queue, and a screen for a wall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from peerway_jobs.serve import tiles
from peerway_jobs.serve.charts import Chart, amounts, charts
from peerway_jobs.serve.dependencies import ClusterReader, LoggedIn, Server, Templates, page_link
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.reasons import explained
from peerway_jobs.serve.squares import squares
from peerway_jobs.store.cluster import NODE_STATES
from peerway_jobs.store.queue import Queue, WaitingJob, queue
from peerway_jobs.store.queue_history import QueueHistory, queue_history
from peerway_jobs.store.runs import Run
from peerway_jobs.store.utilization import RANGES, Range, TypeUse, Utilization, utilization

Word = Annotated[str, Query(max_length=64)]
WALL_SHAPE = 2.6  # width of the squares on a wall by their height, which leaves room for what is below
MOST_SHOWN = 200  # waiting jobs on one page
ROUTER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[LoggedIn])
WALL = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@ROUTER.get("/cluster")
def cluster(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: ClusterReader,
    text: Word = "",
    state: Word = "",
    node_type: Annotated[str, Query(max_length=64, alias="type")] = "",
    partition: Word = "",
    rack: Word = "",
    by: tiles.Grouping = "",
    size: tiles.Size = "",
    length: Annotated[Range, Query(alias="range")] = "day",
) -> Response:
    """The cluster now, and its use over a range of time."""
    seen = server.cluster()
    choice = tiles.Choice(text.strip(), state, node_type, partition, rack)
    is_small = len(seen["nodes"]) <= tiles.MOST_FULL
    # A square has no room for jobs, so these are read only for tiles and for a search.
    on = server.running(viewer) if "jobs:read" in viewer.scopes and (is_small or not choice.is_any) else {}
    nodes = tiles.chosen(seen["nodes"], choice, on)
    shown_as = size or ("tiles" if len(nodes) <= tiles.MOST_FULL else "squares")
    most = tiles.MOST_FULL if shown_as == "tiles" else tiles.MOST_SQUARES
    base, now = server.monitor.jobs.reader, server.monitor.clock()
    use, waited = utilization(base, now, length), queue_history(base, now, length)
    use.unreadable += waited.unreadable
    return pages.show(
        request,
        "cluster.html.j2",
        viewer,
        cluster=seen,
        on=on,
        choice=choice,
        groups=tiles.grouped(nodes[:most], by),
        chosen=len(nodes),
        most=most,
        shown_as=shown_as,
        wanted_size=size,
        by=by,
        offered=tiles.choices(seen["nodes"]),
        states=NODE_STATES,
        use=use,
        panels=panels(use, waited),
        length=length,
        ranges=tuple(RANGES),
        squares=squares,
        link=page_link(request),
    )


@ROUTER.get("/cluster/waiting")
def waiting(
    request: Request, server: Server, pages: Templates, viewer: ClusterReader, user: Word = ""
) -> Response:
    """Why jobs wait, and each waiting job that the viewer may see."""
    monitor = server.monitor
    report, now = queue(monitor.jobs.reader), monitor.clock()
    lines = visible(report, viewer, user)
    language = pages.language(request)
    return pages.show(
        request,
        "waiting.html.j2",
        viewer,
        queue=report,
        lines=lines[:MOST_SHOWN],
        left_out=max(0, len(lines) - MOST_SHOWN),
        sees_others=viewer.is_admin or bool(viewer.accounts),
        explained=lambda reason: explained(reason, language),
        waited=lambda since: None if since is None else max(0.0, now - since),
    )


@WALL.get("/wall")
def wall(request: Request, pages: Templates) -> Response:
    """The page for a screen, without any figure: its script fetches them with a session or a token."""
    return pages.show(request, "wall.html.j2", None)


@WALL.get("/wall/now")
def wall_now(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: ClusterReader,
    length: Annotated[Range, Query(alias="range")] = "day",
) -> Response:
    """What the page for a screen shows: no user and no job."""
    base, now = server.monitor.jobs.reader, server.monitor.clock()
    seen, language = server.cluster(), pages.language(request)
    shown = min(len(seen["nodes"]), tiles.MOST_SQUARES)
    return pages.show(
        request,
        "wall_now.html.j2",
        viewer,
        cluster=seen,
        columns=max(8, math.ceil(math.sqrt(WALL_SHAPE * shown))),
        most=tiles.MOST_SQUARES,
        panels=panels(utilization(base, now, length)),
        length=length,
        squares=squares,
        reasons=queue(base).reasons,
        explained=lambda reason: explained(reason, language),
    )


def visible(report: Queue, viewer: Viewer, user: str = "") -> list[WaitingJob]:
    """The lines of jobs that the viewer may see; of one user if `user` is not empty."""
    if "jobs:read" not in viewer.scopes:
        return []
    return [
        line
        for line in report.lines
        if viewer.may_see(Run(line.job, user=line.user, account=line.account)) and user in ("", line.user)
    ]


@dataclass(frozen=True)
class Panel:
    """The graphs of one type of nodes; `node_type` is None for the whole cluster."""

    node_type: str | None
    use: TypeUse
    charts: list[Chart]


def panels(use: Utilization, waited: QueueHistory | None = None) -> list[Panel]:
    """The graphs of the whole cluster and of its queue, then those of each type if there are several."""
    whole = [*charts(use.whole), *(amounts("waiting", waited.curves["jobs"]) if waited else ())]
    types = use.types if len(use.types) > 1 else {}
    every = [(None, use.whole, whole), *((name, each, charts(each)) for name, each in types.items())]
    return [Panel(name, each, drawn) for name, each, drawn in every if drawn]
