"""Deletes jobs, and batch scripts, of jobs that ended long ago, as the administrator decided."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import is_damaged
from peerway_jobs.store.transaction import transaction
from peerway_jobs.store.unconfirmed import delete_run

_AT_ONCE = 500  # runs, so that agents do not wait long for the writer
_DAY_S = 86_400
_LATE_S = 14 * _DAY_S  # by which the end of a run may be reported late
_DELETE_SCRIPTS = (
    "UPDATE jobs SET script = '' WHERE (job, restart) IN (SELECT job, restart FROM jobs "
    "WHERE ended >= ? AND ended < ? AND script != '' LIMIT ?)"
)
_ENDED = f"ended < ? AND NOT {is_damaged(JOBS, 'job', 'restart', 'started', 'ended')}"


@dataclass(frozen=True)
class Retention:
    """For how many days after their end runs, and their scripts, are kept; None: for ever."""

    job_days: int | None = None
    script_days: int | None = None


def delete_old(store: JobStore, retention: Retention, now: float, before: float = 0.0) -> int:
    """Delete what is older than that; returns the number of deleted runs.

    With a run go its verdict and everything that agents reported of it. `before` is when this was last done:
    scripts that were too old then are not looked for again.
    """
    if retention.script_days is not None:
        age = retention.script_days * _DAY_S
        while store.write(_DELETE_SCRIPTS, (before - age - _LATE_S, now - age, _AT_ONCE)):
            pass
    deleted = 0
    while retention.job_days is not None:
        with store.lock, transaction(store.writer) as base:
            rows = base.execute(
                f"SELECT job, restart, started FROM jobs WHERE {_ENDED} ORDER BY ended LIMIT ?",
                (now - retention.job_days * _DAY_S, _AT_ONCE),
            ).fetchall()
            for row in rows:
                delete_run(base, row["job"], row["restart"], int(row["started"] * 1000))
        deleted += len(rows)
        if len(rows) < _AT_ONCE:
            break
    return deleted
