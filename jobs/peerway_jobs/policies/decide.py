"""What a policy does about a running job now: a pure function of what is known, which changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peerway_jobs.policies.evidence import Idleness
from peerway_jobs.policies.settings import Policy
from peerway_jobs.store.acts import DONE, Act

RETRY_S = 600.0  # after an act that failed


@dataclass(frozen=True)
class Decision:
    """`act` is warn, hold, cancel or empty; `why` says why nothing is done. `again_s` is after how many
    seconds this can change at the earliest.
    """

    act: str
    why: str = ""
    again_s: float = 0.0
    warned: Act | None = None


def decide(policy: Policy, idleness: Idleness, acts: Sequence[Act], now: float, *, dry: bool) -> Decision:
    """The decision, given the policy's earlier acts about this run, the oldest first.

    In a dry run the dry warnings count, so that all of it is tried; otherwise only those that were delivered.
    """
    if idleness.idle_s is None:
        return Decision("", f"no data: {idleness.why}")
    if idleness.idle_s < policy.idle_s:
        return Decision(
            "", f"its GPUs have been idle for {idleness.idle_s:.0f} s", policy.idle_s - idleness.idle_s
        )
    begun = now - idleness.idle_s
    of_period = [act for act in acts if act.at >= begun and act.dry == dry and act.form == policy.form]
    if failed := [act for act in of_period if act.outcome != DONE and now - act.at < RETRY_S]:
        return Decision("", f"tried already: {failed[-1].outcome}", RETRY_S - (now - failed[-1].at))
    warnings = [act for act in of_period if act.act == "warn" and act.outcome == DONE]
    if not warnings:
        return Decision("warn")
    if policy.action == "warn":
        return Decision("", "its owner is warned", policy.idle_s)
    waited = now - warnings[0].at
    if waited < policy.after_warning_s:
        return Decision("", f"its owner was warned {waited:.0f} s ago", policy.after_warning_s - waited)
    if policy.action == "cancel" and any(act.act == "cancel" and act.outcome == DONE for act in of_period):
        return Decision("", "it is cancelled")
    return Decision(policy.action, warned=warnings[0])
