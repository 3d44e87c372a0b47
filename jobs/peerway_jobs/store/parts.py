"""What agents reported of a run: its intervals on nodes and in steps, and notes.

Only reports that agree with Slurm's record of the run count. Damaged rows are used as far as they can be
read, if their times can.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from peerway_jobs.store.claims import agreeing
from peerway_jobs.store.connection import Connection, Row
from peerway_jobs.store.runs import Run
from peerway_jobs.store.stored import INTERVALS, SEEN, Kind, is_damaged, readable

SLACK_MS = 30_000  # by which Slurm's and the node's start of a job may differ
_MOST_NOTES = 1000
Part = dict[str, Any]


def intervals_of(base: Connection, run: Run) -> tuple[list[Part], list[str]]:
    """The allocations and steps of a run, clipped to its time; and the columns that cannot be read.

    Each part has `open`, which says whether the interval has no end yet.
    """
    agrees, values = agreeing(run)
    start = int((run.started or 0) * 1000)
    end = int(run.ended * 1000) if run.ended else int(time.time() * 1000) + SLACK_MS
    damaged = is_damaged(INTERVALS, "node", "start", "end", "user")
    rows = base.execute(
        f"SELECT * FROM intervals WHERE job = :job AND ({damaged} "
        f"OR start < :end AND coalesce(end, :end) > :start AND {agrees}) ORDER BY node, start",
        {"job": run.job, "start": start, "end": end, **values},
    ).fetchall()
    parts, unreadable = _readable(INTERVALS, rows, ("node", "start", "end", "step", "slot", "user"))
    for part in parts:
        part["open"] = part["end"] is None
        part["start"] = max(part["start"], start)
        part["end"] = end if part["open"] else min(part["end"], end)
    return parts, [f"intervals.{name}" for name in unreadable]


def notes_of(base: Connection, run: Run) -> tuple[list[Part], list[str]]:
    """The notes of agents about a run, and the columns that cannot be read.

    Notes about left-over processes count even after the run's end.
    """
    start, end = int((run.started or 0) * 1000), int(run.ended * 1000) if run.ended else 1 << 62
    agrees, values = agreeing(replace(run, user=""))  # notes have no user
    rows = base.execute(
        f"SELECT * FROM seen WHERE (job = :job OR owner = :job) AND ({is_damaged(SEEN, 'node', 'time')} "
        f"OR time >= :start AND (time <= :end OR kind = 'leftover') AND {agrees}) ORDER BY time LIMIT :most",
        {"job": run.job, "start": start, "end": end, "most": _MOST_NOTES, **values},
    ).fetchall()
    parts, unreadable = _readable(SEEN, rows, ("node", "time", "kind"))
    return parts, [f"seen.{name}" for name in unreadable]


def _readable(
    kinds: dict[str, Kind], rows: list[Row], needed: tuple[str, ...]
) -> tuple[list[Part], list[str]]:
    """The rows whose needed columns can be read, and all columns that cannot be read in some row."""
    parts = []
    unreadable: set[str] = set()
    for row in rows:
        part, damaged = readable(kinds, row)
        unreadable.update(damaged)
        if not set(damaged).intersection(needed):
            parts.append(part)
    return parts, sorted(unreadable)
