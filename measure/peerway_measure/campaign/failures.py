"""Decides what a pass of a campaign no longer tries, and why: a measurement, a test on one node, or a whole
node.

A test that cannot work must cost only its own measurements, and a broken node only those on it. So a node is
set aside if it could not be reached several times in a row, or if two tests in a row failed on it that work
on other nodes of its type.

If a test on several nodes fails, the failure counts against the node that its error names. If the error names
no node or several, it counts against none of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from peerway_common.units import counted
from peerway_measure.campaign.plan import Task

_MOST_NODES = 12  # the most nodes that a line names


class _Place(NamedTuple):
    """A test on a node. With `starts` the node is the one that starts the test; otherwise it is any node of
    it.
    """

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
        self.aside: dict[str, str] = {}  # nodes set aside, with the reason
        self._tries = tries
        self._of_task: Counter[str] = Counter()
        self._tasks: dict[str, str] = {}
        self._tests: dict[_Place, str] = {}
        self._lost_in_a_row: Counter[_Place] = Counter()
        self._unreached_in_a_row: Counter[str] = Counter()
        self._failed_in_a_row: dict[str, set[str]] = defaultdict(set)
        # (test, type of node) -> the nodes on which the test worked
        self._worked: dict[tuple[str, str], set[str]] = defaultdict(set)
        for task in finished:
            self.succeeded(task)

    def of(self, task: Task) -> int:
        """The number of failures of a measurement."""
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
        """Note a failure of a measurement on `nodes`, which is empty if it is not known which of its nodes
        failed. Returns the lines that say what is no longer tried.
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
        """Why a measurement is not tried again in this pass; "" if it is."""
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
        """Note that a measurement of a test on a node is lost. Once the test has lost as many measurements in
        a row there as a measurement has tries, returns the line that says that it is given up; otherwise "".
        """
        self._lost_in_a_row[place] += 1
        if self._lost_in_a_row[place] < self._tries or place in self._tests:
            return ""
        self._tests[place] = why
        return f"{place.test} is tried no more on {place.node}: {counted(self._tries, 'measurement')} failed"

    def _set_aside(self, task: Task, node: str, why: str) -> str:
        """Set a node aside if it is broken, and return the line that says so. "" if it is not broken, or was
        set aside before.
        """
        if node in self.aside or not (known := self._is_broken(task, node)):
            return ""
        self.aside[node] = why
        return f"{node} is set aside: {known}; others go on"

    def _is_broken(self, task: Task, node: str) -> str:
        """Why a node counts as broken; "" if it does not."""
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
