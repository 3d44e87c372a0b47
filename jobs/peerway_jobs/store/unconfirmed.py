"""Deletes runs that agents reported and that Slurm has not confirmed within two weeks.

For so long Slurm's accounts are asked about them, and agents send what they measured while the server was
away. Everything that agents reported of such a run is deleted with it; the alarms stay.
"""

from __future__ import annotations

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.parts import SLACK_MS
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import is_damaged, readable
from peerway_jobs.store.transaction import transaction

KEPT_S = 14 * 86_400
_ANSWERED_S = 3600.0  # Slurm counts as answering if it did so within this time
_BATCH = 500  # runs deleted at once, so that the writer is not blocked for long
_FOREVER_MS = 1 << 62
# No agent has reported the run since: if one reports it again, it counts again.
_SILENT = (
    "NOT EXISTS (SELECT 1 FROM intervals WHERE intervals.job = jobs.job AND step IS NULL "
    "AND intervals.start >= jobs.started * 1000 - :slack AND told >= :oldest_ms "
    "AND NOT EXISTS (SELECT 1 FROM jobs AS later WHERE later.job = jobs.job "
    "AND later.started > jobs.started AND intervals.start >= later.started * 1000 - :slack))"
)


def delete_unconfirmed(store: JobStore, now: float) -> int:
    """Delete the runs that are unconfirmed after two weeks; returns their number.

    Nothing is deleted while Slurm does not answer, because its answer might confirm them.
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
                delete_run(base, row["job"], row["restart"], int(row["started"] * 1000))
        deleted += len(rows)
        if len(rows) < _BATCH:
            break
    _delete_surplus(store, values["oldest_ms"])
    return deleted


def _answers(answered: float | None, now: float) -> bool:
    return answered is not None and answered > now - _ANSWERED_S


def delete_run(base: Connection, job: str, restart: int, start_ms: int) -> None:
    """Delete one run with its intervals and notes, up to the next run with that number."""
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
    """Delete the intervals without a run, of nodes that reported more jobs than a node may."""
    nodes = store.reader.execute("SELECT DISTINCT node FROM alarms WHERE kind = 'too many'").fetchall()
    for row in nodes:
        store.write(
            "DELETE FROM intervals WHERE node = ? AND start < ? AND told < ? AND NOT EXISTS "
            "(SELECT 1 FROM jobs WHERE jobs.job = intervals.job)",
            (row["node"], oldest_ms, oldest_ms),
        )
