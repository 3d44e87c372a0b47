"""Stores verdicts with their jobs, and the text of the rules that made them."""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any

from peerway_jobs.rules.hours import Hours
from peerway_jobs.rules.judging import Verdict
from peerway_jobs.rules.ruleset import SEVERITIES, RuleSet
from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import STATES, Run
from peerway_jobs.store.stored import TIME, Unreadable, content, readable
from peerway_jobs.store.transaction import transaction

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def keep_rules(store: JobStore, rules: RuleSet, by: str, now: float) -> None:
    """Store this version of the rules, so that old verdicts can be understood."""
    store.write(
        "INSERT INTO rulesets VALUES (?,?,?,?) ON CONFLICT DO NOTHING", (rules.hash, now, rules.text, by)
    )


def keep(store: JobStore, run: Run, verdict: Verdict, now: float) -> None:
    """Store a verdict: in full, and the columns that lists and sums need in the table of jobs.

    If data has arrived since `run` was read, the run stays due to be judged again.
    """
    body = json.dumps(verdict.body(), separators=(",", ":"))
    with store.lock, transaction(store.writer) as base:
        base.execute(
            "INSERT INTO verdicts VALUES (?,?,?,?,?) ON CONFLICT (job, restart) "
            "DO UPDATE SET rules = excluded.rules, judged = excluded.judged, body = excluded.body",
            (run.job, run.restart, verdict.rules_hash, now, body),
        )
        base.execute(
            "UPDATE jobs SET verdict = :state, tag = :tag, severity = :severity, cpu_efficiency = :cpu, "
            "gpu_efficiency = :gpu, memory_efficiency = :memory, idle_core_hours = :idle_cores, "
            "idle_gpu_hours = :idle_gpus, freed_core_hours = :freed_cores, freed_gpu_hours = :freed_gpus, "
            "judged = CASE WHEN judged = :seen THEN :now ELSE judged END "
            "WHERE job = :job AND restart = :restart",
            _columns(run, verdict, now),
        )


def _columns(run: Run, verdict: Verdict, now: float) -> dict[str, Any]:
    first = verdict.findings[0] if verdict.findings else None
    spent = verdict.hours
    return {
        "job": run.job,
        "restart": run.restart,
        "state": verdict.state,
        "tag": first.rule if first else "",
        "severity": SEVERITIES.index(first.severity) if first else 0,
        "cpu": spent.cpu_efficiency,
        "gpu": spent.gpu_efficiency,
        "memory": spent.memory_efficiency,
        "idle_cores": spent.idle_core_hours,
        "idle_gpus": spent.idle_gpu_hours,
        "freed_cores": verdict.freed_core_hours,
        "freed_gpus": verdict.freed_gpu_hours,
        "now": now,
        "seen": run.judged,
    }


def verdict_of(store: JobStore, run: Run) -> dict[str, Any] | None:
    """The stored verdict of a run; None if there is none yet, or it cannot be read."""
    return read_verdict(store, run)[0]


def read_verdict(store: JobStore, run: Run) -> tuple[dict[str, Any] | None, list[str]]:
    """The stored verdict of a run, and the columns of it that cannot be read."""
    row = store.reader.execute(
        "SELECT body, judged FROM verdicts WHERE job = ? AND restart = ?", (run.job, run.restart)
    ).fetchone()
    values, unreadable = readable(VERDICTS, row)
    verdict = values["body"] and {**values["body"], "judged": values["judged"]}
    return verdict, [f"verdicts.{name}" for name in unreadable]


@cache
def _verdict_type() -> TypeAdapter[Verdict]:
    from pydantic import TypeAdapter

    return TypeAdapter(Verdict)


def _checked_body(body: Any) -> dict[str, Any]:
    """A stored verdict, checked, with the fields that later versions added. Raises Unreadable or
    ValueError.
    """
    if not isinstance(body, dict) or not isinstance(body.get("hours"), dict):
        raise Unreadable
    hours = {each.name: None for each in fields(Hours)} | body["hours"]
    verdict = _verdict_type().validate_python({**body, "hours": hours})  # raises ValueError
    for finding in verdict.findings:
        texts = (finding.tag, finding.conclusion, finding.advice)
        if finding.severity not in SEVERITIES or any(set(each) < set(LANGUAGES) for each in texts):
            raise Unreadable
    if verdict.state not in STATES:
        raise Unreadable
    return verdict.body()


VERDICTS = {"body": content(_checked_body), "judged": TIME}
