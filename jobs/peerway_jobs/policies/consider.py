"""Which jobs a policy looks at, and what it decides about each; all of it only reads, except the note that a
policy is new.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from peerway_jobs.monitor import Monitor
from peerway_jobs.policies.decide import Decision, decide
from peerway_jobs.policies.evidence import Idleness, idleness
from peerway_jobs.policies.settings import Policies, Policy
from peerway_jobs.store import acts
from peerway_jobs.store.acts import Act
from peerway_jobs.store.runs import Run, of_row


@dataclass(frozen=True)
class Considered:
    """A running job under a policy: what its GPUs do, and what the policy decides."""

    policy: Policy
    run: Run
    dry: bool
    idleness: Idleness
    decision: Decision


def begin(monitor: Monitor, policy: Policy, now: float) -> None:
    """Record that a policy of this form is seen for the first time: its dry run begins."""
    if acts.first_seen(monitor.jobs.reader, policy.name, policy.form) is None:
        acts.record(
            monitor.jobs,
            Act(now, policy.name, policy.form, "begin", evidence={"settings": asdict(policy)}),
        )


def is_dry(monitor: Monitor, policy: Policy, now: float) -> bool:
    """Whether the policy is still in its dry run."""
    first = acts.first_seen(monitor.jobs.reader, policy.name, policy.form)
    return first is None or now - first < policy.dry_run_s


def running(monitor: Monitor) -> list[Run]:
    """The running jobs with GPUs that Slurm has confirmed."""
    rows = monitor.jobs.reader.execute(
        "SELECT * FROM jobs WHERE ended IS NULL AND started IS NOT NULL AND NOT provisional AND gpus > 0 "
        "AND restart >= 0 AND reason != 'agent' ORDER BY started"
    )
    return [run for run in map(of_row, rows) if not run.unreadable]


def considered(monitor: Monitor, policy: Policy, run: Run, now: float) -> Considered:
    """What a policy decides about a run now."""
    dry = is_dry(monitor, policy, now)
    earlier = acts.of_run(monitor.jobs.reader, policy.name, run.job, run.restart, run.started or now)
    warned = [act.at for act in earlier if act.act == "warn" and act.dry == dry]
    within_s = max([policy.idle_s, *(now - at for at in warned[-1:])])
    idle = idleness(monitor, run, now, policy.use, within_s)
    return Considered(policy, run, dry, idle, decide(policy, idle, earlier, now, dry=dry))


def preview(
    monitor: Monitor, policies: Policies, now: float
) -> Iterator[tuple[Policy, Run, str, Considered | None]]:
    """Every running job with GPUs under each policy: why it is exempt, or what is decided about it."""
    for policy in policies.policies:
        for run in running(monitor):
            exempt = policy.exempts(run)
            yield policy, run, exempt, None if exempt else considered(monitor, policy, run, now)


def evidence_of(case: Considered) -> dict[str, Any]:
    """What an act is based on."""
    warned = case.decision.warned
    return {
        "idle_s": case.idleness.idle_s,
        "gpus": case.idleness.gpus,
        "warned": warned.at if warned else None,
        "settings": asdict(case.policy),
        "started": case.run.started,
    }
