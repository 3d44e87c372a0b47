"""The jobs that wait in Slurm: the last report, as one row of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.stored import SIZE, TEXT, TIME, WHOLE, Kind, Unreadable, content, maybe, readable

MOST_LINES = 5000


@dataclass
class ReasonSum:
    """What waits for one reason of Slurm's; `since` is when the first of these jobs was submitted."""

    reason: str
    jobs: int = 0
    cores: float = 0
    gpus: float = 0
    since: float | None = None


@dataclass(frozen=True)
class WaitingJob:
    """A waiting job, or the waiting tasks of an array. `starts` is when Slurm expects it to start.

    Nodes, cores and GPUs are those of one task.
    """

    job: str
    user: str
    account: str
    name: str
    partition: str
    reason: str
    tasks: int
    nodes: int
    cores: float
    gpus: float
    submitted: float | None
    starts: float | None


@dataclass
class Queue:
    """The last report. `left_out` is the number of lines beyond MOST_LINES, those of the lowest priority."""

    at: float | None = None
    reasons: list[ReasonSum] = field(default_factory=list)
    lines: list[WaitingJob] = field(default_factory=list)
    left_out: int = 0
    unreadable: list[str] = field(default_factory=list)


_LINE: dict[str, Kind] = {
    "job": TEXT, "user": TEXT, "account": TEXT, "name": TEXT, "partition": TEXT, "reason": TEXT,
    "tasks": WHOLE, "nodes": WHOLE, "cores": SIZE, "gpus": SIZE,
    "submitted": maybe(TIME), "starts": maybe(TIME),
}  # fmt: skip
_SUM: dict[str, Kind] = {"reason": TEXT, "jobs": WHOLE, "cores": SIZE, "gpus": SIZE, "since": maybe(TIME)}
assert list(_LINE) == [each.name for each in fields(WaitingJob)]
assert list(_SUM) == [each.name for each in fields(ReasonSum)]


def keep_queue(
    store: JobStore, reasons: Sequence[ReasonSum], lines: Sequence[WaitingJob], left_out: int, now: float
) -> None:
    """Store a report in place of the one before."""
    body = {
        "reasons": [[*asdict(each).values()] for each in reasons],
        "lines": [[*asdict(each).values()] for each in lines],
        "left_out": left_out,
    }
    store.write(
        "INSERT INTO queue (one, at, body) VALUES (1, ?, ?) "
        "ON CONFLICT (one) DO UPDATE SET at = excluded.at, body = excluded.body",
        (now, json.dumps(body, separators=(",", ":"))),
    )


def queue(base: Connection) -> Queue:
    """The last report, as far as it can be read."""
    report = Queue()
    row = base.execute("SELECT at, body FROM queue").fetchone()
    if row is None:
        return report
    values, unreadable = readable(QUEUE, row)
    report.at = values["at"]
    body = values["body"] or {"reasons": [], "lines": [], "left_out": 0}
    report.left_out = body["left_out"]
    report.reasons, damaged = _parsed(ReasonSum, _SUM, body["reasons"])
    unreadable += [f"reasons[{place}]" for place in damaged]
    report.lines, damaged = _parsed(WaitingJob, _LINE, body["lines"])
    unreadable += [f"lines[{place}]" for place in damaged]
    report.unreadable = [f"queue.{name}" for name in unreadable]
    return report


T = TypeVar("T")


def _parsed(kind: type[T], columns: dict[str, Kind], entries: list[Any]) -> tuple[list[T], list[int]]:
    """The entries that can be read, and the places of the others."""
    parsed, damaged = [], []
    for place, entry in enumerate(entries):
        try:
            if not isinstance(entry, list) or len(entry) != len(columns):
                raise Unreadable
            values = (each.parse(value) for each, value in zip(columns.values(), entry, strict=True))
            parsed.append(kind(*values))
        except ValueError:
            damaged.append(place)
    return parsed, damaged


def _body(stored: Any) -> dict[str, Any]:
    is_whole = isinstance(stored, dict) and all(
        isinstance(stored.get(name), kind)
        for name, kind in (("reasons", list), ("lines", list), ("left_out", int))
    )
    if not is_whole:
        raise Unreadable
    return dict(stored)


QUEUE = {"at": replace(TIME, absent=None), "body": content(_body)}
