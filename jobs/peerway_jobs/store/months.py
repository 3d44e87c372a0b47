"""Rollups of the finished jobs by month, user, account, project, partition and finding, so that years need no
scan of all jobs.

A job counts in the month in which it ended (UTC). A month is summed again while jobs may still be added to it
or judged, and whenever its number of jobs has changed, for example because history was imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.lists import CORES_A_GPU, HOURS, SUM_ORDERS, SUMMED, SumOrder, sound
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import LAST_S, MOST_SIZE, TEXT, is_damaged, number
from peerway_jobs.store.transaction import transaction

YEAR_S = 365 * 86_400
_OPEN_S = 7 * 86_400  # after its end, a month's last jobs may still be judged again
_COUNTS = ("jobs", "inefficient")
_SUMS = ("core_hours", "gpu_hours", *HOURS)
MONTHS = {
    "month": number(0, LAST_S, whole=True),
    **dict.fromkeys(SUMMED, TEXT),
    "jobs": number(1, 1 << 53, whole=True),
    "inefficient": number(0, 1 << 53, whole=True),
    **dict.fromkeys(_SUMS, number(-MOST_SIZE, MOST_SIZE)),
}
_OF_MONTH = (
    f"ended >= ? AND ended < ? AND NOT provisional AND +started BETWEEN 0 AND ended AND ended < {LAST_S}"
)
_SUMMED = (
    "SELECT {names}, count(*), count(*) FILTER (WHERE verdict = 'inefficient'), "
    "sum({cores} * (ended - started)) / 3600, sum({gpus} * (ended - started)) / 3600, {hours} "
    f"FROM jobs WHERE {_OF_MONTH} GROUP BY {', '.join(str(n) for n in range(1, len(SUMMED) + 1))}"
).format(
    names=", ".join(f"CASE WHEN typeof({name}) = 'text' THEN {name} ELSE '' END" for name in SUMMED),
    cores=sound("cores"),
    gpus=sound("gpus"),
    hours=", ".join(f"sum({sound(name)})" for name in HOURS),
)
assert set(SUMMED) <= set(JOBS)


@dataclass(frozen=True)
class Month:
    """One month: who computed, who did so for the first time, and how much. `start` is in s since 1970."""

    start: int
    users: int
    new_users: int
    jobs: int
    core_hours: float
    gpu_hours: float


def month_of(time: float) -> int:
    """The start of the month of a time (s since 1970, UTC)."""
    at = datetime.fromtimestamp(time, UTC)
    return int(datetime(at.year, at.month, 1, tzinfo=UTC).timestamp())


def after(month: int) -> int:
    """The start of the next month."""
    return month_of(month + 32 * 86_400)


def months(first: int, last: int) -> Iterator[int]:
    """The starts of the months from `first` to `last`."""
    while first <= last:
        yield first
        first = after(first)


def sum_months(
    store: JobStore, now: float, is_stopping: Callable[[], bool] = lambda: False, *, past: bool = True
) -> int:
    """Sum the months that need it; returns their number. Between two months it may be told to stop.

    `past`: also count the jobs of all past months, which reads the index of all jobs.
    """
    base = store.reader
    oldest = base.execute("SELECT min(ended) FROM jobs WHERE ended > 0 AND ended <= ?", (now,)).fetchone()[0]
    if oldest is None:
        return 0
    summed = 0
    for month in months(month_of(oldest), month_of(now)):
        if is_stopping():
            break
        is_open = now < after(month) + _OPEN_S
        if is_open or (past and _count(base, month) != _stored(base, month)):
            _sum_month(store, month)
            summed += 1
    return summed


def _count(base: Connection, month: int) -> int:
    query = f"SELECT count(*) FROM jobs WHERE {_OF_MONTH}"
    return int(base.execute(query, (month, after(month))).fetchone()[0])


def _stored(base: Connection, month: int) -> int:
    query = "SELECT coalesce(sum(jobs), 0) FROM months WHERE month = ?"
    return int(base.execute(query, (month,)).fetchone()[0])


def _sum_month(store: JobStore, month: int) -> None:
    rows = store.reader.execute(_SUMMED, (month, after(month))).fetchall()
    names = ("month", *SUMMED, *_COUNTS, *_SUMS)
    statement = f"INSERT INTO months ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    with store.lock, transaction(store.writer) as base:
        base.execute("DELETE FROM months WHERE month = ?", (month,))
        base.executemany(statement, [(month, *row) for row in rows])


def sums_of_months(
    base: Connection, seen: tuple[str, list[str]], by: str, first: int, most: int, order: SumOrder
) -> list[dict[str, Any]]:
    """What users, accounts, … had and wasted since the start of a month, as lists.sums returns it."""
    if by not in SUMMED:
        raise ValueError(f"sums are by {', '.join(SUMMED)}, not {by!r}")
    columns = ", ".join(f"sum({name}) AS {name}" for name in (*_COUNTS, *_SUMS))
    good = f"NOT {is_damaged(MONTHS, 'month', by, *_COUNTS, *_SUMS)}"
    statement = (
        f"SELECT * FROM (SELECT {by} AS name, {columns}, "
        f"sum(idle_gpu_hours) * {CORES_A_GPU} + sum(idle_core_hours) AS wasted "
        f"FROM months WHERE month >= ? AND {seen[0]} AND {good} GROUP BY {by}) AS summed "
        f"ORDER BY {SUM_ORDERS[order]} DESC, name LIMIT ?"
    )
    return [dict(row) for row in base.execute(statement, [first, *seen[1], most])]


def growth(base: Connection, seen: tuple[str, list[str]], first: int) -> list[Month]:
    """The months since `first`, as far as jobs are known. A user is new in the month of their first job."""
    good = f"NOT {is_damaged(MONTHS, 'month', 'user', 'jobs', 'core_hours', 'gpu_hours')}"
    named = f"NOT {is_damaged(MONTHS, 'month', 'user')}"  # the index months_of_user has both
    statement = (
        "SELECT month, count(DISTINCT user) AS users, sum(jobs) AS jobs, sum(core_hours) AS core_hours, "
        f"sum(gpu_hours) AS gpu_hours FROM months WHERE month >= ? AND {seen[0]} AND {good} GROUP BY month"
    )
    rows = {row["month"]: row for row in base.execute(statement, [first, *seen[1]])}
    begun = dict(
        base.execute(
            f"SELECT first, count(*) FROM (SELECT min(month) AS first FROM months WHERE {seen[0]} "
            f"AND {named} GROUP BY user) AS begun WHERE first >= ? GROUP BY first",
            [*seen[1], first],
        ).fetchall()
    )
    if not rows:
        return []
    return [
        Month(
            month,
            *((row["users"], begun.get(month, 0), row["jobs"], row["core_hours"], row["gpu_hours"])
              if (row := rows.get(month)) else (0, 0, 0, 0.0, 0.0)),
        )
        for month in months(min(rows), max(rows))
    ]  # fmt: skip
