"""The REST API: the data of the pages as JSON. /api/v1/openapi.json describes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field

from peerway_jobs.frames import MOST_BODY
from peerway_jobs.rules.load import BadRules, rules_of
from peerway_jobs.serve import answers, cluster_answers
from peerway_jobs.serve.cluster_pages import visible
from peerway_jobs.serve.dependencies import (
    Administrator,
    AgentNode,
    Before,
    ClusterReader,
    JobId,
    Reader,
    Restart,
    Server,
    agent_node,
    older_page,
    server_state,
)
from peerway_jobs.serve.ingest import Refused
from peerway_jobs.serve.people import MOST_DAYS, Viewer
from peerway_jobs.serve.series_data import DRAWN, plots
from peerway_jobs.serve.state import State
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.audit import entries
from peerway_jobs.store.lists import MOST, Filter, Order, Place, SumOrder, listed, sums
from peerway_jobs.store.months import YEAR_S, Month, growth, month_of
from peerway_jobs.store.pending import is_final
from peerway_jobs.store.queue import queue
from peerway_jobs.store.queue_history import queue_history
from peerway_jobs.store.runs import Run
from peerway_jobs.store.utilization import Range, utilization
from peerway_jobs.verdicts import read_verdict

Short = Annotated[str, Query(max_length=64)]
ROUTER = APIRouter(prefix="/api/v1", responses=answers.errors(401, 403, 413, 422, 503))


class TokenRequest(BaseModel):
    """A request for a token."""

    scopes: list[Literal["jobs:read", "cluster:read", "admin"]] = Field(min_length=1, max_length=3)
    days: float = Field(90, gt=0, le=MOST_DAYS)


class RulesDraft(BaseModel):
    """The text of a file of rules."""

    text: str = Field(max_length=1 << 20)


class RulesRequest(RulesDraft):
    """Rules to try on past jobs."""

    since_days: float = Field(7, gt=0, le=366)
    most: int = Field(200, ge=1, le=5000)


# -- agents


class PlainRoute(APIRoute):
    """A route that only calls its function with the request. What FastAPI does otherwise, with none of it
    needed here, takes as much CPU time as the check of a batch.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function itself."""
        return self.endpoint


async def batches(request: Request) -> Response:
    """Accept the batches of an agent (docs: How the jobs monitor is built)."""
    server = await server_state(request)
    node = await agent_node(request, server)
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > MOST_BODY:
        return JSONResponse({"error": f"a body has a length of at most {MOST_BODY:,} bytes"}, 413)
    try:
        sent = request.headers.get("peerway-sent", "")
        return JSONResponse(await server.ingest.post(node, await request.body(), sent))
    except Refused as refused:
        return JSONResponse(refused.body(), refused.status, refused.headers)


ROUTER.add_api_route(
    "/agent/batches",
    batches,
    methods=["POST"],
    route_class_override=PlainRoute,
    tags=["agents"],
    response_model=answers.Acknowledged,
    responses=answers.errors(400, 413, 422, 429, 503, model=answers.RefusedBatch),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/x-peerway-batches": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)


@ROUTER.get(
    "/agent/jobs/{job}", tags=["agents"], response_model=answers.JobOfNode, responses=answers.errors(404)
)
def of_node(server: Server, node: AgentNode, job: JobId) -> Any:
    """For an epilog: a job that was on the node of the agent's token, with its verdict and its nodes."""
    store = server.monitor.jobs
    run = store.run(job)
    nodes = sorted({part["node"] for part in store.intervals(run)}) if run else []
    if run is None or node not in nodes:
        raise HTTPException(404, f"there is no job {job}, or it was not on {node}")
    return {**_with_verdict(server, run), "script": "", "on": nodes}


# -- jobs


@ROUTER.get("/jobs", tags=["jobs"], response_model=list[answers.RunTold])
def jobs(
    request: Request,
    response: Response,
    server: Server,
    viewer: Reader,
    user: Short = "",
    account: Short = "",
    project: Short = "",
    partition: Short = "",
    state: Literal["", "running", "finished"] = "",
    tag: Short = "",
    text: Short = "",
    verdict: Literal["", "inefficient", "efficient", "unremarkable", "no data", "short", "waiting"] = "",
    since: Annotated[float, Query(ge=0, le=1e11, description="Jobs that began since.")] = 0,
    ran_since: Annotated[float, Query(ge=0, le=1e11, description="Jobs that ended since, or go on.")] = 0,
    before: Before = "",
    until: Annotated[float, Query(ge=0, le=1e11, description="Jobs that began before.")] = 0,
    order: Order = "started",
    most: Annotated[int, Query(ge=1, le=MOST)] = 50,
) -> Any:
    """The jobs that you may see, the newest first. If there is another page,
    the header Link has its address (RFC 8288: rel="next").
    """
    wanted = Filter(user, account, project, partition, state, verdict, tag, since, text, ran_since, until)
    place = Place.parse(before) if before else None
    runs, following = listed(
        server.monitor.jobs.reader, viewer.clause(), wanted, most=most, before=place, order=order
    )
    if following:
        response.headers["Link"] = f'<{older_page(request, following)}>; rel="next"'
    return [_as_listed(run) for run in runs]


@ROUTER.get("/jobs/{job}", tags=["jobs"], response_model=answers.JobTold, responses=answers.errors(404))
def job(server: Server, viewer: Reader, job: JobId, restart: Restart = None) -> Any:
    """A job with its verdict and the evidence for it; its script only for its owner and administrators."""
    run = _run_for(server, viewer, job, restart)
    script = run.script if viewer.may_read_script(run) else ""
    return {**_with_verdict(server, run), "script": script}


@ROUTER.get("/jobs/{job}/series", tags=["jobs"], response_model=answers.Graphs, responses=answers.errors(404))
def series(server: Server, viewer: Reader, job: JobId, restart: Restart = None) -> Response:
    """The data of the job's graphs."""
    run = _run_for(server, viewer, job, restart)
    drawn = plots(server.monitor.measured(run, DRAWN))
    text = json.dumps(drawn, separators=(",", ":"), allow_nan=False)
    return Response(text, media_type="application/json")


def _run_for(server: State, viewer: Viewer, job: str, restart: int | None) -> Run:
    run = server.monitor.jobs.run(job, restart)
    if run is None or not viewer.may_see(run):  # the same answer in both cases, so that ids cannot be guessed
        raise HTTPException(404, f"there is no job {job}, or it is not yours")
    return run


def _with_verdict(server: State, run: Run) -> dict[str, Any]:
    store = server.monitor.jobs
    verdict, unreadable = read_verdict(store, run)
    unreadable = [*store.unreadable(run), *unreadable]
    return {**_as_listed(run), "unreadable": unreadable, "verdict": verdict, "final": is_final(store, run)}


def _as_listed(run: Run) -> dict[str, Any]:
    columns = asdict(run)
    columns.pop("script")
    return columns


# -- the cluster, sums


@ROUTER.get(
    "/cluster",
    tags=["cluster"],
    response_model=cluster_answers.Cluster,
    response_model_exclude_unset=True,
)
def cluster(server: Server, _viewer: ClusterReader) -> Any:
    """The cluster now."""
    return server.cluster()


@ROUTER.get("/cluster/use", tags=["cluster"], response_model=cluster_answers.ClusterUse)
def cluster_use(
    server: Server, _viewer: ClusterReader, length: Annotated[Range, Query(alias="range")] = "day"
) -> Any:
    """How much of the CPUs, GPUs, memory and power was in use, by node type, and how much waited."""
    base, now = server.monitor.jobs.reader, server.monitor.clock()
    use, waited = utilization(base, now, length), queue_history(base, now, length)
    unreadable = [*use.unreadable, *waited.unreadable]
    return {**asdict(use), "waiting": waited.curves, "unreadable": unreadable}


@ROUTER.get("/cluster/waiting", tags=["cluster"], response_model=cluster_answers.Waiting)
def cluster_waiting(server: Server, viewer: ClusterReader) -> Any:
    """Why jobs wait, and the waiting jobs that you may see, those with the highest priority first."""
    report = queue(server.monitor.jobs.reader)
    return {**asdict(report), "lines": visible(report, viewer)}


@ROUTER.get("/sums/{by}", tags=["jobs"], response_model=list[answers.Sum])
def usage(
    server: Server,
    viewer: Reader,
    by: Literal["user", "account", "project", "partition", "tag"],
    days: Annotated[float, Query(gt=0, le=3660)] = 30,
    running: Annotated[bool, Query(description="Also jobs that run, up to now.")] = False,
    order: SumOrder = "wasted",
) -> Any:
    """What users, accounts, projects (Slurm's WCKey) … had and wasted, summed over the jobs that you may
    see.
    """
    now = server.monitor.clock()
    since = now - days * 86400
    return sums(
        server.monitor.jobs.reader, viewer.clause(), by, since, now=now if running else None, order=order
    )


@ROUTER.get("/months", tags=["jobs"], response_model=list[Month])
def months(server: Server, viewer: Reader, years: Annotated[int, Query(ge=1, le=10)] = 1) -> Any:
    """The users, new users, jobs and hours of each month, of the jobs that you may see."""
    first = month_of(server.monitor.clock() - years * YEAR_S)
    return growth(server.monitor.jobs.reader, viewer.clause(), first)


# -- rules


@ROUTER.get("/rules", tags=["rules"], response_model=answers.Rules)
def rules(server: Server, _viewer: Reader) -> Any:
    """The rules in force."""
    in_force = server.monitor.rules
    return {"hash": in_force.hash, "text": in_force.text, "error": server.monitor.rules_error}


@ROUTER.post("/rules/check", tags=["rules"], response_model=answers.RulesChecked)
def check(_viewer: Administrator, draft: RulesDraft) -> Any:
    """Check rules: what is wrong and where, and what works only in this release."""
    try:
        return {"error": "", "notes": rules_of(draft.text.replace("\r\n", "\n")).notes}
    except BadRules as error:
        return {"error": str(error), "notes": []}


@ROUTER.post("/rules/replay", tags=["rules"], response_model=answers.Replayed)
def replay(server: Server, _viewer: Administrator, trial: RulesRequest) -> Any:
    """Judge past jobs by other rules; nothing is changed."""
    return server.replay(trial.text, trial.since_days, trial.most)


# -- administration


@ROUTER.get("/alarms", tags=["administration"], response_model=list[answers.Alarm])
def alarmed(server: Server, _viewer: Administrator) -> Any:
    """Claims of agents that Slurm does not confirm or that are impossible; the newest first."""
    return alarms(server.monitor.jobs.reader)


@ROUTER.get("/audit", tags=["administration"], response_model=list[answers.AuditEntry])
def audited(server: Server, _viewer: Administrator) -> Any:
    """Who logged in, and who changed rules, people and tokens; the newest first."""
    return entries(server.monitor.jobs)


# -- tokens


@ROUTER.post("/tokens", tags=["tokens"], status_code=201, response_model=answers.Token)
def make(request: Request, server: Server, viewer: Reader, wanted: TokenRequest) -> Any:
    """Make a token for yourself, with no more rights than you have; it is shown once."""
    if not viewer.by_cookie:
        raise HTTPException(403, "a token is made by a person who logged in, not by a token")
    if "admin" in wanted.scopes and viewer.role != "admin":
        raise HTTPException(403, "you are not an administrator")
    access, now = server.access, server.monitor.clock()
    access.note(request, viewer.name, "token made", " ".join(wanted.scopes))
    return {"token": access.people.make_token(viewer.name, list(wanted.scopes), now, days=wanted.days)}
