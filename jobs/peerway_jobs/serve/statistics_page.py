"""The page of statistics: users, accounts, projects, … by waste or by use, and the use of each month."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from peerway_jobs.serve.dependencies import LoggedIn, Reader, Server, Templates, page_link
from peerway_jobs.store.lists import SUMMED, SumOrder, sums
from peerway_jobs.store.months import YEAR_S, growth, month_of, sums_of_months

MOST_SUMS = 100
DAYS = (1, 7, 30, 90)
YEARS = (1, 3)
DAY_S = 86_400
ROUTER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[LoggedIn])


@ROUTER.get("/statistics")
def statistics(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: Reader,
    by: Annotated[str, Query(max_length=64)] = "user",
    days: Annotated[int, Query(ge=1, le=366)] = 30,
    years: Annotated[int, Query(ge=0, le=10)] = 0,
    running: bool = False,
    order: SumOrder = "wasted",
) -> Response:
    """What users, accounts, … had and wasted, and who computed in each month.

    Sums over years are read from the rollups of months, so they lack running jobs.
    """
    by = by if by in SUMMED else "user"
    now, base, seen = server.monitor.clock(), server.monitor.jobs.reader, viewer.clause()
    if years:
        rows = sums_of_months(base, seen, by, month_of(now - years * YEAR_S), MOST_SUMS, order)
    else:
        rows = sums(base, seen, by, now - days * DAY_S, MOST_SUMS, now=now if running else None, order=order)
    return pages.show(
        request,
        "statistics.html.j2",
        viewer,
        rows=rows,
        by=by,
        days=days,
        years=years,
        spans=(DAYS, YEARS),
        order=order,
        most=MOST_SUMS,
        running=running and not years,
        months=growth(base, seen, month_of(now - max(1, years) * YEAR_S)),
        sees_others=viewer.is_admin or bool(viewer.accounts),
        link=page_link(request),
    )
