"""The pages for administrators: wasted hours, alarms, audit log and rules."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import HTMLResponse

from peerway_common.atomic_file import replace
from peerway_jobs.rules.load import BadRules, rules_of
from peerway_jobs.serve.dependencies import Administrator, LoggedIn, Server, Templates
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.audit import entries
from peerway_jobs.store.lists import CORES_A_GPU, Filter, listed, sums
from peerway_jobs.verdicts import keep_rules

MOST_WASTED = 200
DAY_S = 86_400
ROUTER = APIRouter(
    prefix="/admin", include_in_schema=False, default_response_class=HTMLResponse, dependencies=[LoggedIn]
)


@ROUTER.get("/jobs")
def wasted(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: Administrator,
    days: Annotated[int, Query(ge=1, le=366)] = 7,
) -> Response:
    """The jobs that wasted most."""
    now = server.monitor.clock()
    wanted = Filter(ran_since=now - days * DAY_S)
    base = server.monitor.jobs.reader
    runs, _ = listed(base, viewer.clause(), wanted, most=MOST_WASTED, order="wasted")
    causes = sums(base, viewer.clause(), "tag", wanted.ran_since, now=now)
    cut = len(runs) == MOST_WASTED
    # Every job leaves part of a core idle; that does not count as waste of an efficient job.
    runs = [run for run in runs if run.idle_gpu_hours or (run.idle_core_hours and run.verdict != "efficient")]
    return pages.show(
        request,
        "wasted.html.j2",
        viewer,
        jobs=runs,
        causes=[row for row in causes if row["inefficient"]],
        days=days,
        cores_a_gpu=CORES_A_GPU,
        most=MOST_WASTED,
        cut=cut,
    )


@ROUTER.get("/alarms")
def alarmed(request: Request, server: Server, pages: Templates, viewer: Administrator) -> Response:
    """Claims of agents that were not accepted, and damaged rows."""
    return pages.show(
        request,
        "alarms.html.j2",
        viewer,
        alarms=alarms(server.monitor.jobs.reader),
        damage=server.monitor.all_damage(),
    )


@ROUTER.get("/audit")
def audited(request: Request, server: Server, pages: Templates, viewer: Administrator) -> Response:
    """The audit log: who logged in, and who changed rules, people and tokens."""
    return pages.show(request, "audit.html.j2", viewer, entries=entries(server.monitor.jobs))


@ROUTER.get("/rules")
def rules(request: Request, server: Server, pages: Templates, viewer: Administrator) -> Response:
    """The editor of the rules."""
    in_force = server.monitor.rules
    return pages.show(
        request,
        "rules.html.j2",
        viewer,
        text=in_force.text,
        hash=in_force.hash,
        notes=in_force.notes,
        error="",
        saved=False,
    )


@ROUTER.post("/rules")
def save_rules(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: Administrator,
    text: Annotated[str, Form(max_length=1 << 20)],
) -> Response:
    """Put rules in force. If they cannot be used, the error is shown with its place, and the old rules
    stay.
    """
    monitor = server.monitor
    text = text.replace("\r\n", "\n")
    shown: dict[str, Any] = {"text": text, "hash": monitor.rules.hash, "saved": False, "notes": ()}
    try:
        new = rules_of(text)
        replace(monitor.rules_file, text)
    except BadRules as error:
        return pages.show(request, "rules.html.j2", viewer, 422, error=str(error), **shown)
    except OSError as error:
        why = f"the server cannot write {monitor.rules_file}: {error.strerror or error}"
        return pages.show(request, "rules.html.j2", viewer, 503, error=why, **shown)
    monitor.share_rules(text)
    monitor.reload()
    keep_rules(monitor.jobs, new, viewer.name, monitor.clock())
    server.access.note(request, viewer.name, "rules changed", new.hash)
    shown |= {"hash": monitor.rules.hash, "saved": True, "notes": new.notes}
    return pages.show(request, "rules.html.j2", viewer, error="", **shown)
