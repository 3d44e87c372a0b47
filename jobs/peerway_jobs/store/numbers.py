"""Distinguishes jobs and runs that have the same numbers, by their times.

Slurm reuses a job's number after it was set up again, has lost its state, or has counted to MaxJobId. And an
agent may number the runs of a job differently from Slurm, because it has not seen all of them.
"""

from __future__ import annotations

from peerway_jobs.clock import AGREES_S
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.runs import JOBS, Run
from peerway_jobs.store.stored import readable

_WHOLE_S = 1.0  # Slurm reports whole seconds
_EARLY_S = 0.5  # a job that is requeued at once may begin again a second after its first start


def make_room(base: Connection, run: Run) -> bool:
    """Make room for a run that Slurm reports; returns False if its number now belongs to a younger job.

    Runs of an older job with this number get restarts below 0, and so do their verdicts. A run that was made
    of agents' intervals and is the reported run is deleted.
    """
    rows = base.execute(
        "SELECT restart, submitted, started, ended, reason FROM jobs WHERE job = ? AND restart >= 0",
        (run.job,),
    ).fetchall()
    for row, unreadable in (readable(JOBS, each) for each in rows):
        if "restart" in unreadable:
            continue
        if row["restart"] == run.restart and _before(run.started, row["submitted"]):
            return False
        if row["restart"] >= run.restart and _before(row["started"], run.submitted):
            _set_aside(base, run.job, row["restart"])
        elif (
            row["restart"] != run.restart
            and row["reason"] == "agent"
            and _within(run, row["started"], row["ended"])
        ):
            for table in ("jobs", "verdicts"):
                base.execute(f"DELETE FROM {table} WHERE job = ? AND restart = ?", (run.job, row["restart"]))
    return True


def _before(started: float | None, submitted: float | None) -> bool:
    """Whether a run began before a job was submitted, and so is not a run of this job."""
    return started is not None and submitted is not None and started + AGREES_S < submitted


def _within(run: Run, started: float | None, ended: float | None) -> bool:
    """Whether these are times of the run."""
    if started is None or run.started is None or started < run.started - _EARLY_S:
        return False
    if ended is not None and ended < run.started:
        return False
    return run.ended is None or started < run.ended + _WHOLE_S


def _set_aside(base: Connection, job: str, restart: int) -> None:
    lowest = base.execute("SELECT min(restart) FROM jobs WHERE job = ?", (job,)).fetchone()[0]
    for table in ("jobs", "verdicts"):
        base.execute(
            f"UPDATE {table} SET restart = ? WHERE job = ? AND restart = ?",
            (min(lowest, 0) - 1, job, restart),
        )
