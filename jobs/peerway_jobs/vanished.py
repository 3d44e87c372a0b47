"""Ends runs that are open in the database but that Slurm no longer reports.

Slurm forgets a job some minutes after its end (MinJobAge), and of a requeued job it reports only the newest
run. The agents know when such a run ended: their intervals have ends. While one of these intervals is open,
the run goes on, because its agent asks Slurm itself and will report the end. A run that no agent saw ends
when it was first missed.
"""

from __future__ import annotations

from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import ANEW, JOBS
from peerway_jobs.store.stored import is_damaged


def close(store: JobStore, known: set[tuple[str, int]], now: float) -> None:
    """End the open runs that are not in `known`: the (job, restart) of all runs that Slurm knows."""
    rows = store.reader.execute(
        "SELECT job, restart FROM jobs WHERE ended IS NULL AND started IS NOT NULL "
        f"AND NOT {is_damaged(JOBS, 'job', 'restart', 'started')}"
    )
    for job, restart in [tuple(row) for row in rows]:
        if (job, restart) in known:
            continue
        ended = _end(store, job, restart, now)
        if ended is None:
            continue
        newer = restart >= 0 and (max(store.restarts(job)) > restart or any(each == job for each, _ in known))
        store.write(
            f"UPDATE jobs SET state = ?, ended = max(?, started), judged = {ANEW} "
            "WHERE job = ? AND restart = ? AND ended IS NULL",
            ("REQUEUED" if newer else "ENDED", ended, job, restart),
        )
    for job, restart in known:
        if restart:  # agents may have reported the end of earlier runs, but not why they ended
            store.write(
                f"UPDATE jobs SET state = 'REQUEUED', judged = {ANEW} "
                "WHERE job = ? AND restart BETWEEN 0 AND ? - 1 AND state = 'ENDED'",
                (job, restart),
            )


def _end(store: JobStore, job: str, restart: int, now: float) -> float | None:
    """When a run ended (s since 1970); None if an agent says that it is still going."""
    run = store.run(job, restart, provisional=True)
    later = [store.run(job, each) for each in store.restarts(job) if each > restart]
    starts = [each.started for each in later if each and each.started]
    following = min(starts, default=float("inf")) * 1000
    parts = [part for part in store.intervals(run) if part["start"] < following] if run else []
    if any(part["open"] for part in parts):
        return None
    return max((part["end"] / 1000 for part in parts), default=min(now, following / 1000))
