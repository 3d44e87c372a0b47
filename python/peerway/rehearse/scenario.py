"""An upgrade as its file says: steps with checks, and the campaign that measures what they changed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peerway.bench.allowance import parse_time
from peerway.printable import printable

_KEYS = {"name", "steps", "campaign"}
_STEP_KEYS = {"name", "on", "run", "check", "limit", "user"}
_CAMPAIGN_KEYS = {"file", "user", "folder", "factors", "limit"}


class BadScenario(ValueError):
    """A scenario that cannot be done as its file says."""


@dataclass(frozen=True)
class Step:
    """Commands of a shell on some hosts: what is done, and what must hold after it (status 0 on each)."""

    name: str
    on: str
    run: str = ""
    check: str = ""
    user: str | None = None
    limit_s: float = 60


@dataclass(frozen=True)
class Study:
    """A campaign.toml that a user of the copy runs before and after, in a folder that all hosts see."""

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
    try:
        found = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadScenario(f"{path}: {error}") from None
    _known(path, "the scenario", found, _KEYS)
    steps = found.get("steps", [])
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise BadScenario(f"{path}: no step is given; write [[steps]], a name, on and run or check")
    study = found.get("campaign")
    return Scenario(
        _text(path, "the scenario", found, "name", path.stem),
        tuple(_step(path, number, step) for number, step in enumerate(steps, start=1)),
        None if study is None else _study(path, study),
    )


def _step(path: Path, number: int, values: dict[str, Any]) -> Step:
    where = f"step {number}"
    _known(path, where, values, _STEP_KEYS)
    step = Step(
        _text(path, where, values, "name"),
        _text(path, where, values, "on"),
        _text(path, where, values, "run", ""),
        _text(path, where, values, "check", ""),
        _text(path, where, values, "user", "") or None,
        _time(path, where, values, "60s"),
    )
    if not (step.run or step.check):
        raise BadScenario(f"{path}: {where} ({printable(step.name)}) has neither run nor check")
    return step


def _study(path: Path, values: Any) -> Study:
    if not isinstance(values, dict):
        raise BadScenario(f"{path}: campaign is a table: [campaign]")
    _known(path, "campaign", values, _CAMPAIGN_KEYS)
    factors = values.get("factors", [])
    if not isinstance(factors, list) or not all(isinstance(one, str) for one in factors):
        raise BadScenario(f"{path}: campaign: factors is a list of texts")
    return Study(
        path.parent / _text(path, "campaign", values, "file"),
        _text(path, "campaign", values, "user"),
        _text(path, "campaign", values, "folder"),
        tuple(factors),
        _time(path, "campaign", values, "30m"),
    )


def _time(path: Path, where: str, values: dict[str, Any], default: str) -> float:
    try:
        return parse_time(_text(path, where, values, "limit", default))
    except ValueError as error:
        raise BadScenario(f"{path}: {where}: limit: {error}") from None


def _text(path: Path, where: str, values: dict[str, Any], key: str, default: str | None = None) -> str:
    value = values.get(key, default)
    if not isinstance(value, str):
        raise BadScenario(f"{path}: {where} needs {key}, which is a text")
    return value


def _known(path: Path, where: str, values: dict[str, Any], keys: set[str]) -> None:
    if unknown := sorted(set(values) - keys):
        raise BadScenario(
            f"{path}: {where} has no key {printable(unknown[0])!r}; there are {', '.join(sorted(keys))}"
        )
