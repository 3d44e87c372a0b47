"""The runner: starts keepers, as many as the limits allow, until everything is on the disk or was tried often
enough. It may be killed at any time: keepers go on, and the next runner finds what they did.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from peerway.campaign.journal import Journal
from peerway.campaign.plan import Plan, Task
from peerway.campaign.starters import Starter

_WAIT_S = 20  # for a window, or for a cluster that is busy
Say = Callable[[str], None]


@dataclass
class Left:
    """What was not measured, and why."""

    given_up: dict[str, str] = field(default_factory=dict)
    aside: dict[str, str] = field(default_factory=dict)


class Runner:
    """One pass of a campaign."""

    def __init__(self, plan: Plan, journal: Journal, starter: Starter, say: Say) -> None:
        self._plan, self._journal, self._starter, self._say = plan, journal, starter, say
        self._tasks = {task.id: task for task in plan.tasks()}
        self._running: dict[str, Task] = {}
        self._failures: dict[str, int] = {}  # in this pass; another one tries again what was given up
        self._in_a_row: dict[str, int] = {}
        self._left = Left()

    def run(self) -> Left:
        """Until nothing is left to do."""
        waiting = self._waiting()
        kept = self._starter.running(set(waiting))
        self._running = {name: waiting.pop(name) for name in [*waiting] if name in kept}
        if self._running:
            self._say(f"{len(self._running)} measurements of an earlier pass still run; they are waited for")
        while waiting or self._running:
            before = len(self._left.aside)
            if again := self._ended():
                waiting = self._in_order(waiting | again)
            if again or len(self._left.aside) > before:
                waiting = {name: task for name, task in waiting.items() if not self._is_lost(task)}
            started = self._start(waiting)
            for name in started:
                del waiting[name]
            if not started:
                self._starter.wait()
        return self._left

    def _waiting(self) -> dict[str, Task]:
        finished = self._journal.finished()
        return {name: task for name, task in self._tasks.items() if name not in finished}

    def _in_order(self, waiting: dict[str, Task]) -> dict[str, Task]:
        """By rounds, and what failed at the end of its round."""
        return dict(sorted(waiting.items(), key=lambda item: (item[1].round, self._failures.get(item[0], 0))))

    def _ended(self) -> dict[str, Task]:
        """Takes note of what ended; gives back what is to be tried again."""
        alive = self._starter.running(set(self._running))
        again: dict[str, Task] = {}
        for name in [name for name in self._running if name not in alive]:
            task = self._running.pop(name)
            if self._journal.result(name).exists():
                self._in_a_row[task.node] = 0
                continue
            past = self._journal.past()
            why = past.why.get(name, "")
            if not why or past.failures.get(name, 0) <= self._failures.get(name, 0):
                why = "it ended without a report: its node, or this host, went down meanwhile"
                self._journal.note({"event": "failed", "id": name, "why": why})
            self._failed(task, why)
            if name not in self._left.given_up:
                again[name] = task
        return again

    def _failed(self, task: Task, why: str) -> None:
        self._failures[task.id] = self._failures.get(task.id, 0) + 1
        self._in_a_row[task.node] = self._in_a_row.get(task.node, 0) + 1
        self._say(f"{task.id} failed: {why}")
        if self._failures[task.id] >= self._plan.tries:
            self._left.given_up[task.id] = why
        if self._in_a_row[task.node] >= max(2, self._plan.tries) and task.node not in self._left.aside:
            self._left.aside[task.node] = why
            self._say(
                f"{task.node} is set aside after {self._in_a_row[task.node]} failures in a row; others go on"
            )

    def _is_lost(self, task: Task) -> bool:
        """Whether it is not tried in this pass any more."""
        if task.node in self._left.aside:
            self._left.given_up.setdefault(task.id, self._left.aside[task.node])
        return task.id in self._left.given_up

    def _start(self, waiting: dict[str, Task]) -> list[str]:
        """Start what may be started now, in order."""
        if not waiting or len(self._nodes()) >= self._plan.nodes_at_once or not self._may_start():
            return []
        started: list[str] = []
        busy = self._nodes()
        for name, task in waiting.items():
            if len(busy) >= self._plan.nodes_at_once:
                break
            if task.node in busy:
                continue
            self._running[name] = task
            busy.add(task.node)
            started.append(name)
            try:
                self._starter.start(task)
            except OSError as error:
                self._journal.note({"event": "failed", "id": name, "why": str(error)})
                continue
        return started

    def _nodes(self) -> set[str]:
        return {task.node for task in self._running.values()}

    def _may_start(self) -> bool:
        why = ""
        now = time.localtime()
        if not in_window(self._plan.window, now.tm_hour * 60 + now.tm_min):
            why = "the time window is closed"
        elif (
            self._plan.busy is not None
            and (share := self._starter.share_busy()) is not None
            and share > self._plan.busy
        ):
            why = f"{share:.0%} of the cluster is busy"
        if why and not self._running:
            self._say(f"waiting: {why}")
            time.sleep(_WAIT_S)
        return not why


def in_window(window: tuple[int, int] | None, minute: int) -> bool:
    """Whether a minute of the day is in a window, which may go over midnight."""
    if window is None:
        return True
    first, last = window
    return first <= minute < last if first <= last else minute >= first or minute < last
