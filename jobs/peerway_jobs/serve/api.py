"""The REST API: what the pages show, as JSON. Described by /api/v1/openapi.json."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from peerway_jobs.frames import MOST_BODY
from peerway_jobs.serve import answers
from peerway_jobs.serve.ingest import Refused
from peerway_jobs.serve.people import MOST_DAYS, Viewer
from peerway_jobs.serve.series_data import DRAWN, plots
from peerway_jobs.serve.state import State
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.audit import entries
from peerway_jobs.store.lists import MOST, PLACE, Filter, Place, listed, sums
from peerway_jobs.store.pending import is_final
from peerway_jobs.store.runs import Run
from peerway_jobs.verdicts import verdict_of

JOB = r"^[0-9]{1,10}(_[0-9]{1,10})?$"  # 123_4 is the fourth of array 123
JobId = Annotated[str, Path(pattern=JOB)]
Before = Annotated[str, Query(pattern=f"^({PLACE})?$", description="As in the link to the next page.")]
Restart = Annotated[int | None, Query(ge=-(1 << 31), le=1 << 31)]
Order = Literal["started", "wasted", "elapsed", "cpu", "gpu"]
Short = Annotated[str, Query(max_length=64)]


class TokenAsked(BaseModel):
    """A token that is asked for."""

    scopes: list[Literal["jobs:read", "cluster:read", "admin"]] = Field(min_length=1, max_length=3)
    days: float = Field(90, gt=0, le=MOST_DAYS)


class RulesAsked(BaseModel):
    """Rules to try, as the text of a file of rules."""

    text: str = Field(max_length=1 << 20)
    since_days: float = Field(7, gt=0, le=366)
    most: int = Field(200, ge=1, le=5000)


def router(state: State) -> APIRouter:  # noqa: C901
    """The routes under /api/v1."""
    api = APIRouter(prefix="/api/v1", responses=answers.errors(401, 403, 413, 422, 503))
    access, monitor = state.access, state.monitor

    def told_of(run: Run) -> dict[str, Any]:
        verdict, final = verdict_of(monitor.jobs, run), is_final(monitor.jobs, run)
        return {**state_of(run), "verdict": verdict, "final": final}

    def run_for(viewer: Viewer, job: str, restart: int | None) -> Run:
        run = monitor.jobs.run(job, restart)
        if run is None or not viewer.may_see(run):  # the same answer, so that ids cannot be guessed
            raise HTTPException(404, f"there is no job {job}, or it is not yours")
        return run

    @api.post(
        "/agent/batches",
        tags=["agents"],
        response_model=answers.Acknowledged,
        responses=answers.errors(400, 413, 422, 429, 503, model=answers.RefusedBatch),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/x-peerway-batches": {"schema": {"type": "string", "format": "binary"}}
                },
            }
        },
    )
    async def batches(request: Request) -> Any:
        """Take the batches of an agent (docs: How the jobs monitor is built)."""
        node = await run_in_threadpool(access.agent, request)
        length = request.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BODY:
            return JSONResponse({"error": f"a body has a length of at most {MOST_BODY:,} bytes"}, 413)
        try:
            return await state.ingest.post(
                node, await request.body(), request.headers.get("peerway-sent", "")
            )
        except Refused as refused:
            return JSONResponse(refused.body(), refused.status, refused.headers)

    @api.get(
        "/agent/jobs/{job}", tags=["agents"], response_model=answers.JobOfNode, responses=answers.errors(404)
    )
    def of_node(request: Request, job: JobId) -> Any:
        """For an epilog: a job that was on the node of an agent's token, with its verdict, and its nodes."""
        node = access.agent(request)
        run = monitor.jobs.run(job)
        nodes = sorted({part["node"] for part in monitor.jobs.intervals(run)}) if run else []
        if run is None or node not in nodes:
            raise HTTPException(404, f"there is no job {job}, or it was not on {node}")
        return {**told_of(run), "script": "", "on": nodes}

    @api.get("/jobs", tags=["jobs"], response_model=list[answers.RunTold])
    def jobs(
        request: Request,
        response: Response,
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
        """The jobs that you may see, the newest first. The header Link has the address of the next page, if
        there is one (RFC 8288: rel="next").
        """
        viewer = access.person(request)
        wanted = Filter(user, account, project, partition, state, verdict, tag, since, text, ran_since, until)
        place = Place.parse(before) if before else None
        found, following = listed(
            monitor.jobs.reader, viewer.clause(), wanted, most=most, before=place, order=order
        )
        if following:
            response.headers["Link"] = f'<{older_page(request, following)}>; rel="next"'
        return [state_of(run) for run in found]

    @api.get("/jobs/{job}", tags=["jobs"], response_model=answers.JobTold, responses=answers.errors(404))
    def one(request: Request, job: JobId, restart: Restart = None) -> Any:
        """A job with its verdict and the evidence for it; its script for its owner and administrators."""
        viewer = access.person(request)
        run = run_for(viewer, job, restart)
        script = run.script if viewer.may_read_script(run) else ""
        return {**told_of(run), "script": script}

    @api.get(
        "/jobs/{job}/series", tags=["jobs"], response_model=answers.Graphs, responses=answers.errors(404)
    )
    def series(request: Request, job: JobId, restart: Restart = None) -> Response:
        """What its graphs draw."""
        run = run_for(access.person(request), job, restart)
        text = json.dumps(plots(monitor.measured(run, DRAWN)), separators=(",", ":"), allow_nan=False)
        return Response(text, media_type="application/json")

    @api.get("/cluster", tags=["cluster"], response_model=answers.Cluster, response_model_exclude_unset=True)
    def cluster(request: Request) -> Any:
        """The cluster at this moment."""
        access.person(request, "cluster:read")
        return state.cluster()

    @api.get("/sums/{by}", tags=["jobs"], response_model=list[answers.Sum])
    def usage(
        request: Request,
        by: Literal["user", "account", "project", "partition", "tag"],
        days: Annotated[float, Query(gt=0, le=3660)] = 30,
        running: Annotated[bool, Query(description="Also jobs that run, up to now.")] = False,
    ) -> Any:
        """What users, accounts, projects (Slurm's WCKey), … had and wasted, of the jobs that you may see."""
        viewer, now = access.person(request), monitor.clock()
        since = now - days * 86400
        return sums(monitor.jobs.reader, viewer.clause(), by, since, now=now if running else None)

    @api.get("/rules", tags=["rules"], response_model=answers.Rules)
    def rules(request: Request) -> Any:
        """The rules in force."""
        access.person(request)
        return {"hash": monitor.rules.hash, "text": monitor.rules.text, "error": monitor.rules_error}

    @api.post("/rules/replay", tags=["rules"], response_model=answers.Replayed)
    def replay(request: Request, asked: RulesAsked) -> Any:
        """What other rules would have said; nothing is changed."""
        access.admin(request)
        return state.replay(asked.text, asked.since_days, asked.most)

    @api.get("/alarms", tags=["administration"], response_model=list[answers.Alarm])
    def alarmed(request: Request) -> Any:
        """What agents claimed that Slurm does not confirm, and what cannot be; the newest first."""
        access.admin(request)
        return alarms(monitor.jobs.reader)

    @api.get("/audit", tags=["administration"], response_model=list[answers.AuditEntry])
    def audited(request: Request) -> Any:
        """Who logged in, and who changed rules, people and tokens; the newest first."""
        access.admin(request)
        return entries(monitor.jobs)

    @api.post("/tokens", tags=["tokens"], status_code=201, response_model=answers.Token)
    def make(request: Request, asked: TokenAsked) -> Any:
        """Make a token for yourself, with no more than you may do; it is shown once."""
        viewer = access.person(request)
        if not viewer.by_cookie:
            raise HTTPException(403, "a token is made by a person who logged in, not by a token")
        if "admin" in asked.scopes and viewer.role != "admin":
            raise HTTPException(403, "you are not an administrator")
        access.note(request, viewer.name, "token made", " ".join(asked.scopes))
        return {
            "token": access.people.make_token(
                viewer.name, list(asked.scopes), monitor.clock(), days=asked.days
            )
        }

    return api


def older_page(request: Request, following: Place | None) -> str:
    """The address of the next page of a list; empty after the last."""
    return f"?{request.url.include_query_params(before=following.text()).query}" if following else ""


def state_of(run: Run) -> dict[str, Any]:
    """A run as the API lists it."""
    from dataclasses import asdict

    found = asdict(run)
    found.pop("script")
    return found
