"""Decide what a pass of a campaign does not try again, and why: a measurement, a test on one node, or a whole
node.

A test that cannot work must cost only itself, and a node that is broken only that node. So a node is set
aside when it could not be reached several times in a row, or when two tests fail on it in a row that work
on other nodes of its type. A test on several nodes fails on the node that its error names. Where it names
none, or several, the failure is of all together, and takes none of them out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from peerway_common.units import counted
from peerway_measure.campaign.plan import Task

_MOST_NODES = 12  # that a line names


class _Place(NamedTuple):
    """A test on a node, with the node either as any node of the test or as the one that starts it."""

    test: str
    node: str
    starts: bool


def _on(task: Task, node: str) -> _Place:
    return _Place(task.test.name, node, False)


def _started(task: Task) -> _Place:
    return _Place(task.test.name, task.node, True)


class Failures:
    """The failures of one pass; the next pass tries everything again."""

    def __init__(self, tries: int, finished: Iterable[Task]) -> None:
        self.aside: dict[str, str] = {}  # nodes
        self._tries = tries
        self._of_task: Counter[str] = Counter()
        self._tasks: dict[str, str] = {}
        self._tests: dict[_Place, str] = {}
        self._lost_in_a_row: Counter[_Place] = Counter()
        self._unreached_in_a_row: Counter[str] = Counter()
        self._failed_in_a_row: dict[str, set[str]] = defaultdict(set)
        self._worked: dict[tuple[str, str], set[str]] = defaultdict(set)  # a test on a type: nodes
        for task in finished:
            self.succeeded(task)

    def of(self, task: Task) -> int:
        """How often it failed."""
        return self._of_task[task.id]

    def succeeded(self, task: Task) -> None:
        """Note that the records of a task are on the disk."""
        self._lost_in_a_row.pop(_started(task), None)
        for node in task.nodes:
            self._worked[task.test.name, task.type].add(node)
            self._lost_in_a_row.pop(_on(task, node), None)
            self._reached(node)
            self._failed_in_a_row.pop(node, None)

    def failed(self, task: Task, why: str, unreached: bool, nodes: Sequence[str]) -> list[str]:
        """Take note of it, against these of its nodes; against none, if it is not known which of them failed.
        The lines that tell what is tried no more.
        """
        self._of_task[task.id] += 1
        for node in nodes:
            if unreached:
                self._unreached_in_a_row[node] += 1
            else:
                self._reached(node)
                self._failed_in_a_row[node].add(task.test.name)
        lines = [self._set_aside(task, node, why) for node in nodes]
        if self._of_task[task.id] >= self._tries:
            self._tasks[task.id] = why
            places = [_on(task, node) for node in nodes] or [_started(task)]
            lines += [self._given_up(place, why) for place in places if place.node not in self.aside]
        return [*filter(None, lines)]

    def why_lost(self, task: Task) -> str:
        """Why it is not tried again in this pass; "" if it is."""
        places = [_started(task), *(_on(task, node) for node in task.nodes)]
        return (
            next((self.aside[node] for node in task.nodes if node in self.aside), "")
            or next((self._tests[place] for place in places if place in self._tests), "")
            or self._tasks.get(task.id, "")
        )

    def lines(self, lost: Iterable[Task]) -> list[str]:
        """What was not measured and why, with a line for each reason: a node, or a test on a type."""
        tasks = [task for task in lost if self.aside.keys().isdisjoint(task.nodes)]
        return away_lines(self.aside) + by_test_and_type((task, self.why_lost(task)) for task in tasks)

    def _reached(self, node: str) -> None:
        self._unreached_in_a_row.pop(node, None)

    def _given_up(self, place: _Place, why: str) -> str:
        """The line that says so of a test on a node, after as many lost measurements as a measurement has
        tries; "" before, and after it was said.
        """
        self._lost_in_a_row[place] += 1
        if self._lost_in_a_row[place] < self._tries or place in self._tests:
            return ""
        self._tests[place] = why
        return f"{place.test} is tried no more on {place.node}: {counted(self._tries, 'measurement')} failed"

    def _set_aside(self, task: Task, node: str, why: str) -> str:
        """The line that says so; "" for a node that is not broken, or is already set aside."""
        if node in self.aside or not (known := self._is_broken(task, node)):
            return ""
        self.aside[node] = why
        return f"{node} is set aside: {known}; others go on"

    def _is_broken(self, task: Task, node: str) -> str:
        """What shows that a node is broken; "" if it is not."""
        if (times := self._unreached_in_a_row[node]) >= max(2, self._tries):
            return f"it was not reached {times} times in a row"
        odd = {test for test in self._failed_in_a_row[node] if self._worked[test, task.type] - {node}}
        if len(odd) >= 2:
            return f"{' and '.join(sorted(odd))} failed in a row, which work on other nodes of its type"
        return ""


def by_test_and_type(reasons: Iterable[tuple[Task, str]]) -> list[str]:
    """ "test, type: why (nodes)"."""
    nodes: dict[tuple[str, str, str], list[str]] = {}
    for task, reason in reasons:
        places = nodes.setdefault((task.test.name, task.type, reason), [])
        if (names := " with ".join(task.nodes)) not in places:
            places.append(names)
    return [
        f"{test}, {kind}: {reason} ({_few(where)})" for (test, kind, reason), where in sorted(nodes.items())
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
