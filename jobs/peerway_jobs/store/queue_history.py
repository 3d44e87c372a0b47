"""Rollups of the queue: how many jobs waited over time, and how many cores and GPUs they wanted.

A row has the sums over the minutes of one step of time, as those of utilization.py, with the same steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.stored import LAST_S, MOST_SIZE, number, readable
from peerway_jobs.store.transaction import transaction
from peerway_jobs.store.utilization import DAY_S, KEPT_S, RANGES, Range

FIGURES = ("jobs", "cores", "gpus")  # of the jobs that wait
_SUMS = ("minutes", *FIGURES)
QUEUE_HISTORY = {
    "step": number(1, DAY_S, whole=True),
    "at": number(0, LAST_S, whole=True),
    **dict.fromkeys(_SUMS, number(0, MOST_SIZE)),
}
_ADD = (
    f"INSERT INTO queue_history (step, at, {', '.join(_SUMS)}) VALUES ({', '.join('?' * (2 + len(_SUMS)))}) "
    "ON CONFLICT (step, at) DO UPDATE SET "
    + ", ".join(f"{name} = queue_history.{name} + excluded.{name}" for name in _SUMS)
)


@dataclass
class QueueHistory:
    """What waited over a range. A curve has the mean of each step, None where it is unknown."""

    curves: dict[str, list[float | None]]
    unreadable: list[str] = field(default_factory=list)


def record(store: JobStore, at: float, waiting: Mapping[str, float]) -> None:
    """Add what waits in a minute, by FIGURES, and drop what has been kept long enough."""
    sums = (1, *(float(waiting[name]) for name in FIGURES))
    with store.lock, transaction(store.writer) as base:
        base.executemany(_ADD, [(step, int(at // step * step), *sums) for step in KEPT_S])
        for step, kept in KEPT_S.items():
            base.execute("DELETE FROM queue_history WHERE step = ? AND at < ?", (step, int(at - kept)))


def queue_history(base: Connection, now: float, length: Range) -> QueueHistory:
    """What waited up to now, with the steps of `utilization`. A row that cannot be read is left out and
    named.
    """
    seconds, step = RANGES[length]
    begin = int(now // step * step) - seconds + step
    history = QueueHistory({name: [None] * (seconds // step) for name in FIGURES})
    query = "SELECT * FROM queue_history WHERE step = ? AND at >= ? AND at < ?"
    unreadable: set[str] = set()
    for row in base.execute(query, (step, begin, begin + seconds)):
        sums, names = readable(QUEUE_HISTORY, row)
        unreadable.update(f"queue_history.{name}" for name in names)
        if not names and sums["minutes"]:
            for name, curve in history.curves.items():
                curve[(sums["at"] - begin) // step] = sums[name] / sums["minutes"]
    history.unreadable = sorted(unreadable)
    return history
