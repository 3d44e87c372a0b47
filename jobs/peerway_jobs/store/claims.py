"""Checks what agents claim of jobs against Slurm's record.

A node's token proves only which node it is. If Slurm has a record of a run, an agent's claim about it counts
only if Slurm gave the run this node, and for the same user. Other claims are stored, but do not count, and
raise an alarm for administrators.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from peerway_jobs.hosts import expand_hosts
from peerway_jobs.store.alarms import raise_alarm
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.runs import Run
from peerway_jobs.store.stored import INTERVALS, readable

CLAIMED = ("node_list", "user", "provisional")  # columns of a run; if one changes, claims are checked again
_SLACK_S = 30.0  # like filing.SLACK_MS: a shorter overlap with the run may be another run's


def nodes_of(run: Run) -> set[str]:
    """The nodes that Slurm gave a run, including those that it took back before the end."""
    return {*expand_hosts(run.node_list), *expand_hosts(run.former_nodes)}


def remember_nodes(base: Connection, before: Run, after: Run) -> Run:
    """Remember the nodes that a run has lost between two records of Slurm.

    What their agents reported was true, and is part of what the run used. Nodes that only agents reported do
    not count.
    """
    lost = set() if before.reason == "agent" else nodes_of(before) - set(expand_hosts(after.node_list))
    former = ",".join(sorted(lost))
    if former == after.former_nodes:
        return after
    key = (after.job, after.restart)
    base.execute("UPDATE jobs SET former_nodes = ? WHERE job = ? AND restart = ?", (former, *key))
    return replace(after, former_nodes=former)


def agreeing(run: Run) -> tuple[str, dict[str, Any]]:
    """An SQL condition on intervals or notes of a run, with its values: Slurm's record agrees with them."""
    if run.reason == "agent" or not run.node_list:  # Slurm has no such record
        return "TRUE", {}
    condition = "node IN (SELECT value FROM json_each(:claim_nodes))"
    values: dict[str, Any] = {"claim_nodes": json.dumps(sorted(nodes_of(run)))}
    if run.user:
        condition += " AND coalesce(user, :claim_user) = :claim_user"
        values["claim_user"] = run.user
    return condition, values


def check_claim(base: Connection, run: Run, node: str, user: str | None, now: float) -> None:
    """Raise an alarm if an agent's claim about a run contradicts Slurm's record."""
    if run.reason == "agent" or not run.node_list:
        return
    if node not in nodes_of(run):
        why = f"{node} claims job {run.job}, which Slurm ran on {run.node_list}"
    elif user and run.user and user != run.user:
        why = f"{node} says that job {run.job} is of {user}, Slurm says {run.user}"
    else:
        return
    raise_alarm(base, now, node, "claim", why, run.job)


def check_claims(base: Connection, run: Run, now: float) -> None:
    """Check all earlier claims about a run, now that Slurm has reported it."""
    if run.started is None:
        return
    rows = base.execute(
        "SELECT DISTINCT node, user FROM intervals WHERE job = :job AND step IS NULL "
        "AND start < :last AND coalesce(end, :last + 1) > :first",
        {
            "job": run.job,
            "first": int((run.started + _SLACK_S) * 1000),
            "last": int(((run.ended or now) - _SLACK_S) * 1000),
        },
    ).fetchall()
    for row in rows:
        claim, unreadable = readable(INTERVALS, row)
        if "node" not in unreadable:
            check_claim(base, run, claim["node"], claim["user"], now)
