"""How far a campaign is."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from peerway.bench.progress import time_left
from peerway.campaign.journal import Journal
from peerway.campaign.plan import Plan


@dataclass(frozen=True)
class Status:
    """Counts of measurements, and the seconds that are left by the pace of those that ended; None before the
    first.
    """

    total: int
    done: int
    running: int
    failed: dict[str, str]
    left_s: float | None
    rounds: int

    def lines(self) -> list[str]:
        """For people."""
        found = [
            f"{self.done} of {self.total} measurements are on the disk, {self.running} run, "
            f"{self.rounds} rounds are whole"
        ]
        if self.done < self.total and self.left_s is not None:
            found.append(f"about {time_left(self.left_s)} left, without pauses")
        found += [f"{name} failed: {why}" for name, why in self.failed.items()]
        return found


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
        {t.id: past.why[t.id] for t in waiting if t.id in past.why},
        None if each is None else each * len(waiting) / nodes,
        plan.repeats - len(lacking),
    )
