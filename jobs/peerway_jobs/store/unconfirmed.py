"""Runs that agents have named and Slurm has not confirmed are kept for two weeks: so long Slurm's accounts
are asked of them, and agents send what they measured while the server was away. After that they are deleted,
with all that agents said of them; the alarms stay.
"""

from __future__ import annotations

import sqlite3

from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.parts import SLACK_MS
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import is_damaged, readable
from peerway_jobs.store.transaction import transaction

KEPT_S = 14 * 86_400
_ANSWERED_S = 3600.0  # Slurm answers if it did so in this time
_BATCH = 500  # runs deleted at once: the writer is not held up for long
_FOREVER_MS = 1 << 62
# Nobody has said anything of the run since: an agent that tells of it again is heard.
_SILENT = (
    "NOT EXISTS (SELECT 1 FROM intervals WHERE intervals.job = jobs.job AND step IS NULL "
    "AND intervals.start >= jobs.started * 1000 - :slack AND told >= :oldest_ms "
    "AND NOT EXISTS (SELECT 1 FROM jobs AS later WHERE later.job = jobs.job "
    "AND later.started > jobs.started AND intervals.start >= later.started * 1000 - :slack))"
)


def delete_unconfirmed(store: JobStore, now: float) -> int:
    """Delete the runs that are still unconfirmed after two weeks; how many. None while Slurm gives no answer,
    which might confirm them.
    """
    if not _answers(store.slurm_answered, now) or not _answers(store.accounts_answered, now):
        return 0
    oldest = int(now - KEPT_S)
    values = {"oldest": oldest, "oldest_ms": oldest * 1000, "slack": SLACK_MS, "most": _BATCH}
    deleted = 0
    while True:
        with store.lock, transaction(store.writer) as base:
            rows = base.execute(
                "SELECT job, restart, started FROM jobs WHERE provisional AND started < :oldest "
                f"AND NOT {is_damaged(JOBS, 'job', 'restart', 'started')} "
                f"AND coalesce(ended, started) < :oldest AND {_SILENT} LIMIT :most",
                values,
            ).fetchall()
            for row in rows:
                _delete(base, row["job"], row["restart"], int(row["started"] * 1000))
        deleted += len(rows)
        if len(rows) < _BATCH:
            break
    _delete_surplus(store, values["oldest_ms"])
    return deleted


def _answers(answered: float | None, now: float) -> bool:
    return answered is not None and answered > now - _ANSWERED_S


def _delete(base: sqlite3.Connection, job: str, restart: int, start_ms: int) -> None:
    """One run, up to the next run of that number."""
    base.execute("DELETE FROM jobs WHERE job = ? AND restart = ?", (job, restart))
    base.execute("DELETE FROM verdicts WHERE job = ? AND restart = ?", (job, restart))
    rows = base.execute("SELECT started, ended FROM jobs WHERE job = ? AND started IS NOT NULL", (job,))
    runs = [readable(JOBS, row)[0] for row in rows]
    others = [(int((run["started"] or 0) * 1000), int((run["ended"] or 0) * 1000)) for run in runs]
    first = max([start_ms - SLACK_MS, *(end for start, end in others if start <= start_ms)])
    last = min([_FOREVER_MS, *(start - SLACK_MS for start, _ in others if start > start_ms)])
    span = {"job": job, "first": first, "last": last}
    base.execute("DELETE FROM intervals WHERE job = :job AND start >= :first AND start < :last", span)
    base.execute(
        "DELETE FROM seen WHERE (job = :job OR owner = :job) AND time >= :first AND time < :last", span
    )


def _delete_surplus(store: JobStore, oldest_ms: int) -> None:
    """Of nodes that named more jobs than a node may: the intervals for which no run was begun."""
    nodes = store.reader.execute("SELECT DISTINCT node FROM alarms WHERE kind = 'too many'").fetchall()
    for row in nodes:
        store.write(
            "DELETE FROM intervals WHERE node = ? AND start < ? AND told < ? AND NOT EXISTS "
            "(SELECT 1 FROM jobs WHERE jobs.job = intervals.job)",
            (row["node"], oldest_ms, oldest_ms),
        )
