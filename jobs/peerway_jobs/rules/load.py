"""Reads a file of rules. An error gives its line and column."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from peerway_common import atomic_file
from peerway_common.printable import shortened
from peerway_common.suggestion import did_you_mean
from peerway_jobs.measured import SETS
from peerway_jobs.rules.expression import BadExpression, Expression
from peerway_jobs.rules.functions import FUNCTIONS, RENAMED, TAKES_NONE
from peerway_jobs.rules.job_fields import FIELDS
from peerway_jobs.rules.quantity import quantity
from peerway_jobs.rules.ruleset import SEVERITIES, Rule, RuleSet, Variant
from peerway_jobs.rules.template import FALLBACK, LANGUAGES, wrong

SHIPPED = Path(__file__).with_name("rules.toml")
MOST_BYTES = 1 << 20

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TABLE = re.compile(r"^[ \t]*(\[\[ *rule *\]\])", re.MULTILINE)
_RULE_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
_KEYS = {
    "name", "tag", "severity", "state", "applies", "parameters", "values", "condition", "frees",
    "conclusion", "advice", "for", "script",
}  # fmt: skip
# Parameters that define "idle" and "efficient" for all jobs, if the file does not set them.
EVERY_JOB = {"idle": 0.01, "idle_window": 600.0, "efficient": 0.5}
# The parameters that every rule has, if the file does not set them.
DEFAULTS = {"least_elapsed": 600.0, "least_coverage": 0.5, **EVERY_JOB}
_CHOOSERS = ("partition", "node_type", "gpu_type")


class BadRules(ValueError):
    """The rules cannot be used; the message says where and why."""


def read_rules(path: Path = SHIPPED) -> RuleSet:
    """The rules in a file. Raises BadRules, OSError."""
    try:
        text = atomic_file.text(path, MOST_BYTES)
    except ValueError as error:
        raise BadRules(str(error)) from None
    try:
        return rules_of(text)
    except BadRules as error:
        raise BadRules(f"{path}: {error}") from None


def rules_of(text: str) -> RuleSet:
    """The rules in a text. Raises BadRules."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRules(str(error)) from None
    reader = _Reader(text, content)
    rules = tuple(reader.rules())
    return RuleSet(_hash(text), text, rules, *reader.of_every_job(), tuple(reader.notes))


def _shown(value: object) -> str:
    """A value from the file, in an error."""
    return shortened(repr(value))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Reader:
    """Reads one file of rules."""

    def __init__(self, text: str, content: dict[str, Any]) -> None:
        self._text, self._content = text, content
        self._rule = ""
        self._start = 0  # where the current rule begins in the text; 0 if unknown
        self.notes: list[str] = []

    def of_every_job(self) -> tuple[float, float, float]:
        """The settings for all jobs: at most this utilization is idle, if for this many seconds;
        the share that an efficient job uses.
        """
        defaults = self._defaults()
        self._rule = ""
        for name in EVERY_JOB:
            if isinstance(defaults[name], bool) or not isinstance(defaults[name], (int, float)):
                self._refuse(
                    f"defaults: {name} must be a number or a duration, not {_shown(defaults[name])}",
                    f"{name} =",
                )
        if not 0 <= defaults["idle"] < 1:
            self._refuse(f"defaults: idle = {defaults['idle']:g}; it may be from 0 to below 1", "idle =")
        if not 0 <= defaults["efficient"] <= 1:
            self._refuse(
                f"defaults: efficient = {defaults['efficient']:g}; it may be from 0 to 1", "efficient ="
            )
        return float(defaults["idle"]), float(defaults["idle_window"]), float(defaults["efficient"])

    def _defaults(self) -> dict[str, Any]:
        return DEFAULTS | self._parameters(self._table(self._content, "defaults"), "defaults")

    def rules(self) -> Iterator[Rule]:
        unknown = set(self._content) - {"defaults", "for", "rule"}
        if unknown:
            self._refuse(f"there is no {', '.join(sorted(unknown))}; a file has defaults, for and rule")
        defaults = self._defaults()
        variants = self._variants(self._content, defaults)
        names: set[str] = set()
        tables = self._content.get("rule", [])
        if not isinstance(tables, list) or not all(isinstance(each, dict) for each in tables):
            self._refuse("each rule must be a table [[rule]]")
        starts = [match.start(1) for match in _TABLE.finditer(self._text)]
        for number, table in enumerate(tables):
            self._start = starts[number] if len(starts) == len(tables) else 0
            rule = self._rule_of(table, defaults, variants)
            if rule.name in names:
                self._refuse("an earlier rule has this name: give this one another")
            names.add(rule.name)
            yield rule

    def _rule_of(self, table: dict[str, Any], defaults: dict[str, Any], variants: list[Variant]) -> Rule:
        name = table.get("name")
        self._rule = name if isinstance(name, str) else "?"
        if not isinstance(name, str) or not _RULE_NAME.fullmatch(name):
            self._refuse(
                f"name = {_shown(name)}; a rule's name has up to 64 of a-z, 0-9 and -, first a letter"
            )
        if unknown := set(table) - _KEYS:
            self._refuse(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(_KEYS))}")
        own = self._parameters(self._table(table, "parameters"), "parameters")
        parameters = defaults | own
        # A rule's own value overrides a variant of the defaults; a variant of the rule overrides both.
        outer = [
            Variant(v.chooses, {k: x for k, x in v.parameters.items() if k not in own}) for v in variants
        ]
        inner = self._variants(table, parameters)
        known = set(SETS) | set(FIELDS) | set(parameters)
        applies = self._expression(table, "applies", set(FIELDS) | set(parameters))
        values: dict[str, Expression] = {}
        for key in self._table(table, "values"):
            if not _NAME.fullmatch(key):
                self._refuse(f"values: a figure's name has only a-z, 0-9 and _, unlike {_shown(key)}")
            if key in parameters:
                self._refuse(f"values: {key} is a parameter already: give the figure another name")
            values[key] = self._expression(table["values"], key, known | set(values))
        condition = self._expression(table, "condition", known | set(values))
        frees = {
            key: self._expression(table["frees"], key, known | set(values))
            for key in self._table(table, "frees")
        }
        if extra := set(frees) - {"gpu_hours", "core_hours"}:
            self._refuse(f"frees: there is no {', '.join(sorted(extra))}; there are gpu_hours and core_hours")
        severity = table.get("severity", "warning")
        if severity not in SEVERITIES:
            self._refuse(f"the severity is one of {', '.join(SEVERITIES)}, not {severity!r}")
        state = table.get("state", "inefficient")
        if state not in ("inefficient", "no data"):
            self._refuse(f'the state is "inefficient" or "no data", not {state!r}')
        texts = {
            key: self._texts(table, key, set(values) | set(parameters))
            for key in ("tag", "conclusion", "advice")
        }
        script = table.get("script", "")
        if not isinstance(script, str):
            self._refuse("script must be a string")
        if why := wrong(script, set(values) | set(parameters)):
            self._refuse(f"script: {why}", script)
        digest = _hash(repr((sorted(table.items(), key=lambda item: item[0]), parameters, outer)))
        return Rule(
            name,
            digest,
            texts["tag"],
            severity,
            state,
            applies,
            condition,
            values,
            frees,
            parameters,
            (*outer, *inner),
            texts["conclusion"],
            texts["advice"],
            script,
        )

    # -- parts

    def _table(self, of: dict[str, Any], key: str) -> dict[str, Any]:
        table = of.get(key, {})
        if not isinstance(table, dict):
            self._refuse(f"{key} must be a table, not {_shown(table)}")
        return dict(table)

    def _parameters(self, table: dict[str, Any], where: str) -> dict[str, Any]:
        return {key: self._quantity(where, key, value) for key, value in table.items()}

    def _quantity(self, where: str, key: str, value: Any) -> Any:
        if not _NAME.fullmatch(key):
            self._refuse(f"{where}: a parameter's name has only a-z, 0-9 and _, unlike {_shown(key)}")
        try:
            value = quantity(value)
        except ValueError as error:
            self._refuse(f"{where}: {key} = {error}", f'"{value}"')
        if not isinstance(value, (bool, int, float, str)):
            self._refuse(f"{where}: {key} must be a number, a text, a duration or a size")
        return value

    def _variants(self, of: dict[str, Any], parameters: Mapping[str, Any]) -> list[Variant]:
        variants = []
        several = of.get("for", [])
        if not isinstance(several, list) or not all(isinstance(each, dict) for each in several):
            self._refuse("parameters for some jobs must be tables [[for]]")
        for table in several:
            chooses = {name: table[name] for name in _CHOOSERS if name in table}
            if not chooses:
                self._refuse(f"[[for]] must name the jobs by {', '.join(_CHOOSERS)}")
            rest = self._parameters({k: v for k, v in table.items() if k not in _CHOOSERS}, "for")
            if unknown := set(rest) - set(parameters):
                self._refuse(
                    f"for: there is no parameter {', '.join(sorted(unknown))}; there are "
                    f"{', '.join(sorted(parameters))}"
                )
            variants.append(Variant(chooses, rest))
        return variants

    def _texts(self, table: dict[str, Any], key: str, names: set[str]) -> dict[str, str]:
        texts = self._table(table, key)
        if FALLBACK not in texts:
            self._refuse(f"{key} has no text in {FALLBACK}, which a rule needs; others may be left out")
        for language, text in texts.items():
            if not isinstance(text, str) or not text:
                self._refuse(f"{key}.{language} must be a string that is not empty")
            if why := wrong(text, names):
                self._refuse(f"{key}.{language}: {why}", text)
        if extra := set(texts) - set(LANGUAGES):
            self._refuse(f"{key}: texts are in {', '.join(LANGUAGES)}, not {', '.join(sorted(extra))}")
        return texts

    def _expression(self, table: dict[str, Any], key: str, known: set[str]) -> Expression:
        text = table.get(key)
        if not isinstance(text, str):
            self._refuse(f"{key} must be an expression in quotes")
        try:
            expression = Expression(text, FUNCTIONS, TAKES_NONE, RENAMED)
            self.notes += [
                f"rule {self._rule}, {key}: {old} is now {RENAMED[old]}; the old name works for one release"
                for old in sorted(expression.old_names)
            ]
            for name, place in expression.names.items():
                if name not in known:
                    raise BadExpression(f"there is no {name}{did_you_mean(name, known)}", *place)
        except BadExpression as error:
            self._refuse(f"{key}: {error}", text, error.line, error.column)
        return expression

    def _refuse(self, why: str, quoted: str = "", line: int = 1, column: int = 0) -> NoReturn:
        at = self._text.find(f'"{self._rule}"', self._start) if self._rule else 0
        at = at if at >= 0 else self._start
        if quoted:
            position = self._text.find(quoted, max(at, 0))
            at = position if position >= 0 else at
        first = self._text.count("\n", 0, max(at, 0)) + line
        offset = at - self._text.rfind("\n", 0, max(at, 0)) if line == 1 else 1
        where = f"line {first}" + (f", column {offset + column - 1}" if column else "")
        raise BadRules(f"{where}{f', rule {self._rule}' if self._rule else ''}: {why}")
