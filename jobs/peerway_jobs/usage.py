"""Allocated hours by application, account, project and node type; and those of users before and after their
first notice. `peerway worth` reads both.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from statistics import median

from peerway_jobs.serve.csv_file import cell
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import LAST_S, NOTICES, is_damaged

COLUMNS = ("application", "account", "project", "node_type", "from", "to", "jobs", "gpu_hours", "core_hours")
DAY_S = 86_400
# Verdicts of jobs whose idle hours are known.
_JUDGED = "('inefficient', 'efficient', 'unremarkable')"
_READ = ("started", "ended", "suspended", "gpus", "cores", "idle_gpu_hours", "idle_core_hours")
_GOOD = f"NOT provisional AND started IS NOT NULL AND NOT {is_damaged(JOBS, *_READ)}"
_SIDES = ("before", "after")
NOTICE_COLUMNS = (
    "user", "group", "notice", "days_before", "days_after",
    *(f"{idle}{kind}_hours_{side}" for side in _SIDES for kind in ("gpu", "core") for idle in ("", "idle_")),
)  # fmt: skip


@dataclass(slots=True)
class Hours:
    """Jobs and their hours."""

    jobs: int = 0
    gpu_hours: float = 0.0
    core_hours: float = 0.0


Names = tuple[str, str, str, str]  # application, account, project, node type


def usage(
    base: Connection, begin: float, end: float, patterns: Sequence[tuple[str, str]]
) -> tuple[dict[Names, Hours], int]:
    """The hours between two times, and the number of damaged rows, which are left out. Jobs that began before
    or ended after count with the part of their time that lies between.

    `patterns` are names of applications, each with a pattern of job names; the first that fits counts, and a
    job that none fits has no application. Without patterns the application is the job's name.
    """
    hours: dict[Names, Hours] = defaultdict(Hours)
    inside = f"max(0, min(coalesce(ended, {LAST_S}), :end) - max(started, :begin))"
    seconds = (  # suspended time is not allocated; of a job that is cut off, its share
        f"({inside} * (1 - min(1, suspended / max(1, coalesce(ended, :end) - started))))"
    )
    statement = (
        "SELECT name, account, project, node_type, count(*) AS jobs, "
        f"sum(gpus * {seconds}) / 3600 AS gpu_hours, sum(cores * {seconds}) / 3600 AS core_hours "
        f"FROM jobs WHERE {_GOOD} AND started < :end AND (ended IS NULL OR ended > :begin) "
        "GROUP BY name, account, project, node_type"
    )
    for row in base.execute(statement, {"begin": begin, "end": end}):
        names = tuple(str(row[name] or "") for name in ("name", "account", "project", "node_type"))
        summed = hours[application_of(names[0], patterns), names[1], names[2], names[3]]
        summed.jobs += row["jobs"]
        summed.gpu_hours += row["gpu_hours"]
        summed.core_hours += row["core_hours"]
    damaged = base.execute(
        f"SELECT count(*) FROM jobs WHERE NOT provisional AND {is_damaged(JOBS, *_READ)}"
    ).fetchone()[0]
    return dict(hours), damaged


def oldest_start(base: Connection) -> float | None:
    """When the first job began that is known here."""
    start: float | None = base.execute(f"SELECT min(started) FROM jobs WHERE {_GOOD}").fetchone()[0]
    return start


def application_of(name: str, patterns: Sequence[tuple[str, str]]) -> str:
    """The application of a job with this name."""
    if not patterns:
        return name
    return next((application for application, pattern in patterns if fnmatchcase(name, pattern)), "")


def usage_csv(hours: Mapping[Names, Hours], begin: float, end: float) -> str:
    """The file; the largest first."""
    ordered = sorted(hours.items(), key=lambda item: (-item[1].gpu_hours, -item[1].core_hours, item[0]))
    return _csv(
        COLUMNS,
        ((*names, date_text(begin), date_text(end), h.jobs, round(h.gpu_hours, 3), round(h.core_hours, 3))
         for names, h in ordered),
    )  # fmt: skip


@dataclass(slots=True)
class Around:
    """The hours of a user in the time before and after a notice; `notice` is None for users without one, who
    are compared before and after the median notice.
    """

    user: str
    notice: float | None
    days_before: float
    days_after: float
    hours: dict[str, float]  # by the names of the last columns


def around_notices(base: Connection, window_s: float, now: float) -> list[Around]:
    """The judged jobs of each user: those that ended within `window_s` before the first notice, and those
    that began within that time after it and have ended. An empty list: no notice is a day old or older.
    """
    first = {
        row["name"]: row["sent"]
        for row in base.execute(
            f"SELECT name, min(sent) AS sent FROM notices WHERE NOT {is_damaged(NOTICES, 'name', 'sent')} "
            "AND body NOT LIKE 'refused:%' GROUP BY name"
        )
    }
    noticed = {name: sent for name, sent in first.items() if now - sent >= DAY_S}
    if not noticed:
        return []
    users = [
        row[0] for row in base.execute(
            f"SELECT DISTINCT user FROM jobs WHERE {_GOOD} AND verdict IN {_JUDGED} AND user != '' "
            "AND typeof(user) = 'text'"
        )
    ]  # fmt: skip
    middle = median(noticed.values())
    oldest = oldest_start(base) or now
    several = []
    for user in sorted(users):
        if user in first and user not in noticed:
            continue
        sent = noticed.get(user, middle)
        begin, end = max(sent - window_s, min(oldest, sent)), min(sent + window_s, now)
        several.append(
            Around(user, noticed.get(user), (sent - begin) / DAY_S, (end - sent) / DAY_S,
                   _sides(base, user, begin, sent, end))
        )  # fmt: skip
    return several


def _sides(base: Connection, user: str, begin: float, sent: float, end: float) -> dict[str, float]:
    hours: dict[str, float] = {}
    for side, clause, times in (
        ("before", "ended >= ? AND ended < ?", (begin, sent)),
        ("after", "started >= ? AND ended <= ?", (sent, end)),
    ):
        elapsed = "max(0, ended - started - suspended) / 3600"
        row = base.execute(
            f"SELECT coalesce(sum(gpus * {elapsed}), 0) AS gpu, coalesce(sum(cores * {elapsed}), 0) AS core, "
            "coalesce(sum(idle_gpu_hours), 0) AS idle_gpu, coalesce(sum(idle_core_hours), 0) AS idle_core "
            f"FROM jobs WHERE user = ? AND {_GOOD} AND verdict IN {_JUDGED} AND {clause}",
            (user, *times),
        ).fetchone()
        for kind in ("gpu", "core"):
            # An idle figure is of the time with data, and rounded, so it may exceed the whole by a little.
            hours[f"{kind}_hours_{side}"] = row[kind]
            hours[f"idle_{kind}_hours_{side}"] = min(row[kind], row[f"idle_{kind}"])
    return hours


def notices_csv(several: Sequence[Around]) -> str:
    """The file."""

    def rows() -> Iterator[tuple[object, ...]]:
        for each in several:
            group = "control" if each.notice is None else "notified"
            notice = "" if each.notice is None else date_text(each.notice)
            figures = (round(each.hours[name], 4) for name in NOTICE_COLUMNS[5:])
            yield each.user, group, notice, round(each.days_before, 3), round(each.days_after, 3), *figures

    return _csv(NOTICE_COLUMNS, rows())


def date_text(time: float) -> str:
    """The day in UTC: 2026-01-31."""
    return datetime.fromtimestamp(time, UTC).date().isoformat()


def _csv(columns: Sequence[str], rows: Iterator[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell(name, value) for name, value in zip(columns, row, strict=True)])
    return text.getvalue()
