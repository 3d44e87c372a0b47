"""Holds the waiting jobs of accounts with an idle job, and releases them when that job ends or computes."""

from __future__ import annotations

from collections.abc import Callable, Collection

from peerway_jobs.monitor import Monitor
from peerway_jobs.policies import slurm
from peerway_jobs.policies.consider import Considered
from peerway_jobs.policies.decide import RETRY_S
from peerway_jobs.policies.settings import Policies, Policy
from peerway_jobs.store import acts
from peerway_jobs.store.acts import Act
from peerway_jobs.store.runs import Run

Cause = tuple[str, str, int]  # policy, job, restart of the idle job


class Holds:
    """Remembers which idle jobs hold up their accounts, and which of them compute again."""

    def __init__(self, record: Callable[[Act], None], may_act: Callable[[Policy, float], bool]) -> None:
        self._record, self._may_act = record, may_act
        self._idle: dict[Cause, Considered] = {}
        self._computing: set[Cause] = set()

    def saw(self, case: Considered) -> None:
        """Take what was decided about a running job. Without data nothing changes."""
        cause = (case.policy.name, case.run.job, case.run.restart)
        if case.idleness.idle_s is None:
            self._idle.pop(cause, None)  # no further job is held; those that are stay so
        elif case.decision.act == "hold":
            self._idle[cause] = case
            self._computing.discard(cause)
        else:
            self._idle.pop(cause, None)
            if case.idleness.idle_s < case.policy.idle_s:
                self._computing.add(cause)

    def round(self, monitor: Monitor, policies: Policies, runs: Collection[Run], now: float) -> None:
        """Hold and release. Raises SlurmFailed if Slurm does not say which jobs wait."""
        live = {(run.job, run.restart): run for run in runs}
        self._release(monitor, policies, live, now)
        for cause, case in list(self._idle.items()):
            if cause[1:] not in live:
                del self._idle[cause]
            elif case.run.account:
                self._hold(monitor, case, now)
        self._computing = {cause for cause in self._computing if cause[1:] in live}

    def _hold(self, monitor: Monitor, case: Considered, now: float) -> None:
        policy, warned = case.policy, case.decision.warned
        assert warned is not None
        base = monitor.jobs.reader
        for waiting in slurm.waiting_jobs(case.run.account):
            exempt = waiting.user in policy.exempt_users or waiting.project in policy.exempt_projects
            # A job that was held before and waits again was released by a person, who knows better.
            known = acts.of_run(base, policy.name, waiting.job, 0, warned.at)
            done = [act for act in known if act.dry == case.dry and act.outcome == acts.DONE]
            lately = [act for act in known if now - act.at < RETRY_S]
            if exempt or waiting.submitted <= warned.at or done or lately:
                continue
            if not case.dry and not self._may_act(policy, now):
                return
            outcome = acts.DONE if case.dry else slurm.hold(waiting.job)
            evidence = {
                "because": {"job": case.run.job, "restart": case.run.restart, "idle_s": case.idleness.idle_s,
                            "gpus": case.idleness.gpus},
                "warned": warned.at, "submitted": waiting.submitted,
            }  # fmt: skip
            self._record(
                Act(now, policy.name, policy.form, "hold", waiting.job, 0, waiting.user, waiting.account,
                    case.dry, outcome, evidence)
            )  # fmt: skip

    def _release(
        self, monitor: Monitor, policies: Policies, live: dict[tuple[str, int], Run], now: float
    ) -> None:
        by_name = {policy.name: policy for policy in policies.policies}
        for act in acts.held(monitor.jobs.reader):
            because = act.evidence.get("because", {})
            cause = (act.policy, str(because.get("job")), int(because.get("restart", 0)))
            run, policy = live.get(cause[1:]), by_name.get(act.policy)
            if run is None:
                why = "the idle job has ended"
            elif cause in self._computing:
                why = "the idle job computes again"
            elif policy is None or policy.action != "hold" or policy.exempts(run):
                why = "the policy no longer concerns the idle job"
            else:
                continue
            tried = acts.of_run(monitor.jobs.reader, act.policy, act.job, 0, now - RETRY_S)
            if any(each.act == "release" for each in tried):
                continue
            outcome = slurm.release(act.job)
            if outcome != acts.DONE and slurm.state_of(act.job) is None:
                outcome = acts.DONE  # it is gone, so there is nothing to release
            self._record(
                Act(now, act.policy, act.form, "release", act.job, 0, act.user, act.account, False, outcome,
                    {"why": why, "because": because})
            )  # fmt: skip
