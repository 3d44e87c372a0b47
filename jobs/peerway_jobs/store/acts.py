"""The record of what policies did, or would have done in a dry run, with the evidence of each act."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.store.connection import Connection, Row
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import TEXT, TIME, choice, content, is_damaged, number, readable

# "begin" is no act: a policy of this form was seen for the first time.
KINDS = ("begin", "warn", "hold", "release", "cancel")
DONE = "done"


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(value)
    return value


ACTS = {
    "at": TIME, "policy": TEXT, "form": TEXT, "act": choice(*KINDS, absent="begin"), "job": TEXT,
    "restart": JOBS["restart"], "user": TEXT, "account": TEXT, "dry": number(0, 1, whole=True),
    "outcome": TEXT, "evidence": content(_object),
}  # fmt: skip
_GOOD = f"NOT {is_damaged(ACTS)}"


@dataclass(frozen=True)
class Act:
    """One act. `form` identifies the settings of its policy; `job` is the job that was acted on."""

    at: float
    policy: str
    form: str
    act: str
    job: str = ""
    restart: int = 0
    user: str = ""
    account: str = ""
    dry: bool = True
    outcome: str = DONE
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> bool:
        """Whether it was carried out: no dry run, and no failure."""
        return not self.dry and self.outcome == DONE


_NAMES = tuple(each.name for each in fields(Act))


def record(store: JobStore, act: Act) -> None:
    """Add an act."""
    values = {**asdict(act), "dry": int(act.dry), "outcome": shortened(act.outcome, 500)}
    values["evidence"] = json.dumps(act.evidence, separators=(",", ":"))
    store.write(
        f"INSERT INTO acts ({', '.join(_NAMES)}) VALUES ({', '.join(f':{name}' for name in _NAMES)})", values
    )


def first_seen(base: Connection, policy: str, form: str) -> float | None:
    """When a policy of this form was first seen (s since 1970); None if never."""
    at: float | None = base.execute(
        f"SELECT min(at) FROM acts WHERE policy = ? AND form = ? AND act = 'begin' AND {_GOOD}",
        (policy, form),
    ).fetchone()[0]
    return at


def of_run(base: Connection, policy: str, job: str, restart: int, since: float) -> list[Act]:
    """A policy's acts about a run since a time, the oldest first. `since` keeps out those about an older job
    with the same number.
    """
    return _acts(
        base,
        "policy = ? AND job = ? AND restart = ? AND at >= ? ORDER BY at",
        (policy, job, restart, since),
    )


def since(base: Connection, time: float) -> list[Act]:
    """The acts after a time, the oldest first."""
    return _acts(base, "at > ? AND act != 'begin' ORDER BY at", (time,))


def newest(base: Connection, most: int) -> list[Act]:
    """The newest acts, the newest first."""
    return _acts(base, "act != 'begin' ORDER BY at DESC LIMIT ?", (most,))


def held(base: Connection) -> list[Act]:
    """The acts by which jobs are held and not yet released."""
    acts = _acts(base, "act IN ('hold', 'release') AND dry = 0 ORDER BY at", ())
    open_of: dict[str, Act] = {}
    for act in acts:
        if act.act == "hold" and act.counts:
            open_of[act.job] = act
        elif act.act == "release" and act.counts:
            open_of.pop(act.job, None)
    return list(open_of.values())


def _acts(base: Connection, condition: str, values: Sequence[Any]) -> list[Act]:
    rows: Iterable[Row] = base.execute(f"SELECT * FROM acts WHERE {_GOOD} AND {condition}", values)
    return [_of_row(row) for row in rows]


def _of_row(row: Row) -> Act:
    values, _ = readable(ACTS, row)
    return Act(**{**values, "dry": bool(values["dry"])})
