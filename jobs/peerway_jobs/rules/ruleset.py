"""Rules that were read and checked: `load.py` makes them, `judging.py` judges by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from peerway_jobs.measured import SETS
from peerway_jobs.rules.expression import Expression
from peerway_jobs.rules.hours import OF_HOURS

SEVERITIES = ("none", "note", "warning", "serious")


@dataclass(frozen=True)
class Variant:
    """Parameters for the jobs whose fields have the values in `chooses`."""

    chooses: Mapping[str, str]
    parameters: Mapping[str, Any]

    def fits(self, fields: Mapping[str, Any]) -> bool:
        """Whether it is for a job with these fields."""
        return all(fields.get(f"job.{name}") == value for name, value in self.chooses.items())


@dataclass(frozen=True)
class Rule:
    """One rule, checked."""

    name: str
    hash: str
    tag: Mapping[str, str]
    severity: str
    state: str
    applies: Expression
    condition: Expression
    values: Mapping[str, Expression]
    frees: Mapping[str, Expression]
    parameters: Mapping[str, Any]
    variants: tuple[Variant, ...]
    conclusion: Mapping[str, str]
    advice: Mapping[str, str]
    script: str = ""

    @property
    def sets(self) -> frozenset[str]:
        """The sets of series that the rule reads."""
        expressions = (self.condition, *self.values.values())
        return frozenset(name for each in expressions for name in each.names if name in SETS)

    def parameters_of(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters for a job with these fields; if several variants fit, the last one counts."""
        chosen = dict(self.parameters)
        for variant in self.variants:
            if variant.fits(fields):
                chosen |= variant.parameters
        return chosen


@dataclass(frozen=True)
class RuleSet:
    """All rules of a file.

    `hash` identifies this version of the file. `idle` (utilization) and `idle_window` (s) define idle hours;
    `efficient` is the share of its GPUs or cores that an efficient job uses. `notes` say what works only in
    this release.
    """

    hash: str
    text: str
    rules: tuple[Rule, ...]
    idle: float
    idle_window: float
    efficient: float
    notes: tuple[str, ...] = ()

    @cached_property
    def sets(self) -> frozenset[str]:
        """The sets of series that a verdict by these rules reads."""
        return frozenset(OF_HOURS).union(
            name
            for rule in self.rules
            for each in (rule.applies, rule.condition, *rule.values.values(), *rule.frees.values())
            for name in each.names
            if name in SETS
        )
