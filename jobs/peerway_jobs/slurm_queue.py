"""The jobs that wait, from squeue's entries: sums by Slurm's reason, and a line for each.

The waiting tasks of an array are one entry of squeue, and stay one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from peerway_jobs.slurm_json import number, text_of, time_of
from peerway_jobs.store.queue import MOST_LINES, ReasonSum, WaitingJob
from peerway_jobs.store.runs import Run

MOST_REASONS = 20
Waiting = tuple[dict[str, Any], Run, int]  # squeue's entry, the run, and the tasks that the entry stands for


def by_reason(waiting: Iterable[Waiting]) -> list[ReasonSum]:
    """The waiting jobs by reason, the most frequent first."""
    sums: dict[str, ReasonSum] = {}
    for _, run, tasks in waiting:
        name = run.reason or "None"
        entry = sums.setdefault(name, ReasonSum(name))
        entry.jobs += tasks
        entry.cores += run.cores * tasks
        entry.gpus += run.gpus * tasks
        if run.submitted is not None:
            entry.since = min(entry.since or run.submitted, run.submitted)
    return sorted(sums.values(), key=lambda each: (-each.jobs, each.reason))[:MOST_REASONS]


def lines(waiting: Iterable[Waiting]) -> tuple[list[WaitingJob], int]:
    """A line for each entry, those with the highest priority first; and the number of entries left out."""
    ordered = sorted(waiting, key=lambda each: (-(number(each[0].get("priority")) or 0), int(each[1].job)))
    return [_line(*each) for each in ordered[:MOST_LINES]], max(0, len(ordered) - MOST_LINES)


def _line(entry: dict[str, Any], run: Run, tasks: int) -> WaitingJob:
    array = number(entry.get("array_job_id"))
    return WaitingJob(
        job=f"{int(array)}_[{text_of(entry.get('array_task_string'))[:40]}]"
        if array and tasks > 1
        else run.job,
        user=run.user,
        account=run.account,
        name=run.name[:80],
        partition=run.partition,
        reason=run.reason or "None",
        tasks=tasks,
        nodes=run.nodes,
        cores=run.cores,
        gpus=run.gpus,
        submitted=run.submitted,
        starts=time_of(entry.get("start_time")),
    )
