"""Judges ended jobs by other rules, so that a change of rules can be tried before it is made."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from peerway_jobs.rules.ruleset import RuleSet
from peerway_jobs.store.runs import Run, of_row

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor

MOST_SHOWN = 100


def replayed(monitor: Monitor, rules: RuleSet, since: float, most: int) -> dict[str, Any]:
    """Judge the newest ended jobs by the rules in force and by `rules`, and compare the verdicts.

    At most `most` jobs that ended after `since` (s since 1970) are judged, on the samples still stored.
    Nothing is changed.
    """
    rows = monitor.jobs.reader.execute(
        "SELECT * FROM jobs WHERE ended >= ? AND NOT provisional ORDER BY ended DESC LIMIT ?",
        (since, most + 1),
    ).fetchall()
    runs = [run for run in map(of_row, rows[:most]) if run.has_key]
    counts: dict[str, Counter[str]] = {"before": Counter(), "after": Counter()}
    states: dict[str, Counter[str]] = {"before": Counter(), "after": Counter()}
    freed = {"before": [0.0, 0.0], "after": [0.0, 0.0]}
    changed = []
    for run in runs:
        outcomes = {}
        for when, which in (("before", monitor.rules), ("after", rules)):
            verdict = monitor.judge(run, which)
            names = [finding.rule for finding in verdict.findings]
            outcomes[when] = (verdict.state, names)
            counts[when].update(names)
            states[when][verdict.state] += 1
            freed[when][0] += verdict.freed_gpu_hours
            freed[when][1] += verdict.freed_core_hours
        if outcomes["before"] != outcomes["after"]:
            changed.append(_change(run, outcomes))
    return {
        "judged": len(runs),
        "more": len(rows) > most,
        "rules": {"before": monitor.rules.hash, "after": rules.hash},
        "states": {when: dict(each) for when, each in states.items()},
        "findings": {
            name: [counts["before"][name], counts["after"][name]]
            for name in sorted(counts["before"] | counts["after"])
        },
        "freed_gpu_hours": [freed["before"][0], freed["after"][0]],
        "freed_core_hours": [freed["before"][1], freed["after"][1]],
        "changed": len(changed),
        "jobs": changed[:MOST_SHOWN],
    }


def _change(run: Run, outcomes: dict[str, tuple[str, list[str]]]) -> dict[str, Any]:
    before, after = outcomes["before"], outcomes["after"]
    return {
        "job": run.job,
        "restart": run.restart,
        "user": run.user,
        "state": [before[0], after[0]],
        "gone": [name for name in before[1] if name not in after[1]],
        "new": [name for name in after[1] if name not in before[1]],
    }
