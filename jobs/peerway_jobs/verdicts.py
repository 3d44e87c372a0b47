"""Verdicts kept beside their jobs, with the text of the rules that made them."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from peerway_jobs.rules.engine import Verdict
from peerway_jobs.rules.hours import Hours
from peerway_jobs.rules.load import SEVERITIES, RuleSet
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run
from peerway_jobs.store.transaction import transaction

_NEEDED = {"state", "rules_hash", "hours", "findings"}


def keep_rules(store: JobStore, rules: RuleSet, by: str, now: float) -> None:
    """Keep this version of the rules, so that an old verdict can be understood."""
    store.write("INSERT OR IGNORE INTO rulesets VALUES (?,?,?,?)", (rules.hash, now, rules.text, by))


def keep(store: JobStore, run: Run, verdict: Verdict, now: float) -> None:
    """Keep a verdict: the evidence as a whole, and what lists and sums need beside the jobs. If something
    came since `run` was read, the run is still to be judged anew.
    """
    body = json.dumps(verdict.body(), separators=(",", ":"))
    with store.lock, transaction(store.writer) as base:
        base.execute(
            "INSERT OR REPLACE INTO verdicts VALUES (?,?,?,?,?)",
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
    """The verdict of a run as it was kept; None before the first."""
    row = store.reader.execute(
        "SELECT body, judged FROM verdicts WHERE job = ? AND restart = ?", (run.job, run.restart)
    ).fetchone()
    body = _body(row["body"]) if row else None
    return None if row is None or body is None else {**body, "judged": row["judged"]}


def _body(text: str) -> dict[str, Any] | None:
    """A verdict as it was kept, with the fields that a later version added; None for what is no verdict."""
    try:
        body = json.loads(text)
        spent = {each.name: None for each in fields(Hours)} | body["hours"]
        return {"undecided": (), "broken": (), **body, "hours": spent} if set(body) >= _NEEDED else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
