"""What happened since a webhook's last message. This only reads the database."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peerway_jobs.mail.digest import MOST_JOBS, inefficient
from peerway_jobs.store import acts, deliveries
from peerway_jobs.store.alarms import ALARMS
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run
from peerway_jobs.store.stored import is_damaged, readable_rows
from peerway_jobs.verdicts import verdict_of
from peerway_jobs.webhooks.settings import Webhook

_MOST = 50  # alarms or acts in one message; the others are in the next


@dataclass(frozen=True)
class Event:
    """The content of one message: the items, how many more there are, and up to which time they cover."""

    kind: str  # jobs, alarms or policies
    items: list[dict[str, Any]]
    more: int
    upto: float


def due(store: JobStore, hook: Webhook, page: str, now: float, begun: float) -> Iterator[Event]:
    """The events of a webhook that it does not know yet. `begun` is when the server started: of what
    happened before, a new webhook is told only the jobs.
    """
    base = store.reader
    for kind in hook.events:
        upto = deliveries.covered(base, hook.name, kind)
        if kind == "jobs":
            event = _jobs(store, hook, page, now, upto)
        elif kind == "alarms":
            event = _alarms(store, begun if upto is None else upto, now)
        else:
            event = _acts(store, begun if upto is None else upto, now)
        if event.items:
            yield event


def _jobs(store: JobStore, hook: Webhook, page: str, now: float, upto: float | None) -> Event:
    nothing = Event("jobs", [], 0, now)
    if upto is not None and now - upto < hook.every_s:
        return nothing
    since = now - hook.every_s if upto is None else upto
    runs = [
        run
        for run in inefficient(store.reader, since)
        if (run.ended is None or run.judged > since) and (not hook.accounts or run.account in hook.accounts)
    ]
    gpu, core = sum(run.idle_gpu_hours for run in runs), sum(run.idle_core_hours for run in runs)
    if gpu < hook.least_gpu_hours and core < hook.least_core_hours:
        return nothing
    items = [_of_run(store, run, page, hook.language) for run in runs[:MOST_JOBS]]
    return Event("jobs", items, len(runs) - len(items), now)


def _of_run(store: JobStore, run: Run, page: str, lang: str) -> dict[str, Any]:
    verdict = verdict_of(store, run)
    query = f"?restart={run.restart}" if run.restart else ""
    names = ("job", "restart", "user", "account", "name", "partition", "state", "gpus", "cores",
             "idle_gpu_hours", "idle_core_hours")  # fmt: skip
    findings = [
        {"rule": each["rule"], "severity": each["severity"], "tag": each["tag"][lang],
         "conclusion": each["conclusion"][lang], "advice": each["advice"][lang]}
        for each in (verdict["findings"] if verdict else [])
    ]  # fmt: skip
    return {**{name: getattr(run, name) for name in names}, "running": run.ended is None,
            "url": f"{page}/jobs/{run.job}{query}", "findings": findings}  # fmt: skip


def _alarms(store: JobStore, since: float, now: float) -> Event:
    rows = store.reader.execute(
        f"SELECT * FROM alarms WHERE first > ? AND NOT {is_damaged(ALARMS)} ORDER BY first", (since,)
    )
    return _cut("alarms", readable_rows(ALARMS, rows), "first", now)


def _acts(store: JobStore, since: float, now: float) -> Event:
    from dataclasses import asdict

    return _cut("policies", [asdict(act) for act in acts.since(store.reader, since)], "at", now)


def _cut(kind: str, items: list[dict[str, Any]], time: str, now: float) -> Event:
    """At most _MOST items, or a few more if several have the same time; the others come with the next."""
    if len(items) <= _MOST:
        return Event(kind, items, 0, max([now, *(each[time] for each in items)]))
    upto = items[_MOST - 1][time]
    kept = [each for each in items if each[time] <= upto]
    return Event(kind, kept, len(items) - len(kept), upto)
