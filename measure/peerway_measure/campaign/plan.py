"""A campaign: its node types, tests, repeats and limits, and the list of its measurements."""

from __future__ import annotations

import random
import shlex
import time
from dataclasses import dataclass, field
from functools import cached_property

NODES = "CAMPAIGN_NODES"  # the variable in which a command finds its nodes, with commas between


@dataclass(frozen=True)
class Test:
    """A command that prints records.

    `types` are the node types for which it is meant (none: all). The command takes several nodes of a type
    together. `factors` are variables of its environment, by name.
    """

    name: str
    command: str
    types: tuple[str, ...] = ()
    nodes: int = 1
    factors: tuple[tuple[str, str], ...] = ()

    @property
    def shell(self) -> str:
        """The command line for the shell."""
        variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.factors)
        return f"export {variables}; {self.command}" if variables else self.command


@dataclass(frozen=True)
class Task:
    """One measurement: a test in one round on a node, and together with it on the `others`."""

    round: int
    test: Test
    node: str
    type: str
    others: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """All its nodes."""
        return (self.node, *self.others)

    @cached_property
    def id(self) -> str:
        """Its name, which its files have as well."""
        return f"{self.round:04}.{self.test.name}.{self.node}"


@dataclass(frozen=True)
class Plan:
    """A whole campaign. `window` are the minutes of the day between which measurements may start; None: at
    any time.
    """

    name: str
    nodes: dict[str, tuple[str, ...]]
    tests: tuple[Test, ...]
    repeats: int = 1
    seed: int = 0
    starter: str = "hosts"
    agent: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    nodes_at_once: int = 1
    time_s: float = 900
    window: tuple[int, int] | None = None
    busy: float | None = None
    tries: int = 3
    text: str = field(default="", repr=False)

    def tasks(self) -> list[Task]:
        """All measurements in their order.

        Each round has each of them once, shuffled by the seed, so that no node and no test is always measured
        at the same hour.
        """
        tasks = []
        for number in range(self.repeats):
            round_tasks = [
                Task(number, test, node, kind, self._others(number, test, node, nodes))
                for kind, nodes in self.nodes.items()
                for node in nodes
                for test in self.tests
                if not test.types or kind in test.types
            ]
            random.Random(f"{self.seed}.{number}").shuffle(round_tasks)
            tasks += round_tasks
        return tasks

    def _others(self, number: int, test: Test, node: str, nodes: tuple[str, ...]) -> tuple[str, ...]:
        """The other nodes of a test, drawn anew in each round, so that no node always has the same
        partner.
        """
        if test.nodes == 1:
            return ()
        drawn = random.Random(f"{self.seed}.{number}.{test.name}.{node}")
        return tuple(drawn.sample([other for other in nodes if other != node], test.nodes - 1))

    @property
    def is_open(self) -> bool:
        """Whether measurements may start now."""
        now = time.localtime()
        return in_window(self.window, now.tm_hour * 60 + now.tm_min)

    @property
    def window_text(self) -> str:
        """The window as text, such as "20:00-06:00"."""
        return "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in self.window or (0, 24 * 60))

    def type_of(self) -> dict[str, str]:
        """The type of each node."""
        return {node: kind for kind, nodes in self.nodes.items() for node in nodes}


def in_window(window: tuple[int, int] | None, minute: int) -> bool:
    """Whether a minute of the day is in a window, which may extend over midnight."""
    if window is None:
        return True
    first, last = window
    return first <= minute < last if first <= last else minute >= first or minute < last
