"""Reads a server's answers into runs and verdicts.

Anything may answer at that address, so every value that will be shown is checked.
"""

from __future__ import annotations

from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.store.runs import Run

_HOURS = ("cpu_coverage", "idle_gpu_hours", "idle_core_hours")
_RUN = get_type_hints(Run)


class NotOurs(ValueError):
    """The answer is not one of a jobs server."""


def run_of(answer: Any) -> Run:
    """A run, from a list or with its verdict; fields of newer servers are ignored. Raises NotOurs."""
    if not isinstance(answer, dict) or "job" not in answer:
        raise NotOurs
    values = {key: value for key, value in answer.items() if key in _RUN}
    if not isinstance(values.get("verdict", ""), str):
        values["verdict"] = (
            answer["verdict"].get("state") if isinstance(answer["verdict"], dict) else "waiting"
        )
    if not all(_is(value, _RUN[key]) for key, value in values.items()):
        raise NotOurs
    return Run(**values)


def verdict_of_run(answer: dict[str, Any]) -> tuple[dict[str, Any] | None, bool]:
    """The verdict of a run (or None), and whether it covers the whole run. Raises NotOurs."""
    verdict, final = answer.get("verdict", ""), answer.get("final")
    if not isinstance(final, bool) or not (verdict is None or _is_verdict(verdict)):
        raise NotOurs
    return verdict, final


def nodes_of(answer: dict[str, Any]) -> tuple[str, ...]:
    """The nodes of a run, which only agents are given; empty otherwise. Raises NotOurs."""
    nodes = answer.get("on", [])
    if not isinstance(nodes, list) or not all(isinstance(each, str) for each in nodes):
        raise NotOurs
    return tuple(nodes)


def _is_verdict(value: Any) -> bool:
    """Whether the parts of a verdict that the summary reads are well-formed."""
    if not isinstance(value, dict) or not isinstance(hours := value.get("hours"), dict):
        return False
    return (
        all(_is(hours.get(name), float) for name in _HOURS)
        and all(isinstance(value.get(name), str) for name in ("state", "rules_hash"))
        and isinstance(value.get("findings"), list)
        and all(_is_finding(each) for each in value["findings"])
    )


def _is_finding(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(texts := value.get(part), dict)
        and all(isinstance(texts.get(each), str) for each in LANGUAGES)
        for part in ("tag", "conclusion", "advice")
    )


def _is(value: Any, hint: Any) -> bool:
    """Whether a JSON value has the type; an integer is also a float."""
    if isinstance(hint, UnionType):
        return any(_is(value, each) for each in get_args(hint))
    kind = get_origin(hint) or hint
    return isinstance(value, (int, float) if kind is float else kind)
