"""The allocated hours of applications: what `peerway jobs usage` writes, or any accounting."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

from peerway_measure.compare.node_types import NO_TYPE
from peerway_measure.worth.csv_file import MOST_HOURS, BadFile, Column, day, number, optional, rows, text

WRITER = "`peerway jobs usage -o FILE`"
RESOURCES = ("gpu", "core")
YEAR_DAYS = 365.25
_HOURS = Column(optional(number(0, MOST_HOURS)), necessary=False)
_NAME = Column(text, absent="", necessary=False)
_COLUMNS = {
    "application": Column(text), "account": _NAME, "project": _NAME, "node_type": Column(text),
    "from": Column(day), "to": Column(day), "gpu_hours": _HOURS, "core_hours": _HOURS,
    "jobs": Column(optional(number(0, 1e15)), necessary=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usage:
    """The hours of one application, account, project and node type in a period."""

    application: str
    account: str
    project: str
    node_type: str
    begin: date
    end: date  # the first day after it
    hours: float


@dataclass(frozen=True, slots=True)
class Accounts:
    """All rows, and how many days they cover together."""

    rows: tuple[Usage, ...]
    days: int

    @property
    def to_year(self) -> float:
        """By what hours are multiplied to get those of a year."""
        return YEAR_DAYS / self.days


def read(paths: Sequence[Path], resource: str) -> Accounts:
    """The hours of the resource in all files. Raises BadFile and OSError."""
    several: list[Usage] = []
    periods: dict[tuple[str, ...], list[tuple[date, date, str]]] = defaultdict(list)
    column = f"{resource}_hours"
    for path in paths:
        for line, row in rows(path, _COLUMNS, WRITER):
            where = f"{path}:{line}"
            if row[column] is None:
                raise BadFile(f"{where}: {column} is missing, and --resource {resource} needs it")
            if row["from"] >= row["to"]:
                raise BadFile(
                    f"{where}: the period from {row['from']} to {row['to']} has no day; to is the first day "
                    "after the period"
                )
            usage = Usage(
                row["application"], row["account"], row["project"], row["node_type"] or NO_TYPE,
                row["from"], row["to"], row[column],
            )  # fmt: skip
            names = (usage.application, usage.account, usage.project, usage.node_type)
            periods[names].append((usage.begin, usage.end, where))
            several.append(usage)
    for several_of_names in periods.values():
        _refuse_overlap(several_of_names)
    return Accounts(tuple(several), _days([(row.begin, row.end) for row in several]))


def _refuse_overlap(periods: list[tuple[date, date, str]]) -> None:
    """Refuse two rows of the same names whose periods overlap: hours would count twice."""
    ordered = sorted(periods)
    for (_, end, earlier), (begin, _, later) in pairwise(ordered):
        if begin < end:
            raise BadFile(
                f"{later}: the period begins on {begin}, before that of {earlier} ends ({end}), for the same "
                "application, account, project and node type, so hours would count twice; give each period "
                "once"
            )


def _days(periods: list[tuple[date, date]]) -> int:
    """The days that at least one period covers."""
    total, latest = timedelta(), date.min
    for begin, end in sorted(periods):
        total += max(timedelta(), end - max(begin, latest))
        latest = max(latest, end)
    return total.days
