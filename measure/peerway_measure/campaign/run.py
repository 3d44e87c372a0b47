"""The runner: starts keepers, as many as the limits allow, until every measurement is on the disk or was
tried often enough.

It may be killed at any time. Keepers go on, and the next runner finds what they did.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass

from peerway_common.units import counted
from peerway_measure.campaign.failures import Failures, away_lines
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.plan import Plan, Task
from peerway_measure.campaign.starters import Starter
from peerway_measure.campaign.status import remaining_s

_WAIT_S = 20  # between checks of a closed window or a busy cluster
Say = Callable[[str], None]


@dataclass(frozen=True)
class Progress:
    """The progress of a pass: the number of all measurements, of those done and of those given up, the names
    of those that run, and when the rest will be done, in seconds since 1970 (0: not known yet).
    """

    total: int
    done: int
    given_up: int
    running: tuple[str, ...]
    ends: float


Show = Callable[[Progress], None]


@dataclass
class Unfinished:
    """What was not measured: the reason for each measurement, and a line for each reason."""

    why: dict[str, str]
    lines: list[str]


class Runner:
    """One pass of a campaign."""

    def __init__(
        self, plan: Plan, journal: Journal, starter: Starter, say: Say, show: Show = lambda _: None
    ) -> None:
        """`say` is called with messages for people, `show` again and again with the progress."""
        self._plan, self._journal, self._starter, self._say, self._show = plan, journal, starter, say, show
        self._tasks = {task.id: task for task in plan.tasks()}
        self._running: dict[str, Task] = {}
        self._lost: dict[str, Task] = {}
        self._types = plan.type_of()
        self._away: dict[str, str] = {}
        self._alone_since = time.monotonic()
        self._last_reason = ""  # why nothing may start now, as it was last said
        self._known = dict(journal.past().failures)  # failures of earlier passes do not count in this one
        finished = journal.finished()
        self._failures = Failures(plan.tries, (t for name, t in self._tasks.items() if name in finished))
        self._waiting = {name: task for name, task in self._tasks.items() if name not in finished}

    def run(self) -> Unfinished:
        """Run until nothing is left to do."""
        kept = self._starter.running(set(self._waiting))
        self._running = {name: self._waiting.pop(name) for name in [*self._waiting] if name in kept}
        if self._running:
            self._say(f"waiting for {counted(len(self._running), 'measurement')} of an earlier run")
        ends, known = 0.0, -1
        while self._waiting or self._running:
            self._requeue(self._ended() | self._returned())
            self._give_up_unreachable()
            remaining = [*self._waiting.values(), *self._running.values()]
            if len(remaining) != known or not self._running:  # while nothing may run, the end is put off
                ends, known = self._expected_end(remaining), len(remaining)
            started = self._start()
            done = len(self._tasks) - len(remaining) - len(self._lost)
            self._show(Progress(len(self._tasks), done, len(self._lost), tuple(self._running), ends))
            if not started:
                self._starter.wait()
        return Unfinished(
            {name: self._failures.why_lost(task) for name, task in self._lost.items()},
            self._failures.lines(self._lost.values()),
        )

    def _expected_end(self, remaining: Sequence[Task]) -> float:
        seconds = remaining_s(self._plan, remaining, self._journal.past())
        return 0.0 if seconds is None else time.time() + seconds

    def _requeue(self, failed: dict[str, Task]) -> None:
        """Return failed measurements to the queue one round later, so that a disturbance has time to pass.
        Those that are no longer tried are lost.
        """
        if not failed:
            return
        everything = self._waiting | failed
        self._lost |= {name: task for name, task in everything.items() if self._failures.why_lost(task)}
        waiting = [item for item in everything.items() if item[0] not in self._lost]
        self._waiting = dict(sorted(waiting, key=lambda item: item[1].round + self._failures.of(item[1])))

    def _ended(self) -> dict[str, Task]:
        """Note which measurements ended. Returns those that failed, for the queue."""
        alive = self._starter.running(set(self._running))
        failed: dict[str, Task] = {}
        for name in [name for name in self._running if name not in alive]:
            task = self._running.pop(name)
            if self._journal.result(name).exists():
                self._failures.succeeded(task)
                continue
            if self._journal.past().failures.get(name, 0) <= self._known.get(name, 0):
                why = f"it ended without a report: {self._starter.lost(name)}"
                self._note(task, why, [node for node in task.nodes if node in self._starter.away()])
            past = self._journal.past()
            self._known[name] = past.failures[name]
            nodes = past.failed_on.get(name, []) if task.others else [task.node]
            where = f" on {' or '.join(nodes or task.nodes)}" if task.others else ""
            self._say(f"{name} failed{where}: {past.why[name]}")
            for line in self._failures.failed(task, past.why[name], name in past.unreached, nodes):
                self._say(line)
            failed[name] = task
        return failed

    def _returned(self) -> dict[str, Task]:
        """The measurements that were not started after all, for the queue."""

        def others() -> set[str]:
            return {node for task in self._waiting.values() for node in task.nodes} - self._nodes()

        return {n: self._running.pop(n) for n in self._starter.returned(self._running.keys(), others)}

    def _give_up_unreachable(self) -> None:
        """Give up the nodes that are away when nothing else is left to do.

        A node may be rebooting, so it is first waited for as long as a measurement may take.
        """
        away = {node: why for node, why in self._starter.away().items() if node in self._types}
        for line in away_lines({n: why for n, why in away.items() if why != self._away.get(n)}):
            self._say(f"waiting for {line}")
        self._away = away
        if self._running or any(away.keys().isdisjoint(task.nodes) for task in self._waiting.values()):
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._plan.time_s:
            self._failures.aside |= away
            self._requeue(dict(self._waiting))

    def _note(self, task: Task, why: str, nodes: Sequence[str]) -> None:
        """Note a failure that no keeper can report."""
        self._journal.note({"event": "failed", "id": task.id, "why": why, "unreached": True, "nodes": nodes})

    def _start(self) -> list[str]:
        """Start what may be started now, in order. Returns the names."""
        busy = self._nodes()
        if not self._waiting or len(busy) >= self._plan.nodes_at_once or not self._may_start():
            return []
        started: list[str] = []
        occupied = self._starter.occupied()
        for name, task in self._first_where_it_is_free(occupied):
            if len(busy.union(task.nodes)) > self._plan.nodes_at_once:
                break  # a smaller measurement may not overtake it
            if not busy.isdisjoint(task.nodes) or not self._away.keys().isdisjoint(task.nodes):
                continue
            self._running[name] = self._waiting.pop(name)
            busy.update(task.nodes)
            started.append(name)
            try:
                self._starter.start(task)
            except OSError as error:
                self._note(task, str(error), [])
        return started

    def _first_where_it_is_free(self, occupied: Set[str]) -> Iterator[tuple[str, Task]]:
        items = [*self._waiting.items()]
        yield from (item for item in items if occupied.isdisjoint(item[1].nodes))
        yield from (item for item in items if not occupied.isdisjoint(item[1].nodes))

    def _nodes(self) -> set[str]:
        return {node for task in self._running.values() for node in task.nodes}

    def _may_start(self) -> bool:
        reason, why = "", ""
        if not self._plan.is_open:
            reason, why = "window", f"the time window {self._plan.window_text} is closed"
        elif (
            self._plan.busy is not None
            and (share := self._starter.share_busy()) is not None
            and share > self._plan.busy
        ):
            reason, why = "busy", f"{share:.0%} of the cluster is busy"
        if not why:
            self._last_reason = ""
        elif not self._running:
            if reason != self._last_reason:  # said once, not at each check
                self._say(f"waiting: {why}")
            self._last_reason = reason
            time.sleep(_WAIT_S)
        return not why


def starter(plan: Plan, journal: Journal) -> Starter:
    """The starter that the plan names. Raises Unusable."""
    from peerway_measure.campaign.hosts import Hosts
    from peerway_measure.campaign.slurm import Slurm

    return Slurm(plan, journal) if plan.starter == "slurm" else Hosts(plan, journal)
