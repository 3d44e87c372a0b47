"""The pages. All are made here, on the server; scripts only draw graphs and fetch the page anew."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from peerway_common.atomic_file import replace
from peerway_common.printable import printable
from peerway_jobs.rules.load import BadRules, rules_of
from peerway_jobs.serve.api import Before, JobId, Order, Restart, older_page
from peerway_jobs.serve.csv_file import as_csv
from peerway_jobs.serve.logins import Login, add_logins
from peerway_jobs.serve.oidc import Provider
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.series_data import PLOTS
from peerway_jobs.serve.state import State
from peerway_jobs.serve.words import word
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.audit import entries
from peerway_jobs.store.lists import CORES_A_GPU, MOST, SUMMED, Filter, Place, array_sum, listed, sums
from peerway_jobs.store.runs import Run
from peerway_jobs.verdicts import keep_rules, verdict_of

A_PAGE = 50
MOST_WASTED = 200
MOST_SUMS = 100
MOST_CSV = 20_000  # jobs
DAY_S = 86_400
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")]
Word = Annotated[str, Query(max_length=64)]


def router(state: State, pages: Pages, provider: Provider | None, secure: bool) -> APIRouter:  # noqa: C901
    """The routes of the pages."""
    html = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    monitor, access = state.monitor, state.access
    add_logins(html, pages, state, provider, secure)

    def asked(request: Request, scope: str = "jobs:read") -> Viewer:
        """Who asks for a page, with the rights that the API asks for."""
        if access.viewer(request) is None:
            raise Login
        return access.admin(request) if scope == "admin" else access.person(request, scope)

    def in_person(request: Request) -> Viewer:
        """Somebody who logged in: no token makes or shows tokens."""
        viewer = asked(request)
        if not viewer.by_cookie:
            raise HTTPException(403, "log in: this is not done with a token")
        return viewer

    @html.get("/")
    def start() -> Response:
        return RedirectResponse("/jobs", 303)

    @html.get("/jobs")
    def jobs(
        request: Request,
        user: Word = "",
        account: Word = "",
        project: Word = "",
        partition: Word = "",
        state: Word = "",
        verdict: Word = "",
        text: Word = "",
        tag: Word = "",
        before: Before = "",
        everyone: bool = False,
        order: Order = "started",
        since: Day = "",
        until: Day = "",
        array: Annotated[str, Query(pattern=r"^([0-9]{1,10})?$")] = "",
        form: Literal["page", "csv"] = "page",
    ) -> Response:
        viewer = asked(request)
        others = everyone or bool(user or account or project or partition or tag or array)
        name = user if others else viewer.name
        first, last = _day(since), _day(until)
        last = last + DAY_S if last else 0
        wanted = Filter(
            name, account, project, partition, state, verdict, tag, first, text, until=last, array=array
        )
        base = monitor.jobs.reader
        if form == "csv":
            return csv_of(viewer, wanted, order)
        place = Place.parse(before) if before else None
        found, following = listed(base, viewer.clause(), wanted, most=A_PAGE, before=place, order=order)
        return pages.show(
            request,
            "jobs.html.j2",
            viewer,
            jobs=found,
            wanted=wanted,
            older=older_page(request, following),
            others=others,
            order=order,
            since=since,
            until=until,
            total=array_sum(base, viewer.clause(), array, monitor.clock()) if array else None,
            csv=f"?{request.url.remove_query_params('before').include_query_params(form='csv').query}",
        )

    def csv_of(viewer: Viewer, wanted: Filter, order: str) -> Response:
        """All jobs of a list, not only those of one page."""
        found: list[Run] = []
        place: Place | None = None
        while len(found) < MOST_CSV:
            some, place = listed(
                monitor.jobs.reader, viewer.clause(), wanted, most=MOST, before=place, order=order
            )
            found += some
            if place is None:
                break
        head = {"Content-Disposition": 'attachment; filename="jobs.csv"'}
        return Response(as_csv(found), media_type="text/csv; charset=utf-8", headers=head)

    @html.get("/jobs/{job}")
    def job(request: Request, job: JobId, restart: Restart = None) -> Response:
        viewer = asked(request)
        run = monitor.jobs.run(job, restart)
        if run is None or not viewer.may_see(run):
            raise HTTPException(404)
        titles = {name: word(name, pages.language(request)) for name, _ in PLOTS}
        return pages.show(
            request,
            "job.html.j2",
            viewer,
            run=run,
            unreadable=[*run.unreadable, *monitor.measured(run).damaged],
            verdict=verdict_of(monitor.jobs, run),
            script=printable(run.script, lines=True) if viewer.may_read_script(run) else "",
            plot_titles=titles,
            restarts=[each for each in monitor.jobs.restarts(run.job) if min(each, run.restart) >= 0],
            siblings=[each for each in monitor.jobs.siblings(run) if viewer.may_see(each)],
        )

    @html.get("/cluster")
    def cluster(request: Request) -> Response:
        viewer = asked(request, "cluster:read")
        on = state.running(viewer) if "jobs:read" in viewer.scopes else {}
        return pages.show(request, "cluster.html.j2", viewer, cluster=state.cluster(), on=on)

    @html.get("/statistics")
    def statistics(
        request: Request,
        by: Word = "user",
        days: Annotated[int, Query(ge=1, le=366)] = 30,
        running: bool = False,
    ) -> Response:
        viewer = asked(request)
        by = by if by in SUMMED else "user"
        now = monitor.clock()
        rows = sums(
            monitor.jobs.reader,
            viewer.clause(),
            by,
            now - days * 86400,
            MOST_SUMS,
            now=now if running else None,
        )
        return pages.show(
            request,
            "statistics.html.j2",
            viewer,
            rows=rows,
            by=by,
            days=days,
            most=MOST_SUMS,
            running=running,
        )

    @html.get("/admin/jobs")
    def wasted(request: Request, days: Annotated[int, Query(ge=1, le=366)] = 7) -> Response:
        viewer = asked(request, "admin")
        wanted = Filter(ran_since=monitor.clock() - days * 86400)
        found, _ = listed(monitor.jobs.reader, viewer.clause(), wanted, most=MOST_WASTED, order="wasted")
        cut = len(found) == MOST_WASTED
        # Every job leaves some of a core idle: one that is efficient wasted nothing of it.
        found = [
            run for run in found if run.idle_gpu_hours or (run.idle_core_hours and run.verdict != "efficient")
        ]
        return pages.show(
            request,
            "wasted.html.j2",
            viewer,
            jobs=found,
            days=days,
            cores_a_gpu=CORES_A_GPU,
            most=MOST_WASTED,
            cut=cut,
        )

    @html.get("/admin/alarms")
    def alarmed(request: Request) -> Response:
        viewer = asked(request, "admin")
        return pages.show(request, "alarms.html.j2", viewer, alarms=alarms(monitor.jobs.reader))

    @html.get("/admin/audit")
    def audited(request: Request) -> Response:
        viewer = asked(request, "admin")
        return pages.show(request, "audit.html.j2", viewer, entries=entries(monitor.jobs))

    @html.get("/admin/rules")
    def rules(request: Request) -> Response:
        viewer = asked(request, "admin")
        return pages.show(
            request,
            "rules.html.j2",
            viewer,
            text=monitor.rules.text,
            hash=monitor.rules.hash,
            notes=monitor.rules.notes,
            error="",
            saved=False,
        )

    @html.post("/admin/rules")
    def save_rules(request: Request, text: Annotated[str, Form(max_length=1 << 20)]) -> Response:
        viewer = asked(request, "admin")
        text = text.replace("\r\n", "\n")
        shown = {"text": text, "hash": monitor.rules.hash, "saved": False, "notes": ()}
        try:
            new = rules_of(text)
            replace(monitor.rules_file, text)
        except BadRules as error:
            return pages.show(request, "rules.html.j2", viewer, 422, error=str(error), **shown)
        except OSError as error:
            why = f"the server cannot write {monitor.rules_file}: {error.strerror or error}"
            return pages.show(request, "rules.html.j2", viewer, 503, error=why, **shown)
        monitor.reload()
        keep_rules(monitor.jobs, new, viewer.name, monitor.clock())
        access.note(request, viewer.name, "rules changed", new.hash)
        return pages.show(
            request,
            "rules.html.j2",
            viewer,
            text=text,
            hash=monitor.rules.hash,
            notes=new.notes,
            error="",
            saved=True,
        )

    @html.get("/tokens")
    def tokens(request: Request) -> Response:
        viewer = in_person(request)
        return tokens_page(request, viewer)

    def tokens_page(request: Request, viewer: Viewer, new: str = "") -> Response:
        people = access.people
        return pages.show(
            request,
            "tokens.html.j2",
            viewer,
            tokens=people.tokens(viewer.name),
            new=new,
            mail=people.wants_mail(viewer.name),
        )

    @html.post("/notices")
    def notices(request: Request, mail: Annotated[bool, Form()] = False) -> Response:
        viewer = in_person(request)
        access.people.set_mail(viewer.name, mail)
        return RedirectResponse("/tokens", 303)

    @html.post("/tokens")
    def change_tokens(
        request: Request,
        revoke: Annotated[str, Form(max_length=8)] = "",
        days: Annotated[int, Form(ge=1, le=3650)] = 90,
    ) -> Response:
        viewer = in_person(request)
        if revoke:
            access.people.revoke(viewer.name, revoke)
            access.note(request, viewer.name, "token revoked", revoke)
            return RedirectResponse("/tokens", 303)
        scopes = ["jobs:read", "cluster:read"]
        new = access.people.make_token(viewer.name, scopes, monitor.clock(), days=days)
        access.note(request, viewer.name, "token made", " ".join(scopes))
        return tokens_page(request, viewer, new)

    return html


def _day(text: str) -> float:
    """When a day begins, in UTC; 0 for none. Raises HTTPException."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() if text else 0
    except ValueError:
        raise HTTPException(422, f"{text} is no day") from None
