"""Lists and sums of jobs. Values are passed as SQL parameters; names of columns come from tables here."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, get_args

from peerway_jobs.store.connection import Connection, Row
from peerway_jobs.store.runs import COLUMNS, JOBS, Run, of_row
from peerway_jobs.store.stored import LAST_S, MOST_SIZE, is_damaged

MOST = 500
# The text form of a place in a list; x stands for a row whose value is no number.
PLACE = r"(?:x|[0-9]{1,18}(?:\.[0-9]{1,20})?(?:e[-+][0-9]{1,3})?):[0-9]{1,10}:-?[0-9]{1,10}"
_LISTED = (
    ", ".join(name for name in COLUMNS if name not in ("script", "steps")) + ", '' AS script, '[]' AS steps"
)
SUMMED = ("user", "account", "project", "partition", "tag")
# A GPU-hour weighs as much as the cores that a node has per GPU; 16 is usual.
CORES_A_GPU = 16


def sound(name: str, otherwise: str = "0") -> str:
    """A column of jobs in SQL, or `otherwise` if it has an impossible value."""
    return f"CASE WHEN {is_damaged(JOBS, name)} THEN {otherwise} ELSE {name} END"


def elapsed(now: str) -> str:
    """The seconds that a run has run, in SQL; 0 if they cannot be read. `now` replaces a missing end."""
    return (
        f"CASE WHEN {is_damaged(JOBS, 'started', 'ended')} THEN 0 "
        f"ELSE max(0, coalesce(ended, {now}) - started) END"
    )


def _wasted(column: Callable[[str], str]) -> str:
    return f"({column('idle_gpu_hours')} * {CORES_A_GPU} + {column('idle_core_hours')})"


_ORDERS = {  # the largest value comes first; the values are numbers of at least 0
    "started": "started",  # unchanged, because the index has this order
    "wasted": f"max(0, {_wasted(sound)})",
    "elapsed": elapsed("CAST(strftime('%s', 'now') AS REAL)"),
    "cpu": f"coalesce(max(0, 1 - {sound('cpu_efficiency', '1')}), 0)",
    "gpu": f"coalesce(max(0, 1 - {sound('gpu_efficiency', '1')}), 0)",
}
HOURS = ("idle_core_hours", "idle_gpu_hours", "freed_core_hours", "freed_gpu_hours")
# All columns that sums read. The index jobs_ended has them all, and job and restart, so that the scripts need
# not be read.
_SUMMED_OF = ", ".join(("ended", "started", *SUMMED, "verdict", "cores", "gpus", *HOURS, "provisional"))
# Rows that a page can address. Others appear in no list, but in peerway jobs doctor and on the page of
# alarms.
_KEY = (
    "typeof(job) = 'text' AND length(job) BETWEEN 1 AND 10 AND job NOT GLOB '*[^0-9]*' "
    "AND typeof(restart) = 'integer' AND restart BETWEEN -9999999999 AND 9999999999"
)
SumOrder = Literal["wasted", "used"]
SUM_ORDERS = {"wasted": "wasted", "used": f"gpu_hours * {CORES_A_GPU} + core_hours"}
Order = Literal["started", "wasted", "elapsed", "cpu", "gpu"]
# The tasks of an array lie between NUMBER_ and NUMBER_: (":" follows "9"). The index contains only rows with
# an array, and SQLite uses it only for a query that says so; otherwise it may prefer the index of users.
TASKS = "array != '' AND array > ? AND array < ?"
OF_ARRAY = "jobs INDEXED BY jobs_of_array"
ORDERS = tuple(_ORDERS)
assert get_args(Order) == ORDERS
_RAN_SINCE = ("ended >= ?", "ended IS NULL")  # of Filter.ran_since
_LAST_FIRST = "ORDER BY place DESC, job DESC, restart DESC"


@dataclass(frozen=True)
class Filter:
    """Which jobs are wanted; an empty value selects all."""

    user: str = ""
    account: str = ""
    project: str = ""
    partition: str = ""
    state: str = ""  # running or finished
    verdict: str = ""
    tag: str = ""
    since: float = 0  # that began from this time on
    text: str = ""  # part of a job's id or name
    ran_since: float = 0  # that ended from this time on, or are still running
    until: float = 0  # that began before this time
    array: str = ""  # number of an array; its tasks are such as 16_3


@dataclass(frozen=True)
class Place:
    """A run's place in a list.

    Slurm's starts are whole seconds, so many jobs share one; id and restart distinguish them.
    """

    value: float | None  # the value that the list is ordered by; None: read it from the row
    job: str
    restart: int

    def text(self) -> str:
        """The place as text, for a query."""
        return f"{'x' if self.value is None else repr(self.value)}:{self.job}:{self.restart}"

    @classmethod
    def of(cls, row: Row) -> Place:
        """The place of a row of a list."""
        place = cls(row["place"], row["job"], row["restart"])
        return place if re.fullmatch(PLACE, place.text()) else cls(None, row["job"], row["restart"])

    @classmethod
    def parse(cls, text: str) -> Place:
        """Parse the text of a place. Raises ValueError."""
        if re.fullmatch(PLACE, text) is None:
            raise ValueError(f"a place in a list is as the page before gave it, not {text!r}")
        value, job, restart = text.split(":")
        return cls(None if value == "x" else float(value), job, int(restart))


def listed(
    base: Connection,
    seen: tuple[str, list[str]],
    wanted: Filter,
    *,
    most: int = 50,
    before: Place | None = None,
    order: str = "started",
    without: Collection[str] = (),
) -> tuple[list[Run], Place | None]:
    """The jobs that the viewer may see (`seen`) and wants, and where the next page begins, or None.

    `before` is the place that the page before returned. `without` are numbers of arrays whose tasks are left
    out.
    """
    clauses, values = _conditions(seen, wanted)
    for array in without:
        clauses.append("NOT (array > ? AND array < ?)")
        values += [f"{array}_", f"{array}_:"]
    if before is not None:
        key = (before.job, before.restart)
        value = f"(SELECT {_ORDERS[order]} FROM jobs WHERE job = ? AND restart = ?)"
        clauses.append(
            f"({_ORDERS[order]}, job, restart) < ({'?' if before.value is not None else value}, ?, ?)"
        )
        values += [*(key if before.value is None else [before.value]), *key]
    most = max(1, min(most, MOST))
    source = f"{OF_ARRAY if wanted.array else 'jobs'} WHERE {' AND '.join(clauses)}"
    if order != "started":
        ranked, values = _ranked(source, values, wanted, order, most + 1)
        source = f"jobs WHERE (job, restart) IN ({ranked})"
    elif wanted.ran_since:  # an index has this order, so few rows are read
        source += f" AND ({' OR '.join(_RAN_SINCE)})"
        values.append(wanted.ran_since)
    query = f"SELECT {_LISTED}, {_ORDERS[order]} AS place FROM {source} {_LAST_FIRST} LIMIT ?"
    rows = base.execute(query, [*values, most + 1]).fetchall()
    return [of_row(row) for row in rows[:most]], Place.of(rows[most - 1]) if len(rows) > most else None


def _ranked(source: str, values: list[Any], wanted: Filter, order: str, most: int) -> tuple[str, list[Any]]:
    """A query of the keys of the first `most` jobs, with its values, so that no other row is read whole.

    What ended lately is ranked by waste within the index jobs_ended, which has all columns for that.
    """
    keys = f"SELECT job, restart, {_ORDERS[order]} AS place FROM {source}"
    if wanted.ran_since:  # as two queries: for an OR, PostgreSQL reads the rows
        ended, running = (f"{keys} AND {clause}" for clause in _RAN_SINCE)
        keys = f"SELECT job, restart, place FROM ({ended} UNION ALL {running}) AS runs"
        values = [*values, wanted.ran_since, *values]
    return f"SELECT job, restart FROM ({keys} {_LAST_FIRST} LIMIT ?) AS ranked", [*values, most]


def _conditions(seen: tuple[str, list[str]], wanted: Filter) -> tuple[list[str], list[Any]]:
    """The SQL conditions for jobs that the viewer may see and wants, without _RAN_SINCE, and their values."""
    clauses, values = [seen[0], "NOT provisional", "started IS NOT NULL", _KEY], list[Any](seen[1])
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
    if wanted.text:
        clauses.append("(job = ? OR array = ? OR name LIKE ? ESCAPE '\\')")
        values += [wanted.text, wanted.text, f"%{_literal(wanted.text)}%"]
    return clauses, values


def sums(
    base: Connection,
    seen: tuple[str, list[str]],
    by: str,
    since: float,
    most: int = 100,
    *,
    now: float | None = None,
    order: SumOrder = "wasted",
) -> list[dict[str, Any]]:
    """What users, accounts, … had and wasted since a time, those with the most waste or use first.

    `now`: also count running jobs, as if they ended now.
    """
    if by not in SUMMED:
        raise ValueError(f"sums are by {', '.join(SUMMED)}, not {by!r}")
    ended = "ended"
    values: list[object] = [since]
    runs = f"SELECT {_SUMMED_OF} FROM jobs WHERE ended >= ?"
    if now is not None:
        ended, values = "coalesce(ended, ?)", [now, now, since]
        runs += f" UNION ALL SELECT {_SUMMED_OF} FROM jobs WHERE ended IS NULL"
    values += [*seen[1], *([now, now] if now is not None else []), most]

    def rows(column: Callable[[str], str]) -> list[dict[str, Any]]:
        """The rows of the sums; `column` gives the SQL of a column."""
        statement = (
            f"SELECT * FROM (SELECT {by} AS name, count(*) AS jobs, "
            "count(*) FILTER (WHERE verdict = 'inefficient') AS inefficient, "
            f"sum({column('cores')} * ({ended} - started)) / 3600 AS core_hours, "
            f"sum({column('gpus')} * ({ended} - started)) / 3600 AS gpu_hours, "
            f"{', '.join(f'sum({column(name)}) AS {name}' for name in HOURS)}, "
            f"sum({_wasted(column)}) AS wasted FROM ({runs}) AS runs WHERE {seen[0]} AND NOT provisional "
            f"AND +started BETWEEN 0 AND {ended} AND {ended} < {LAST_S} "
            f"GROUP BY +{by}) AS summed ORDER BY {SUM_ORDERS[order]} DESC LIMIT ?"
        )
        return [dict(row) for row in base.execute(statement, values)]

    summed = rows(str)
    figures = (value for row in summed for value in row.values() if isinstance(value, float))
    if not all(abs(value) < MOST_SIZE for value in figures):
        summed = rows(sound)  # slower, and needed only if a damaged row counts
    return [{**row, "name": row["name"] if isinstance(row["name"], str) else ""} for row in summed]


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
