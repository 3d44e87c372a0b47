"""How far a campaign is."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from peerway.bench.progress import time_left
from peerway.campaign.failures import by_test_and_type
from peerway.campaign.journal import Journal
from peerway.campaign.plan import Plan


@dataclass(frozen=True)
class Status:
    """Counts of measurements, what failed and why, and the seconds that are left by the pace of those that
    ended; None before the first.
    """

    total: int
    done: int
    running: int
    failed: list[str]
    left_s: float | None
    rounds: int

    def lines(self) -> list[str]:
        """For people."""
        found = [
            f"{self.done} of {self.total} measurements are done, {self.running} are running, "
            f"{self.rounds} rounds are complete"
        ]
        if self.done < self.total and self.left_s is not None:
            end = time.strftime("%Y-%m-%d %H:%M", time.localtime(time.time() + self.left_s))
            found.append(f"about {time_left(self.left_s)} left; without pauses it ends at {end}")
        return found + [f"failed: {line}" for line in self.failed]


def status(plan: Plan, journal: Journal) -> Status:
    """As it is now."""
    tasks = plan.tasks()
    finished, past = journal.finished(), journal.past()
    running = sum(journal.is_kept(task.id) for task in tasks if task.id not in finished)
    waiting = [task for task in tasks if task.id not in finished]
    nodes = max(1, min(plan.nodes_at_once, len({task.node for task in tasks})))
    each = median(past.seconds.values()) if past.seconds else None
    lacking = {task.round for task in waiting}
    return Status(
        len(tasks),
        len(tasks) - len(waiting),
        running,
        by_test_and_type((task, past.why[task.id]) for task in waiting if task.id in past.why),
        None if each is None else each * len(waiting) / nodes,
        plan.repeats - len(lacking),
    )
