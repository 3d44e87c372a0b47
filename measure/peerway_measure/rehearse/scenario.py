"""The file of an upgrade: steps with checks, and the campaign that measures what they changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from peerway_common.located_toml import LocatedToml
from peerway_common.printable import printable
from peerway_measure.bench.time_budget import parse_time

_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_KEYS = {"name", "steps", "campaign"}
_STEP_KEYS = {"name", "on", "run", "check", "limit", "user"}
_CAMPAIGN_KEYS = {"file", "user", "folder", "factors", "limit"}


class BadScenario(ValueError):
    """The scenario's file has a mistake, so it cannot be carried out."""


@dataclass(frozen=True)
class Step:
    """Shell commands on some hosts: an action, and a check that must then succeed (status 0) on each host."""

    name: str
    on: str
    run: str = ""
    check: str = ""
    user: str | None = None
    limit_s: float = 60


@dataclass(frozen=True)
class Study:
    """A campaign that a user of the copy runs before and after the upgrade, in a folder that all
    hosts see.
    """

    file: Path
    user: str
    folder: str
    factors: tuple[str, ...] = ()
    limit_s: float = 1800


@dataclass(frozen=True)
class Scenario:
    """The whole upgrade."""

    name: str
    steps: tuple[Step, ...]
    study: Study | None = None


def read(path: Path) -> Scenario:
    """The scenario of a file. Raises BadScenario and OSError."""
    document = LocatedToml.read(path, BadScenario)
    whole = _Table(document, "", 0, "the scenario", document.values)
    whole.known(_KEYS)
    steps = document.values.get("steps", [])
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        document.wrong("", "steps", "there is no step; write [[steps]] with name, on, and run or check")
    study = document.values.get("campaign")
    name = whole.text("name", path.stem)
    if not _NAME.fullmatch(name):
        why = f"is called {name!r}; a folder is named by it: use up to 64 letters, digits, '.', '_' and '-'"
        whole.wrong("name", why)
    return Scenario(
        name,
        tuple(
            _step(_Table(document, "steps", number, f"step {number + 1}", step))
            for number, step in enumerate(steps)
        ),
        None if study is None else _study(document, study, path.parent),
    )


@dataclass(frozen=True)
class _Table:
    """One table of the file, with the name that messages give it."""

    document: LocatedToml
    name: str
    number: int
    called: str
    values: dict[str, Any]

    def wrong(self, key: str, why: str) -> NoReturn:
        self.document.wrong(self.name, key, f"{self.called} {why}", self.number)

    def known(self, keys: set[str]) -> None:
        if unknown := [key for key in self.values if key not in keys]:
            self.wrong(
                unknown[0], f"has no key {printable(unknown[0])!r}; there are {', '.join(sorted(keys))}"
            )

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            self.wrong(key, f"needs {key}, a string")
        return value

    def time(self, default: str) -> float:
        text = self.text("limit", default)
        try:
            return parse_time(text)
        except ValueError as error:
            self.wrong("limit", f"has an invalid limit: {error}")


def _step(table: _Table) -> Step:
    table.known(_STEP_KEYS)
    step = Step(
        table.text("name"),
        table.text("on"),
        table.text("run", ""),
        table.text("check", ""),
        table.text("user", "") or None,
        table.time("60s"),
    )
    if not (step.run or step.check):
        table.wrong("name", f"({printable(step.name)}) has neither run nor check")
    return step


def _study(document: LocatedToml, values: Any, folder: Path) -> Study:
    if not isinstance(values, dict):
        document.wrong("", "campaign", "campaign must be a table: [campaign]")
    table = _Table(document, "campaign", 0, "campaign", values)
    table.known(_CAMPAIGN_KEYS)
    factors = values.get("factors", [])
    if not isinstance(factors, list) or not all(isinstance(factor, str) for factor in factors):
        table.wrong("factors", "has factors that are not a list of strings")
    return Study(
        folder / table.text("file"),
        table.text("user"),
        table.text("folder"),
        tuple(factors),
        table.time("30m"),
    )
