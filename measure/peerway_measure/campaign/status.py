"""The progress of a campaign."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from peerway_measure.bench.progress import time_left
from peerway_measure.campaign.failures import by_test_and_type
from peerway_measure.campaign.journal import Journal, Past
from peerway_measure.campaign.plan import Plan, Task


@dataclass(frozen=True)
class Status:
    """The counts of measurements, what failed and why, and the remaining seconds at the pace of those that
    ended; None before the first has ended.
    """

    total: int
    done: int
    running: int
    failed: list[str]
    remaining_s: float | None
    rounds: int

    def lines(self) -> list[str]:
        """The status as text."""
        lines = [
            f"{self.done} of {self.total} measurements are done, {self.running} "
            f"{'is' if self.running == 1 else 'are'} running, {self.rounds} "
            f"{'round is' if self.rounds == 1 else 'rounds are'} complete"
        ]
        if self.done < self.total and self.remaining_s is not None:
            end = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + self.remaining_s))
            lines.append(f"about {time_left(self.remaining_s)} left; without pauses it ends at {end}")
        return lines + [f"failed: {line}" for line in self.failed]


def status(plan: Plan, journal: Journal) -> Status:
    """The present status."""
    tasks = plan.tasks()
    finished, past = journal.finished(), journal.past()
    running = sum(journal.is_kept(task.id) for task in tasks if task.id not in finished)
    waiting = [task for task in tasks if task.id not in finished]
    lacking = {task.round for task in waiting}
    return Status(
        len(tasks),
        len(tasks) - len(waiting),
        running,
        by_test_and_type((task, past.why[task.id]) for task in waiting if task.id in past.why),
        remaining_s(plan, waiting, past),
        plan.repeats - len(lacking),
    )


def remaining_s(plan: Plan, waiting: Sequence[Task], past: Past) -> float | None:
    """The seconds until the `waiting` measurements are done, or None.

    It follows from the median time of each test (of all tests, for a test that has never ended) and the
    number of nodes that the test takes.
    """
    if not past.seconds:
        return None
    known: dict[str, list[float]] = {}
    for task in plan.tasks():
        if task.id in past.seconds:
            known.setdefault(task.test.name, []).append(past.seconds[task.id])
    of_any = median(past.seconds.values())
    of_test = {name: median(several) for name, several in known.items()}
    at_once = min(plan.nodes_at_once, len(plan.type_of()))
    return sum(of_test.get(t.test.name, of_any) * len(t.nodes) for t in waiting) / at_once
