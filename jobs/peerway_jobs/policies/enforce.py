"""The round of policies: decides for each running job with GPUs, acts within the limits, records each act."""

from __future__ import annotations

import threading
from collections.abc import Callable

from peerway_jobs.mail.digest import is_user_name
from peerway_jobs.mail.post import Never, NotNow, send
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.policies import slurm
from peerway_jobs.policies.consider import Considered, begin, considered, evidence_of, running
from peerway_jobs.policies.holds import Holds
from peerway_jobs.policies.settings import Policies, Policy
from peerway_jobs.policies.texts import mail_about
from peerway_jobs.slurm_json import SlurmFailed
from peerway_jobs.store import acts, audit
from peerway_jobs.store.acts import Act
from peerway_jobs.store.runs import Run

_EVERY_S = 60.0
_FRESH_S = 300.0  # since Slurm's last answer; later nothing is known of what runs
_AGAIN_S = 300.0  # after no data
_REFUSED_S = 86_400.0  # after a warning that the mail server refused
_HOUR_S = 3600.0

Key = tuple[str, str, int, float | None]  # policy, job, restart, start


class Enforcer:
    """Acts by the policies of a server."""

    def __init__(
        self, monitor: Monitor, policies: Policies, mail: Mail | None, tell: Callable[[str], None]
    ) -> None:
        self._monitor, self._policies, self._mail, self._tell = monitor, policies, mail, tell
        self._not_before: dict[Key, float] = {}
        self._holds = Holds(self._record, self._may_act)
        self._reported = ""  # the last failure in the log
        self._failed = False  # in this round

    def work(self, stop: threading.Event) -> None:
        """Do a round each minute, until `stop` is set."""
        while not stop.wait(_EVERY_S):
            try:
                self.round()
            except Exception as error:
                self._report(f"policies: {type(error).__name__}: {error}")

    def round(self) -> None:
        """Consider every running job once, and act."""
        now = self._monitor.clock()
        self._failed = False
        for policy in self._policies.policies:
            begin(self._monitor, policy, now)
        answered = self._monitor.jobs.slurm_answered
        if not answered or now - answered > _FRESH_S:
            self._report("policies do nothing: Slurm has not answered in the last five minutes")
            return
        runs = running(self._monitor)
        keys = {_key(policy, run) for policy in self._policies.policies for run in runs}
        self._not_before = {key: time for key, time in self._not_before.items() if key in keys}
        for policy in self._policies.policies:
            for run in runs:
                self._consider(policy, run, now)
        try:
            self._holds.round(self._monitor, self._policies, runs, now)
        except SlurmFailed as error:
            self._report(f"policies: {error}")
        if not self._failed:
            self._reported = ""

    def _consider(self, policy: Policy, run: Run, now: float) -> None:
        key = _key(policy, run)
        if policy.exempts(run) or self._not_before.get(key, 0.0) > now:
            return
        case = considered(self._monitor, policy, run, now)
        self._holds.saw(case)
        if case.decision.act == "warn":
            self._not_before[key] = now + self._warn(case, now)
        elif case.decision.act == "cancel":
            self._cancel(case, now)
        elif case.idleness.idle_s is None:
            self._not_before[key] = now + _AGAIN_S
        else:
            self._not_before[key] = now + case.decision.again_s

    def _warn(self, case: Considered, now: float) -> float:
        """Warn the owner; returns after how many seconds the job is considered again."""
        outcome, again_s = acts.DONE, 0.0
        if not case.dry and self._mail:
            try:
                self._send("warn", case, now)
            except NotNow as error:  # nothing is recorded, so nothing can follow
                self._report(f"policies: a warning cannot be sent now: {error}")
                return _AGAIN_S
            except Never as error:
                outcome, again_s = f"refused: {error}", _REFUSED_S
        self._record(_act(case, "warn", now, outcome))
        return again_s

    def _cancel(self, case: Considered, now: float) -> None:
        run = case.run
        if not case.dry and not self._may_act(case.policy, now):
            return
        outcome = acts.DONE
        if not case.dry:
            known = slurm.state_of(run.job)
            if known is None or known[0] != "RUNNING" or known[1] != run.started:
                return  # it has ended or begun anew since Slurm was last asked
            outcome = slurm.cancel(run.job)
        self._record(_act(case, "cancel", now, outcome))
        if outcome == acts.DONE and not case.dry:
            try:
                self._send("cancel", case, now)
            except (NotNow, Never) as error:
                self._tell(f"policies: {run.user} was not told that job {run.job} was cancelled: {error}")

    def _send(self, act: str, case: Considered, now: float) -> None:
        assert self._mail is not None
        if not is_user_name(case.run.user):
            raise Never(f"{case.run.user!r} is no user's name")
        send(
            self._mail,
            mail_about(act, self._policies, case.policy, self._mail, case.run, case.idleness, now),
        )

    def _may_act(self, policy: Policy, now: float) -> bool:
        """Whether the policy has acted on fewer jobs in the last hour than it may."""
        lately = [
            act
            for act in acts.since(self._monitor.jobs.reader, now - _HOUR_S)
            if act.policy == policy.name and act.act in ("hold", "cancel") and act.counts
        ]
        if len(lately) < policy.most_an_hour:
            return True
        self._report(f"policy {policy.name} has acted on {len(lately)} jobs in an hour, as many as it may")
        return False

    def _record(self, act: Act) -> None:
        store = self._monitor.jobs
        acts.record(store, act)
        dry = " (dry run)" if act.dry else ""
        detail = f"{act.act} {act.job} of {act.user}{dry}: {act.outcome}"
        audit.note(store, act.at, f"policy {act.policy}", "", "policy acted", detail)
        self._tell(f"policy {act.policy}: {detail}")

    def _report(self, text: str) -> None:
        """Log a failure once, not in each round."""
        self._failed = True
        if text != self._reported:
            self._reported = text
            self._tell(text)


def _key(policy: Policy, run: Run) -> Key:
    return policy.name, run.job, run.restart, run.started


def _act(case: Considered, act: str, now: float, outcome: str) -> Act:
    run = case.run
    return Act(
        now, case.policy.name, case.policy.form, act, run.job, run.restart, run.user, run.account, case.dry,
        outcome, evidence_of(case),
    )  # fmt: skip
