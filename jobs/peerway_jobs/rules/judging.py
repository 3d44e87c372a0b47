"""Judges a run by the rules: a verdict with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from peerway_jobs.device_series import Devices
from peerway_jobs.measured import SETS, Measured
from peerway_jobs.rules.expression import BadExpression
from peerway_jobs.rules.functions import FUNCTIONS
from peerway_jobs.rules.hours import Hours, hours
from peerway_jobs.rules.ruleset import SEVERITIES, Rule, RuleSet
from peerway_jobs.rules.template import FALLBACK, LANGUAGES, filled, in_language


@dataclass(frozen=True)
class Finding:
    """One rule that holds for a run: its texts, and the figures behind them."""

    rule: str
    rule_hash: str
    severity: str
    tag: dict[str, str]
    conclusion: dict[str, str]
    advice: dict[str, str]
    figures: dict[str, Any]
    parameters: dict[str, Any]
    coverage: float | None
    frees_gpu_hours: float = 0
    frees_core_hours: float = 0
    script: str = ""  # lines to add to the job's script


@dataclass(frozen=True)
class Verdict:
    """The result of all rules for a run.

    `state` is inefficient, efficient, no data, short (too young to be judged), or unremarkable: no rule
    above a note holds, but the figures do not show an efficient job either.
    """

    state: str
    rules_hash: str
    hours: Hours
    findings: tuple[Finding, ...]
    undecided: tuple[str, ...] = ()  # rules that lack data
    broken: tuple[str, ...] = ()  # rules that could not be computed for this run, and why
    freed_gpu_hours: float = 0
    freed_core_hours: float = 0

    def body(self) -> dict[str, Any]:
        """The verdict as a dictionary, to be stored as JSON."""
        return asdict(self)


@dataclass
class _Names(Mapping[str, Any]):
    """The names that a rule can read: its own figures, its parameters, the job's fields, and sets of
    series.
    """

    own: dict[str, Any]
    parameters: Mapping[str, Any]
    fields: Mapping[str, Any]
    measured: Mapping[str, Devices | None] = field(repr=False)

    def __getitem__(self, name: str) -> Any:
        for where in (self.own, self.parameters, self.fields):
            if name in where:
                return where[name]
        return self.measured[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self.parameters or name in self.fields or name in SETS

    def __iter__(self) -> Any:
        return iter(self.own)

    def __len__(self) -> int:
        return len(self.own)


def judge(rules: RuleSet, measured: Measured, fields: Mapping[str, Any]) -> Verdict:
    """The verdict of all rules on a run; `fields` are its job fields."""
    findings: list[Finding] = []
    undecided: list[str] = []
    broken: list[str] = []
    judged = 0
    blind = False
    for rule in rules.rules:
        try:
            outcome, finding = _outcome_of(rule, measured, fields)
        except (BadExpression, ArithmeticError) as error:
            broken.append(f"{rule.name}: {error}")
            continue
        judged += outcome is not None and "least_elapsed" in rule.applies.names
        if outcome == "no data":
            undecided.append(rule.name)
        elif finding is not None:
            findings.append(finding)
            blind = blind or rule.state == "no data"
    findings.sort(
        key=lambda each: (-SEVERITIES.index(each.severity), -each.frees_gpu_hours, -each.frees_core_hours)
    )
    return _verdict(
        rules, hours(measured, rules.idle, rules.idle_window), findings, undecided, broken, blind, judged > 0
    )


def _verdict(
    rules: RuleSet,
    spent: Hours,
    findings: list[Finding],
    undecided: list[str],
    broken: list[str],
    blind: bool,
    judged: bool,
) -> Verdict:
    counted = [each for each in findings if each.severity in ("warning", "serious")]
    if counted:
        state = "inefficient"
    elif blind or (judged and spent.cpu_coverage < 0.5):
        state = "no data"
    else:
        state = (
            "short" if not judged else "efficient" if _well_used(spent, rules.efficient) else "unremarkable"
        )
    return Verdict(
        state,
        rules.hash,
        spent,
        tuple(findings),
        tuple(undecided),
        tuple(broken),
        # Two findings overlap: acting on both frees what the larger one frees, and never more than there was.
        min(spent.gpu_hours, max((each.frees_gpu_hours for each in findings), default=0)),
        min(spent.core_hours, max((each.frees_core_hours for each in findings), default=0)),
    )


def _well_used(spent: Hours, least: float) -> bool:
    """Whether the figures show that the job used what it had: its GPUs, or its cores if it has no GPU."""
    share = spent.gpu_efficiency if spent.gpu_hours else spent.cpu_efficiency
    return share is not None and share >= least


def _texts_with(texts: Mapping[str, str], figures: Mapping[str, Any]) -> dict[str, str]:
    """A rule's text with its figures, in each language; in English if the rule has no text in that
    language.
    """
    return {
        wanted: filled(texts[lang], figures, lang)
        for wanted in LANGUAGES
        for lang in (wanted if wanted in texts else FALLBACK,)
    }


def _outcome_of(
    rule: Rule, measured: Measured, fields: Mapping[str, Any]
) -> tuple[str | None, Finding | None]:
    """The outcome of one rule: None if it does not apply, "no data", "no", or "yes" with its finding."""
    names = _Names({}, rule.parameters_of(fields), fields, measured)
    if not rule.applies.value(names):
        return None, None
    coverage = _coverage(rule, measured)
    if coverage is not None and coverage < names["least_coverage"]:
        return "no data", None
    for key, expression in rule.values.items():
        names.own[key] = expression.value(names)
    holds = rule.condition.value(names)
    if holds is None:
        return "no data", None
    if not holds:
        return "no", None
    figures = dict(names.own)
    texts = {**names.parameters, **figures}
    freed = {key: max(0.0, expression.value(names) or 0.0) for key, expression in rule.frees.items()}
    return "yes", Finding(
        rule.name,
        rule.hash,
        rule.severity,
        {lang: in_language(rule.tag, lang) for lang in LANGUAGES},
        _texts_with(rule.conclusion, texts),
        _texts_with(rule.advice, texts),
        figures,
        dict(names.parameters),
        coverage,
        freed.get("gpu_hours", 0),
        freed.get("core_hours", 0),
        filled(rule.script, texts, "en"),
    )


def _coverage(rule: Rule, measured: Measured) -> float | None:
    """The smallest share of time with data among the sets that the rule reads and that exist; None
    if none does.
    """
    shares = [FUNCTIONS["coverage"](devices) for name in rule.sets if (devices := measured[name]) is not None]
    return min(shares, default=None)
