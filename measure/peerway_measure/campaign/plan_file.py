"""Reads the file of a campaign. Errors name the line and the column."""

from __future__ import annotations

import re
import shlex
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from peerway.launch import hosts
from peerway_common.located_toml import LocatedToml
from peerway_common.printable import printable
from peerway_measure.bench.time_budget import parse_time
from peerway_measure.campaign.node_ranges import expand
from peerway_measure.campaign.plan import NODES, Plan, Test
from peerway_measure.records import NODE_TYPE, ROUND, RUN

NAME = "campaign.toml"
_MOST_TASKS = 1_000_000
_MOST_COMBINATIONS = 1000  # the most combinations of the factors of one test
_LONGEST_NAME = 128
_MINUTE = r"(?:[01]?\d|2[0-3]):[0-5]\d"  # of the day
_OF_THE_SHELL = ("PATH", "HOME", "IFS", "SHELL", NODES)
_NOTED = (NODE_TYPE, ROUND, RUN, "campaign")
_KNOWN = {
    "": ("name", "repeats", "seed", "nodes", "launch", "limits", "tests"),
    "launch": ("by", "agent", "options"),
    "limits": ("nodes_at_once", "time", "window", "busy", "tries"),
    "tests": ("name", "command", "types", "nodes", "factors"),
}


class BadPlan(ValueError):
    """The campaign's file has a mistake, so it cannot be run."""


def read(path: Path) -> Plan:
    """The plan of a file. Raises BadPlan, or OSError."""
    return _Reader(LocatedToml.read(path, BadPlan)).plan()


def parse(text: str, name: str = NAME) -> Plan:
    """The plan of a text. Raises BadPlan."""
    return _Reader(LocatedToml(text, name, BadPlan)).plan()


def _minutes(time: str) -> int:
    """ "06:30" -> 390."""
    hour, _, minute = time.partition(":")
    return 60 * int(hour) + int(minute)


def _is_value(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or type(value) is int


def _whose(name: str) -> str:
    """What already uses a name in the shell of a command or in its records; "" if it is free."""
    if name in _OF_THE_SHELL:
        return "a variable that the shell of a command needs"
    return "what a campaign notes in all records" if name in _NOTED else ""


class _Reader:
    def __init__(self, document: LocatedToml) -> None:
        self._wrong, self._name, self._document = document.wrong, document.name, document.values
        self._text = document.text

    def plan(self) -> Plan:
        self._known("", self._document)
        nodes = self._nodes(self._table("nodes"))
        launch, limits = self._table("launch"), self._table("limits")
        self._known("launch", launch)
        self._known("limits", limits)
        by = self._of("launch", launch, "by", str, "hosts")
        if by not in ("hosts", "slurm"):
            self._wrong("launch", "by", f"'{printable(by)}' is neither hosts nor slurm")
        if "busy" in limits and by != "slurm":
            self._wrong(
                "limits", "busy", 'only Slurm knows how busy the cluster is: busy needs launch.by = "slurm"'
            )
        if not 0 < self._of("limits", limits, "busy", (int, float), 1) <= 1:
            self._wrong(
                "limits", "busy", "busy must be a share of the CPUs, above 0 and at most 1, such as 0.8"
            )
        for key, other in (("options", "slurm"), ("agent", "hosts")):
            if launch.get(key) and by != other:
                self._wrong("launch", key, f'{key} is for by = "{other}", and by is "{by}"')
        plan = Plan(
            name=self._of("", self._document, "name", str, Path(self._name).parent.name or "campaign"),
            nodes=nodes,
            tests=self._tests(nodes),
            repeats=self._number("", self._document, "repeats", 1, 10_000, 1),
            seed=self._number("", self._document, "seed", 0, (1 << 63) - 1, 0),
            starter=by,
            agent=self._agent(launch),
            options=tuple(self._strings("launch", "options", launch.get("options", []))),
            nodes_at_once=self._number("limits", limits, "nodes_at_once", 1, 100_000, 1),
            time_s=self._time(limits),
            window=self._window(limits),
            busy=self._of("limits", limits, "busy", (int, float), None),
            tries=self._number("limits", limits, "tries", 1, 100, 3),
            text=self._text,
        )
        for number, test in enumerate(plan.tests):
            if test.nodes > plan.nodes_at_once:
                self._wrong(
                    "tests",
                    "nodes",
                    f"it needs {test.nodes} nodes, but limits.nodes_at_once is {plan.nodes_at_once}",
                    number,
                )
        count = plan.repeats * len(plan.tests) * sum(map(len, nodes.values()))
        if count > _MOST_TASKS:
            self._wrong("", "repeats", f"that makes {count:,} measurements; the limit is {_MOST_TASKS:,}")
        return plan

    def _nodes(self, table: dict[str, Any]) -> dict[str, tuple[str, ...]]:
        if not table:
            raise BadPlan(
                f'{self._name}: there is no node type; write for example [nodes] and v100 = ["node[01-16]"]'
            )
        seen: dict[str, str] = {}
        by_type = {}
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
                        f"{name} already has the type {printable(seen[name])}; list each node once",
                    )
                seen[name] = kind
            by_type[kind] = tuple(names)
        return by_type

    def _tests(self, types: dict[str, tuple[str, ...]]) -> tuple[Test, ...]:
        listed = self._document.get("tests", [])
        if not isinstance(listed, list) or not listed or not all(isinstance(entry, dict) for entry in listed):
            raise BadPlan(
                f"{self._name}: there is no test; write [[tests]] with a name and a command that prints "
                "records"
            )
        tests: list[Test] = []
        for number, entry in enumerate(listed):
            self._known("tests", entry, number)
            for key in ("name", "command"):
                if not isinstance(entry.get(key), str) or not entry[key].strip():
                    self._wrong("tests", key, f"a test needs {key}, a string", number)
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", entry["name"]):
                self._wrong(
                    "tests",
                    "name",
                    "a name may contain only letters, digits, - and _: files are named after it",
                    number,
                )
            wanted = tuple(self._strings("tests", "types", entry.get("types", []), number))
            for kind in wanted:
                if kind not in types:
                    self._wrong("tests", "types", f"there is no node type '{printable(kind)}'", number)
            nodes = self._together(entry, wanted, types, number)
            for factors in self._combinations(entry, number):
                name = "-".join(
                    [entry["name"], *(re.sub(r"[^A-Za-z0-9_-]", "_", value) for _, value in factors)]
                )
                if len(name) > _LONGEST_NAME:
                    self._wrong("tests", "factors", f"the name {name} is too long for a file", number)
                if name in (test.name for test in tests):
                    self._wrong("tests", "name", f"two tests are called {name}", number)
                tests.append(Test(name, entry["command"], wanted, nodes, factors))
        return tuple(tests)

    def _combinations(self, entry: dict[str, Any], number: int) -> list[tuple[tuple[str, str], ...]]:
        """A test for each combination of its factors; without factors, the test itself."""
        table = entry.get("factors", {})
        if not isinstance(table, dict):
            self._wrong("tests", "factors", 'factors must be a table such as { size = ["1G", "4G"] }', number)
        levels = []
        for name, values in table.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                self._wrong(
                    "tests", "factors", f"'{printable(name)}' cannot name a variable of a shell", number
                )
            if whose := _whose(name):
                self._wrong("tests", "factors", f"{name} is {whose}; give the factor another name", number)
            if not isinstance(values, list) or not values or not all(map(_is_value, values)):
                self._wrong(
                    "tests",
                    "factors",
                    f"{name} must be a list of at least one string or whole number",
                    number,
                )
            levels.append([(name, str(value)) for value in dict.fromkeys(values)])
        if prod(map(len, levels)) > _MOST_COMBINATIONS:
            self._wrong("tests", "factors", f"they have more than {_MOST_COMBINATIONS} combinations", number)
        return [*product(*levels)]

    def _together(
        self, entry: dict[str, Any], wanted: tuple[str, ...], types: dict[str, tuple[str, ...]], number: int
    ) -> int:
        """The number of nodes that a test takes together."""
        count = entry.get("nodes", 1)
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            self._wrong(
                "tests",
                "nodes",
                "nodes must be the number of nodes that a test uses together, such as 2",
                number,
            )
        for kind in wanted or types:
            if len(types[kind]) < count:
                self._wrong(
                    "tests",
                    "nodes",
                    f"it needs {count} nodes of one type, but '{printable(kind)}' has {len(types[kind])}; "
                    "list the types that are large enough in `types`",
                    number,
                )
        return count

    def _agent(self, launch: dict[str, Any]) -> tuple[str, ...]:
        """The words of a command line. A path in it may be quoted."""
        text = self._of("launch", launch, "agent", str, "")
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            self._wrong("launch", "agent", f"'{printable(text)}' is not a command line: {error}")

    def _time(self, limits: dict[str, Any]) -> float:
        text = self._of("limits", limits, "time", str, "15m")
        try:
            return parse_time(text)
        except ValueError as error:
            self._wrong("limits", "time", str(error))

    def _window(self, limits: dict[str, Any]) -> tuple[int, int] | None:
        text = self._of("limits", limits, "window", str, "")
        if not text:
            return None
        match = re.fullmatch(rf"{_MINUTE}-({_MINUTE}|24:00)", text)
        if not match:
            self._wrong(
                "limits",
                "window",
                f"'{printable(text)}' is not a time window; write for example 20:00-06:00",
            )
        first, last = (_minutes(end) for end in text.split("-"))
        if first == last:
            self._wrong(
                "limits",
                "window",
                f"{text} would never open; omit window, or write 00:00-24:00, to measure at any time",
            )
        return first, last

    def _table(self, key: str) -> dict[str, Any]:
        table = self._document.get(key, {})
        if not isinstance(table, dict):
            self._wrong("", key, f"{key} must be a table: [{key}]")
        return table

    def _strings(self, table: str, key: str, values: Any, number: int = 0) -> list[str]:
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            self._wrong(table, key, f"{printable(key)} must be a list of strings", number)
        return values

    def _of(self, table: str, values: dict[str, Any], key: str, kind: Any, default: Any) -> Any:
        value = values.get(key, default)
        if value is not default and (not isinstance(value, kind) or isinstance(value, bool)):
            self._wrong(
                table,
                key,
                f"{key} is {printable(str(value))}, but must be {'a string' if kind is str else 'a number'}",
            )
        return value

    def _number(
        self, table: str, values: dict[str, Any], key: str, least: int, most: int, default: int
    ) -> int:
        value = self._of(table, values, key, int, default)
        if not least <= value <= most:
            self._wrong(table, key, f"{key} is {value}, but must be from {least} to {most}")
        return int(value)

    def _known(self, table: str, values: dict[str, Any], number: int = 0) -> None:
        for key in values:
            if key not in _KNOWN[table]:
                self._wrong(
                    table,
                    key,
                    f"unknown key '{printable(key)}'; there are {', '.join(_KNOWN[table])}",
                    number,
                )
