"""Lists and sums of jobs. Each value reaches SQLite as a parameter, each column's name from a table here."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from peerway.jobs.store.runs import COLUMNS, Run, of_row

MOST = 500
_LISTED = (
    ", ".join(name for name in COLUMNS if name not in ("script", "steps")) + ", '' AS script, '[]' AS steps"
)
_ORDERS = {"started": "started DESC, job DESC", "wasted": "wasted DESC, job DESC"}
# A GPU-hour weighs as much as the cores that a node has for each GPU: 16 is usual.
CORES_A_GPU = 16
WASTED = f"(idle_gpu_hours * {CORES_A_GPU} + idle_core_hours)"


@dataclass(frozen=True)
class Filter:
    """Which jobs are asked for; nothing that is empty counts."""

    user: str = ""
    account: str = ""
    partition: str = ""
    state: str = ""  # running or finished
    verdict: str = ""
    tag: str = ""
    since: float = 0
    text: str = ""  # of a job's id or name


def listed(
    base: sqlite3.Connection,
    seen: tuple[str, list[str]],
    wanted: Filter,
    *,
    most: int = 50,
    before: float | None = None,
    order: str = "started",
) -> list[Run]:
    """The jobs that may be seen and are asked for; `before` is the start of the last one of the page
    before.
    """
    clauses, values = [seen[0]], list[Any](seen[1])
    for column, value in (
        ("user", wanted.user),
        ("account", wanted.account),
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
    if wanted.text:
        clauses.append("(job = ? OR name LIKE ? ESCAPE '\\')")
        values += [wanted.text, f"%{_literal(wanted.text)}%"]
    if before is not None:
        clauses.append("started < ?")
        values.append(before)
    rows = base.execute(
        f"SELECT {_LISTED}, {WASTED} AS wasted FROM jobs WHERE {' AND '.join(clauses)} "
        f"ORDER BY {_ORDERS[order]} LIMIT ?",
        [*values, max(1, min(most, MOST))],
    )
    return [of_row(row) for row in rows]


def sums(
    base: sqlite3.Connection, seen: tuple[str, list[str]], by: str, since: float, most: int = 100
) -> list[dict[str, Any]]:
    """What users, accounts or partitions had and wasted since a time, the largest waste first."""
    if by not in ("user", "account", "partition", "tag"):
        raise ValueError(f"sums are by user, account, partition or tag, not {by!r}")
    rows = base.execute(
        f"SELECT {by} AS name, count(*) AS jobs, sum(verdict = 'inefficient') AS inefficient, "
        "sum(cores * (ended - started)) / 3600 AS core_hours, "
        "sum(gpus * (ended - started)) / 3600 AS gpu_hours, "
        "sum(idle_core_hours) AS idle_core_hours, sum(idle_gpu_hours) AS idle_gpu_hours, "
        "sum(freed_core_hours) AS freed_core_hours, sum(freed_gpu_hours) AS freed_gpu_hours, "
        f"sum{WASTED} AS wasted FROM jobs WHERE {seen[0]} AND ended >= ? "
        "AND started IS NOT NULL "
        f"GROUP BY +{by} ORDER BY wasted DESC LIMIT ?",
        [*seen[1], since, most],
    )
    return [dict(row) for row in rows]


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
