"""A campaign as its file says: node types, tests, repeats and limits. What is wrong in it is told with line
and column.
"""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from peerway import whole_file
from peerway.bench.allowance import parse_time
from peerway.launch import hosts
from peerway.printable import printable

NAME = "campaign.toml"
_MOST_BYTES = 1 << 20
_MOST_TASKS = 1_000_000
_KNOWN = {
    "": ("name", "repeats", "seed", "nodes", "launch", "limits", "tests"),
    "launch": ("by", "agent", "options"),
    "limits": ("nodes_at_once", "time", "window", "busy", "tries"),
    "tests": ("name", "command", "types"),
}


class BadPlan(ValueError):
    """A campaign that cannot be run as its file says."""


@dataclass(frozen=True)
class Test:
    """A command that prints records, and the node types that it is for; none: all."""

    name: str
    command: str
    types: tuple[str, ...] = ()


@dataclass(frozen=True)
class Task:
    """One measurement: a test on a node, in a round."""

    round: int
    test: Test
    node: str
    type: str

    @cached_property
    def id(self) -> str:
        """Its name, also of its files."""
        return f"{self.round:04}.{self.test.name}.{self.node}"


@dataclass(frozen=True)
class Plan:
    """A whole campaign. `window`: minutes of the day in which measurements may start; None: all of it."""

    name: str
    nodes: dict[str, tuple[str, ...]]
    tests: tuple[Test, ...]
    repeats: int = 1
    seed: int = 0
    by: str = "hosts"
    agent: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    nodes_at_once: int = 1
    time_s: float = 900
    window: tuple[int, int] | None = None
    busy: float | None = None
    tries: int = 3
    text: str = field(default="", repr=False)

    def tasks(self) -> list[Task]:
        """All measurements, in their order: each round has all of them once, shuffled by the seed, so that
        neither a node nor a test has an hour of its own.
        """
        found = []
        for number in range(self.repeats):
            one = [
                Task(number, test, node, kind)
                for kind, nodes in self.nodes.items()
                for node in nodes
                for test in self.tests
                if not test.types or kind in test.types
            ]
            random.Random(f"{self.seed}.{number}").shuffle(one)
            found += one
        return found

    def type_of(self) -> dict[str, str]:
        """The type of each node."""
        return {node: kind for kind, nodes in self.nodes.items() for node in nodes}


def read(path: Path) -> Plan:
    """The plan of a file. Raises BadPlan, or OSError."""
    try:
        text = whole_file.read(path, _MOST_BYTES).decode("utf-8")
    except ValueError as error:
        raise BadPlan(f"{path}: {error}") from None
    return parse(text, str(path))


def parse(text: str, name: str = NAME) -> Plan:
    """The plan of a text. Raises BadPlan."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        place = f"{where[1]}:{where[2]}" if where else "its end"
        raise BadPlan(f"{name}:{place}: {str(error).partition(' (at ')[0]}") from None
    return _Reader(text, name, found).plan()


def expand(pattern: str) -> list[str]:
    """ "node[01-03,7]" -> node01, node02, node03, node7."""
    match = re.fullmatch(r"([^\[\]]*)\[([\d,-]+)\]([^\[\]]*)", pattern)
    if not match:
        return [pattern]
    found = []
    for part in match[2].split(","):
        low, _, high = part.partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()) or int(high or low) - int(low) >= 100_000:
            raise ValueError(f"'{pattern}' is not a range of nodes; write such as node[01-16]")
        found += [
            f"{match[1]}{number:0{len(low)}}{match[3]}" for number in range(int(low), int(high or low) + 1)
        ]
    return found


class _Reader:
    def __init__(self, text: str, name: str, found: dict[str, Any]) -> None:
        self._lines, self._name, self._found = text.splitlines(), name, found
        self._text = text

    def plan(self) -> Plan:
        self._known("", self._found)
        nodes = self._nodes(self._table("nodes"))
        launch, limits = self._table("launch"), self._table("limits")
        self._known("launch", launch)
        self._known("limits", limits)
        by = self._of("launch", launch, "by", str, "hosts")
        if by not in ("hosts", "slurm"):
            self._wrong("launch", "by", f"'{printable(by)}' is neither hosts nor slurm")
        if "busy" in limits and by != "slurm":
            self._wrong(
                "limits", "busy", 'how busy the cluster is only Slurm says; it needs launch.by = "slurm"'
            )
        plan = Plan(
            name=self._of("", self._found, "name", str, Path(self._name).parent.name or "campaign"),
            nodes=nodes,
            tests=self._tests(set(nodes)),
            repeats=self._number("", self._found, "repeats", 1, 10_000, 1),
            seed=self._number("", self._found, "seed", 0, (1 << 63) - 1, 0),
            by=by,
            agent=tuple(self._of("launch", launch, "agent", str, "").split()),
            options=tuple(self._strings("launch", "options", launch.get("options", []))),
            nodes_at_once=self._number("limits", limits, "nodes_at_once", 1, 100_000, 1),
            time_s=self._time(limits),
            window=self._window(limits),
            busy=self._of("limits", limits, "busy", (int, float), None),
            tries=self._number("limits", limits, "tries", 1, 100, 3),
            text=self._text,
        )
        count = plan.repeats * len(plan.tests) * sum(map(len, nodes.values()))
        if count > _MOST_TASKS:
            self._wrong(
                "", "repeats", f"that makes {count:,} measurements; at most {_MOST_TASKS:,} are taken"
            )
        return plan

    def _nodes(self, table: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        if not table:
            raise BadPlan(
                f'{self._name}: no node type is named; write such as [nodes] and v100 = ["node[01-16]"]'
            )
        seen: dict[str, str] = {}
        found = {}
        for kind, listed in table.items():
            names = []
            for pattern in self._strings("nodes", kind, listed):
                try:
                    names += [host.name for part in expand(pattern) for host in hosts.parse(part)]
                except ValueError as error:
                    self._wrong("nodes", kind, str(error))
            if not names:
                self._wrong("nodes", kind, f"the node type '{printable(kind)}' has no node")
            for name in names:
                if name in seen:
                    self._wrong(
                        "nodes",
                        kind,
                        f"{name} is of {printable(seen[name])} already; a node has one type, named once",
                    )
                seen[name] = kind
            found[kind] = tuple(names)
        return found

    def _tests(self, types: set[str]) -> tuple[Test, ...]:
        listed = self._found.get("tests", [])
        if not isinstance(listed, list) or not listed or not all(isinstance(one, dict) for one in listed):
            raise BadPlan(
                f"{self._name}: no test is given; write [[tests]], a name and a command that prints records"
            )
        found: list[Test] = []
        for number, one in enumerate(listed):
            self._known("tests", one, number)
            for key in ("name", "command"):
                if not isinstance(one.get(key), str) or not one[key].strip():
                    self._wrong("tests", key, f"a test needs a {key}, which is a text", number)
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one["name"]):
                self._wrong(
                    "tests", "name", "a name has letters, digits, - and _ only: files are named by it", number
                )
            if one["name"] in (test.name for test in found):
                self._wrong("tests", "name", f"two tests are called {one['name']}", number)
            wanted = tuple(self._strings("tests", "types", one.get("types", []), number))
            for kind in wanted:
                if kind not in types:
                    self._wrong("tests", "types", f"there is no node type '{printable(kind)}'", number)
            found.append(Test(one["name"], one["command"], wanted))
        return tuple(found)

    def _time(self, limits: dict[str, Any]) -> float:
        try:
            return parse_time(self._of("limits", limits, "time", str, "15m"))
        except ValueError as error:
            self._wrong("limits", "time", str(error))

    def _window(self, limits: dict[str, Any]) -> tuple[int, int] | None:
        text = self._of("limits", limits, "window", str, "")
        if not text:
            return None
        match = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)", text)
        if not match:
            self._wrong(
                "limits", "window", f"'{printable(text)}' is not a time of day; write such as 20:00-06:00"
            )
        return int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])

    def _table(self, key: str) -> dict[str, Any]:
        found = self._found.get(key, {})
        if not isinstance(found, dict):
            self._wrong("", key, f"{key} is a table: [{key}]")
        return found

    def _strings(self, table: str, key: str, found: Any, number: int = 0) -> list[str]:
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self._wrong(table, key, f"{printable(key)} is a list of texts", number)
        return found

    def _of(self, table: str, values: dict[str, Any], key: str, kind: Any, default: Any) -> Any:
        found = values.get(key, default)
        if found is not default and (not isinstance(found, kind) or isinstance(found, bool)):
            self._wrong(
                table,
                key,
                f"{key} is {printable(str(found))}, but must be {'a text' if kind is str else 'a number'}",
            )
        return found

    def _number(
        self, table: str, values: dict[str, Any], key: str, least: int, most: int, default: int
    ) -> int:
        found = self._of(table, values, key, int, default)
        if not least <= found <= most:
            self._wrong(table, key, f"{key} is {found}, but must be from {least} to {most}")
        return int(found)

    def _known(self, table: str, values: dict[str, Any], number: int = 0) -> None:
        for key in values:
            if key not in _KNOWN[table]:
                self._wrong(
                    table,
                    key,
                    f"unknown key '{printable(key)}'; there are {', '.join(_KNOWN[table])}",
                    number,
                )

    def _wrong(self, table: str, key: str, why: str, number: int = 0) -> NoReturn:
        line, column = self._place(table, key, number)
        raise BadPlan(f"{self._name}:{line}:{column}: {why}")

    def _place(self, table: str, key: str, number: int) -> tuple[int, int]:
        """Line and column of a key, in the given one of several tables of a name; of the table where the key
        has no line.
        """
        inside, seen, start = table == "", -1, (1, 1)
        bare = rf"""\s*["']?{re.escape(key)}["']?\s*[=.]"""
        dotted = rf"""\s*{re.escape(table)}\s*\.{bare}"""
        for at, line in enumerate(self._lines, start=1):
            if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                name = head[1].strip("\"'")
                inside = name == table
                seen += inside
                if (name == key and table == "") or (inside and seen == number):
                    start = (at, line.index("[") + 1)
            elif (inside and seen in (-1, number) and re.match(bare, line)) or (
                table and re.match(dotted, line)
            ):
                return at, len(line) - len(line.lstrip()) + 1
        return start
