"""The REST API: what the pages show, as JSON. Described by /api/v1/openapi.json."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from peerway.jobs.frames import MOST_BODY
from peerway.jobs.serve.ingest import Refused
from peerway.jobs.serve.people import Viewer
from peerway.jobs.serve.series_data import DRAWN, plots
from peerway.jobs.serve.state import State
from peerway.jobs.store.lists import MOST, Filter, listed, sums
from peerway.jobs.store.runs import Run
from peerway.jobs.store.verdicts import verdict_of

JOB = r"^[0-9]{1,10}$"
JobId = Annotated[str, Path(pattern=JOB)]
Short = Annotated[str, Query(max_length=64)]
Errors: dict[int | str, dict[str, Any]] = {
    code: {"model": None, "description": words}
    for code, words in {401: "not logged in", 403: "not allowed", 404: "no such job, or not yours"}.items()
}


class TokenAsked(BaseModel):
    """A token that is asked for."""

    scopes: list[Literal["jobs:read", "cluster:read", "admin"]] = Field(min_length=1, max_length=3)
    days: float = Field(90, gt=0, le=3650)


class RulesAsked(BaseModel):
    """Rules to try, as the text of a file of rules."""

    text: str = Field(max_length=1 << 20)
    since_days: float = Field(7, gt=0, le=366)
    most: int = Field(200, ge=1, le=5000)


def router(state: State) -> APIRouter:
    """The routes under /api/v1."""
    api = APIRouter(prefix="/api/v1", responses=Errors)
    access, monitor = state.access, state.monitor

    def run_for(viewer: Viewer, job: str, restart: int | None) -> Run:
        run = monitor.jobs.run(job, restart)
        if run is None or not viewer.may_see(run):  # the same answer, so that ids cannot be guessed
            raise HTTPException(404, f"there is no job {job}, or it is not yours")
        return run

    @api.post(
        "/agent/batches",
        tags=["agents"],
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    "application/x-peerway-batches": {"schema": {"type": "string", "format": "binary"}}
                },
            }
        },
    )
    async def batches(request: Request, response: Response) -> dict[str, Any]:
        """Take the batches of an agent (docs: How the jobs monitor is built)."""
        node = await run_in_threadpool(access.agent, request)
        length = request.headers.get("content-length", "")
        if not length.isdigit() or int(length) > MOST_BODY:
            response.status_code = 413
            return {"error": f"a body has a length of at most {MOST_BODY:,} bytes"}
        try:
            return await state.ingest.post(
                node, await request.body(), request.headers.get("peerway-sent", "")
            )
        except Refused as refused:
            response.status_code = refused.status
            return refused.body()

    @api.get("/jobs", tags=["jobs"])
    def jobs(
        request: Request,
        user: Short = "",
        account: Short = "",
        partition: Short = "",
        state: Literal["", "running", "finished"] = "",
        tag: Short = "",
        text: Short = "",
        verdict: Literal["", "inefficient", "efficient", "no data", "short", "waiting"] = "",
        since: Annotated[float, Query(ge=0, le=1e11)] = 0,
        before: Annotated[float | None, Query(ge=0, le=1e11)] = None,
        order: Literal["started", "wasted"] = "started",
        most: Annotated[int, Query(ge=1, le=MOST)] = 50,
    ) -> list[dict[str, Any]]:
        """The jobs that you may see, the newest first."""
        viewer = access.person(request)
        wanted = Filter(user, account, partition, state, verdict, tag, since, text)
        found = listed(monitor.jobs.reader, viewer.clause(), wanted, most=most, before=before, order=order)
        return [state_of(run) for run in found]

    @api.get("/jobs/{job}", tags=["jobs"])
    def one(
        request: Request, job: JobId, restart: Annotated[int | None, Query(ge=0, le=1 << 31)] = None
    ) -> dict[str, Any]:
        """A job with its verdict and the evidence for it; its script for its owner and administrators."""
        viewer = access.person(request)
        run = run_for(viewer, job, restart)
        script = run.script if viewer.may_read_script(run) else ""
        return {**state_of(run), "script": script, "verdict": verdict_of(monitor.jobs, run)}

    @api.get("/jobs/{job}/series", tags=["jobs"])
    def series(
        request: Request, job: JobId, restart: Annotated[int | None, Query(ge=0, le=1 << 31)] = None
    ) -> Response:
        """What its graphs draw."""
        run = run_for(access.person(request), job, restart)
        text = json.dumps(plots(monitor.measured(run, DRAWN)), separators=(",", ":"), allow_nan=False)
        return Response(text, media_type="application/json")

    @api.get("/cluster", tags=["cluster"])
    def cluster(request: Request) -> dict[str, Any]:
        """The cluster at this moment."""
        access.person(request, "cluster:read")
        return state.cluster()

    @api.get("/sums/{by}", tags=["jobs"])
    def usage(
        request: Request,
        by: Literal["user", "account", "partition", "tag"],
        days: Annotated[float, Query(gt=0, le=3660)] = 30,
    ) -> list[dict[str, Any]]:
        """What users, accounts or partitions had and wasted, of the jobs that you may see."""
        viewer = access.person(request)
        return sums(monitor.jobs.reader, viewer.clause(), by, monitor.clock() - days * 86400)

    @api.get("/rules", tags=["rules"])
    def rules(request: Request) -> dict[str, Any]:
        """The rules in force."""
        access.person(request)
        return {"hash": monitor.rules.hash, "text": monitor.rules.text, "error": monitor.rules_error}

    @api.post("/rules/replay", tags=["rules"])
    def replay(request: Request, asked: RulesAsked) -> dict[str, Any]:
        """What other rules would have said; nothing is changed."""
        access.admin(request)
        return state.replay(asked.text, asked.since_days, asked.most)

    @api.post("/tokens", tags=["tokens"], status_code=201)
    def make(request: Request, asked: TokenAsked) -> dict[str, str]:
        """Make a token for yourself, with no more than you may do; it is shown once."""
        viewer = access.person(request)
        if not viewer.by_cookie:
            raise HTTPException(403, "a token is made by a person who logged in, not by a token")
        if "admin" in asked.scopes and viewer.role != "admin":
            raise HTTPException(403, "you are not an administrator")
        return {
            "token": access.people.make_token(
                viewer.name, list(asked.scopes), monitor.clock(), days=asked.days
            )
        }

    return api


def state_of(run: Run) -> dict[str, Any]:
    """A run as the API lists it."""
    from dataclasses import asdict

    found = asdict(run)
    found.pop("script")
    return found
