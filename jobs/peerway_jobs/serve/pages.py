"""The pages of jobs. The server renders them; scripts only draw graphs and reload the page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from peerway_common.printable import printable
from peerway_jobs.serve.csv_file import as_csv
from peerway_jobs.serve.dependencies import (
    Before,
    JobId,
    LoggedIn,
    Reader,
    Restart,
    Server,
    Templates,
    older_page,
)
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.series_data import GRAPH_TITLES
from peerway_jobs.serve.state import State
from peerway_jobs.serve.words import word
from peerway_jobs.store.arrays import ArrayRow, array_sum, folded
from peerway_jobs.store.lists import MOST, Filter, Order, Place, listed
from peerway_jobs.store.runs import Run
from peerway_jobs.verdicts import read_verdict

A_PAGE = 50
MOST_CSV = 20_000  # jobs
DAY_S = 86_400
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d\d-\d\d)?$")]
Word = Annotated[str, Query(max_length=64)]
Array = Annotated[str, Query(pattern=r"^([0-9]{1,10})?$")]
ROUTER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
OF_PEOPLE = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[LoggedIn])


@ROUTER.get("/")
def start() -> Response:
    """Redirect to the list of jobs."""
    return RedirectResponse("/jobs", 303)


@OF_PEOPLE.get("/jobs")
def jobs(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: Reader,
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
    array: Array = "",
    form: Literal["page", "csv"] = "page",
) -> Response:
    """The list of jobs: your own, unless a filter selects others."""
    others = everyone or bool(user or account or project or partition or tag or array)
    name = user if others else viewer.name
    first, last = _day(since), _day(until)
    last = last + DAY_S if last else 0
    wanted = Filter(
        name, account, project, partition, state, verdict, tag, first, text, until=last, array=array
    )
    if form == "csv":
        return _csv(server, viewer, wanted, order)
    base = server.monitor.jobs.reader
    place = Place.parse(before) if before else None
    now, clause = server.monitor.clock(), viewer.clause()
    rows: list[Run | ArrayRow] = []
    if order == "started" and not array and not text:
        rows, following = folded(base, clause, wanted, now, most=A_PAGE, before=place)
    else:  # other orders list single tasks, and a search looks for one
        runs, following = listed(base, clause, wanted, most=A_PAGE, before=place, order=order)
        rows += runs
    return pages.show(
        request,
        "jobs.html.j2",
        viewer,
        jobs=rows,
        wanted=wanted,
        older=older_page(request, following),
        others=others,
        order=order,
        since=since,
        until=until,
        total=array_sum(base, clause, array, now) if array else None,
        csv=f"?{request.url.remove_query_params('before').include_query_params(form='csv').query}",
    )


def _csv(server: State, viewer: Viewer, wanted: Filter, order: str) -> Response:
    """All jobs of a list as CSV, not only those of one page."""
    runs: list[Run] = []
    place: Place | None = None
    while len(runs) < MOST_CSV:
        some, place = listed(
            server.monitor.jobs.reader, viewer.clause(), wanted, most=MOST, before=place, order=order
        )
        runs += some
        if place is None:
            break
    head = {"Content-Disposition": 'attachment; filename="jobs.csv"'}
    return Response(as_csv(runs), media_type="text/csv; charset=utf-8", headers=head)


@OF_PEOPLE.get("/jobs/{job}")
def job(
    request: Request, server: Server, pages: Templates, viewer: Reader, job: JobId, restart: Restart = None
) -> Response:
    """One run of a job, with its verdict and graphs."""
    monitor = server.monitor
    run = monitor.jobs.run(job, restart)
    if run is None or not viewer.may_see(run):
        raise HTTPException(404)
    verdict, unreadable = read_verdict(monitor.jobs, run)
    return pages.show(
        request,
        "job.html.j2",
        viewer,
        run=run,
        unreadable=[*monitor.jobs.unreadable(run), *unreadable],
        verdict=verdict,
        script=printable(run.script, lines=True) if viewer.may_read_script(run) else "",
        plot_titles={name: word(name, pages.language(request)) for name in GRAPH_TITLES},
        restarts=[each for each in monitor.jobs.restarts(run.job) if min(each, run.restart) >= 0],
        siblings=[each for each in monitor.jobs.siblings(run) if viewer.may_see(each)],
    )


def _day(text: str) -> float:
    """The start of a day (s since 1970, UTC); 0 if `text` is empty. Raises HTTPException."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp() if text else 0
    except ValueError:
        raise HTTPException(422, f"{text} is no day") from None
