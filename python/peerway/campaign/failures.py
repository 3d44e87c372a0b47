"""What a pass of a campaign tries no more, and why: a measurement, a test on one node, or a whole node.

A test that cannot work must cost only itself, and a node that is broken only that node. So a node is set
aside when it could not be reached several times in a row, or when two tests fail on it in a row that work
on other nodes of its type.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from peerway.campaign.plan import Task

_MOST_NODES = 12  # that a line names


class Failures:
    """Of one pass; another one tries everything again."""

    def __init__(self, tries: int, finished: Iterable[Task]) -> None:
        self.aside: dict[str, str] = {}  # nodes
        self._tries = tries
        self._of_task: Counter[str] = Counter()
        self._tasks: dict[str, str] = {}
        self._tests: dict[tuple[str, str], str] = {}  # of a test on a node
        self._lost_in_a_row: Counter[tuple[str, str]] = Counter()
        self._unreached_in_a_row: Counter[str] = Counter()
        self._failed_in_a_row: dict[str, set[str]] = defaultdict(set)
        self._worked: dict[tuple[str, str], set[str]] = defaultdict(set)  # a test on a type: nodes
        for task in finished:
            self.succeeded(task)

    def of(self, task: Task) -> int:
        """How often it failed."""
        return self._of_task[task.id]

    def succeeded(self, task: Task) -> None:
        """Its records are on the disk."""
        self._worked[task.test.name, task.type].add(task.node)
        self._lost_in_a_row.pop((task.test.name, task.node), None)
        self._reached(task.node)
        self._failed_in_a_row.pop(task.node, None)

    def failed(self, task: Task, why: str, unreached: bool) -> str:
        """Take note of it. The line that tells what is tried no more, if something is not."""
        place = (task.test.name, task.node)
        self._of_task[task.id] += 1
        if unreached:
            self._unreached_in_a_row[task.node] += 1
        else:
            self._reached(task.node)
            self._failed_in_a_row[task.node].add(task.test.name)
        if self._of_task[task.id] >= self._tries:
            self._tasks[task.id] = why
            self._lost_in_a_row[place] += 1
        if said := self._is_broken(task):
            self.aside[task.node] = why
            return f"{task.node} is set aside: {said}; others go on"
        if self._lost_in_a_row[place] >= self._tries and place not in self._tests:
            self._tests[place] = why
            return f"{task.test.name} is tried no more on {task.node}: {self._tries} measurements failed"
        return ""

    def why_lost(self, task: Task) -> str:
        """Why it is not tried in this pass any more; "" for one that is."""
        return (
            next((self.aside[node] for node in task.nodes if node in self.aside), "")
            or self._tests.get((task.test.name, task.node))
            or self._tasks.get(task.id, "")
        )

    def lines(self, lost: Iterable[Task]) -> list[str]:
        """What was not measured and why, a line for each reason: a node, or a test on a type."""
        tasks = [task for task in lost if self.aside.keys().isdisjoint(task.nodes)]
        return away_lines(self.aside) + by_test_and_type((task, self.why_lost(task)) for task in tasks)

    def _reached(self, node: str) -> None:
        self._unreached_in_a_row.pop(node, None)

    def _is_broken(self, task: Task) -> str:
        """By what a node is known to be broken; "" for one that is not, or is set aside already."""
        if task.node in self.aside:
            return ""
        if (times := self._unreached_in_a_row[task.node]) >= max(2, self._tries):
            return f"it was not reached {times} times in a row"
        odd = {
            test for test in self._failed_in_a_row[task.node] if self._worked[test, task.type] - {task.node}
        }
        if len(odd) >= 2:
            return f"{' and '.join(sorted(odd))} failed in a row, which work on other nodes of its type"
        return ""


def by_test_and_type(reasons: Iterable[tuple[Task, str]]) -> list[str]:
    """ "test, type: why (nodes)"."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for task, reason in reasons:
        there = nodes.setdefault((task.test.name, task.type, reason), [])
        if task.node not in there:
            there.append(task.node)
    return [
        f"{test}, {kind}: {reason} ({_few(names)})" for (test, kind, reason), names in sorted(nodes.items())
    ]


def away_lines(away: Mapping[str, str]) -> list[str]:
    """ "nodes: why"."""
    nodes: dict[str, list[str]] = {}
    for node, why in away.items():
        nodes.setdefault(why, []).append(node)
    return [f"{_few(names)}: {why}" for why, names in nodes.items()]


def _few(names: list[str]) -> str:
    more = len(names) - _MOST_NODES
    return ", ".join(sorted(names)[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
