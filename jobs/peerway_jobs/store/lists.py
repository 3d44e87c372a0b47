"""Lists and sums of jobs. Each value reaches SQLite as a parameter, each column's name from a table here."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

from peerway_jobs.store.runs import COLUMNS, LAST_S, Run, of_row

MOST = 500
# The form of a place in a list, as text.
PLACE = r"[0-9]{1,18}(?:\.[0-9]{1,20})?(?:e[-+][0-9]{1,3})?:[0-9]{1,10}:-?[0-9]{1,10}"
_LISTED = (
    ", ".join(name for name in COLUMNS if name not in ("script", "steps")) + ", '' AS script, '[]' AS steps"
)
SUMMED = ("user", "account", "project", "partition", "tag")
# A GPU-hour weighs as much as the cores that a node has for each GPU: 16 is usual.
CORES_A_GPU = 16
WASTED = f"(idle_gpu_hours * {CORES_A_GPU} + idle_core_hours)"
_ORDERS = {  # the largest first; a place in a list is of numbers of at least 0
    "started": "started",
    "wasted": WASTED,
    "elapsed": "max(0, coalesce(ended, CAST(strftime('%s', 'now') AS REAL)) - started)",
    "cpu": "coalesce(max(0, 1 - cpu_efficiency), 0)",
    "gpu": "coalesce(max(0, 1 - gpu_efficiency), 0)",
}
Order = Literal["started", "wasted", "elapsed", "cpu", "gpu"]
# The tasks of an array, between NUMBER_ and NUMBER_: (the character after 9). The index has only rows with an
# array, and SQLite takes it for a query that says so; of several it would rather take that of users.
TASKS = "array != '' AND array > ? AND array < ?"
OF_ARRAY = "jobs INDEXED BY jobs_of_array"
ORDERS = tuple(_ORDERS)
assert get_args(Order) == ORDERS


@dataclass(frozen=True)
class Filter:
    """Which jobs are asked for; nothing that is empty counts."""

    user: str = ""
    account: str = ""
    project: str = ""
    partition: str = ""
    state: str = ""  # running or finished
    verdict: str = ""
    tag: str = ""
    since: float = 0  # that began since
    text: str = ""  # of a job's id or name
    ran_since: float = 0  # that ended since, or go on
    until: float = 0  # that began before
    array: str = ""  # the number of an array, whose tasks are 16_3


@dataclass(frozen=True)
class Place:
    """A run's place in a list. Slurm's starts are whole seconds, so many jobs share one: the id and the
    restart tell them apart.
    """

    value: float  # what the list is ordered by
    job: str
    restart: int

    def text(self) -> str:
        """For a query."""
        return f"{self.value!r}:{self.job}:{self.restart}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read such a text. Raises ValueError."""
        if re.fullmatch(PLACE, text) is None:
            raise ValueError(f"a place in a list is as the page before gave it, not {text!r}")
        value, job, restart = text.split(":")
        return cls(float(value), job, int(restart))


def listed(
    base: sqlite3.Connection,
    seen: tuple[str, list[str]],
    wanted: Filter,
    *,
    most: int = 50,
    before: Place | None = None,
    order: str = "started",
    without: Collection[str] = (),
) -> tuple[list[Run], Place | None]:
    """The jobs that may be seen and are asked for; and where the next page begins, if there is one:
    `before` is that of the page before. `without`: numbers of arrays whose tasks are left out.
    """
    clauses, values = [seen[0], "NOT provisional"], list[Any](seen[1])
    for column, value in (
        ("user", wanted.user),
        ("account", wanted.account),
        ("project", wanted.project),
        ("partition", wanted.partition),
        ("verdict", wanted.verdict),
        ("tag", wanted.tag),
    ):
        if value:
            clauses.append(f"{column} = ?")
            values.append(value)
    if wanted.state:
        clauses.append("ended IS NULL" if wanted.state == "running" else "ended IS NOT NULL")
    if wanted.since:
        clauses.append("started >= ?")
        values.append(wanted.since)
    if wanted.array:
        clauses.append(TASKS)
        values += [f"{wanted.array}_", f"{wanted.array}_:"]
    if wanted.until:
        clauses.append("started < ?")
        values.append(wanted.until)
    if wanted.ran_since:
        clauses.append("(ended >= ? OR ended IS NULL)")
        values.append(wanted.ran_since)
    if wanted.text:
        clauses.append("(job = ? OR array = ? OR name LIKE ? ESCAPE '\\')")
        values += [wanted.text, wanted.text, f"%{_literal(wanted.text)}%"]
    for array in without:
        clauses.append("NOT (array > ? AND array < ?)")
        values += [f"{array}_", f"{array}_:"]
    if before is not None:
        clauses.append(f"({_ORDERS[order]}, job, restart) < (?, ?, ?)")
        values += [before.value, before.job, before.restart]
    most = max(1, min(most, MOST))
    table = OF_ARRAY if wanted.array else "jobs"
    rows = base.execute(
        f"SELECT {_LISTED}, {_ORDERS[order]} AS place FROM {table} WHERE {' AND '.join(clauses)} "
        "ORDER BY place DESC, job DESC, restart DESC LIMIT ?",
        [*values, most + 1],
    ).fetchall()
    last = rows[most - 1] if len(rows) > most else None
    following = Place(last["place"], last["job"], last["restart"]) if last else None
    if following and re.fullmatch(PLACE, following.text()) is None:  # a row that is no run: pages end there
        following = None
    return [of_row(row) for row in rows[:most]], following


def sums(
    base: sqlite3.Connection,
    seen: tuple[str, list[str]],
    by: str,
    since: float,
    most: int = 100,
    *,
    now: float | None = None,
) -> list[dict[str, Any]]:
    """What users, accounts, … had and wasted since a time, the largest waste first. `now`: also of jobs that
    run, as if they ended now.
    """
    ended = "ended" if now is None else "coalesce(ended, ?)"
    times = [] if now is None else [now]
    since_then = "ended >= ?" if now is None else "(ended >= ? OR ended IS NULL)"
    if by not in SUMMED:
        raise ValueError(f"sums are by {', '.join(SUMMED)}, not {by!r}")
    rows = base.execute(
        f"SELECT {by} AS name, count(*) AS jobs, sum(verdict = 'inefficient') AS inefficient, "
        f"sum(cores * ({ended} - started)) / 3600 AS core_hours, "
        f"sum(gpus * ({ended} - started)) / 3600 AS gpu_hours, "
        "sum(idle_core_hours) AS idle_core_hours, sum(idle_gpu_hours) AS idle_gpu_hours, "
        "sum(freed_core_hours) AS freed_core_hours, sum(freed_gpu_hours) AS freed_gpu_hours, "
        f"sum{WASTED} AS wasted FROM jobs WHERE {seen[0]} AND {since_then} AND NOT provisional "
        f"AND started BETWEEN 0 AND {ended} AND {ended} < {LAST_S} "
        f"GROUP BY +{by} ORDER BY wasted DESC LIMIT ?",
        [*times, *times, *seen[1], since, *times, *times, most],
    )
    return [dict(row) for row in rows]


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
