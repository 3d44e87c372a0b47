"""A run of a job: one start of it. A job that Slurm requeued keeps its id and has several, told apart by
time.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from peerway_jobs.store.stored import (
    MOST_SIZE,
    TEXT,
    TIME,
    Kind,
    choice,
    listing,
    matching,
    maybe,
    number,
    readable,
)

FINISHED = frozenset(
    (
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "OUT_OF_MEMORY",
        "NODE_FAIL",
        "PREEMPTED",
        "BOOT_FAIL",
        "DEADLINE",
        "REVOKED",
        "REQUEUED",
        "ENDED",
    )
)


@dataclass(slots=True)
class Run:
    """What is known of one run. Times are seconds since 1970, `memory` bytes over all its nodes."""

    job: str
    restart: int = 0  # below 0: of an older job that had the same number
    user: str = ""
    account: str = ""
    name: str = ""
    partition: str = ""
    qos: str = ""
    state: str = "RUNNING"
    reason: str = ""
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool = False
    submitted: float | None = None
    started: float | None = None
    ended: float | None = None
    time_limit: float | None = None
    nodes: int = 0
    cores: float = 0
    gpus: float = 0
    gpu_type: str = ""
    memory: float = 0
    node_list: str = ""
    node_type: str = ""
    array: str = ""  # "123_4", the fourth of array 123
    project: str = ""  # Slurm's WCKey
    component: str = ""  # "123+1", the second of the heterogeneous job 123
    suspended: float = 0  # seconds since its start in which Slurm had suspended it
    max_rss: float = 0  # bytes: the most that one of its tasks had, by Slurm's accounts
    script: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    # what its verdict came to
    verdict: str = "waiting"
    tag: str = ""
    severity: int = 0
    cpu_efficiency: float | None = None
    gpu_efficiency: float | None = None
    memory_efficiency: float | None = None
    idle_core_hours: float = 0
    idle_gpu_hours: float = 0
    freed_core_hours: float = 0
    freed_gpu_hours: float = 0
    judged: float = 0  # when; 0 or less: not since something changed
    former_nodes: str = ""  # which Slurm gave it and took back: "scontrol update" shrank it as it ran
    unreadable: list[str] = field(default_factory=list)  # columns of its row that hold what cannot be

    @property
    def has_key(self) -> bool:
        """Whether its number can be read, so that something can be kept of it or asked about it."""
        return not {"job", "restart"}.intersection(self.unreadable)

    def elapsed(self, now: float) -> float:
        """The seconds that it has run, as Slurm counts them: without those in which it was suspended."""
        return max(0.0, (self.ended or now) - self.started - self.suspended) if self.started else 0.0


# What `judged` becomes of a run that is to be judged anew. Each cause takes one off, so that a verdict that
# was being made meanwhile sees that it is not the last word (verdicts.py).
ANEW = "min(judged, 0) - 1"
COLUMNS = tuple(each.name for each in fields(Run) if each.name != "unreadable")
STATES = ("waiting", "inefficient", "efficient", "unremarkable", "no data", "short")  # of a verdict
_TIMES = ("submitted", "started", "ended")
_PATTERNS = {"job": r"[0-9]{1,10}", "array": r"([0-9]{1,10}_[0-9]{1,10})?", "component": r"([0-9]+\+[0-9]+)?"}
_NOTHING = Run("")
FROM_SLURM = COLUMNS[2 : COLUMNS.index("verdict")]
_JSON = ("steps",)
_HELD = ("nodes", "node_list")


def _kind_of(name: str) -> Kind:
    """What a column of the table of jobs may hold, by its field; an absent one is as in a run without it."""
    declared = str(Run.__dataclass_fields__[name].type)
    if name in _TIMES:
        kind = TIME
    elif name == "steps":
        kind = listing(lambda step: isinstance(step, dict))
    elif name in _PATTERNS:
        kind = matching(_PATTERNS[name])
    elif name == "verdict":
        kind = choice(*STATES, absent="waiting")
    elif declared.startswith("str"):
        kind = TEXT
    else:
        whole = declared.startswith(("int", "bool"))
        kind = number(-MOST_SIZE, MOST_SIZE, whole=whole)
    if "None" in declared:
        return maybe(kind)
    return replace(kind, absent="UNKNOWN" if name == "state" else getattr(_NOTHING, name))


JOBS: dict[str, Kind] = {name: _kind_of(name) for name in COLUMNS}


def of_row(row: sqlite3.Row) -> Run:
    """The run in a row of the table of jobs."""
    values, unreadable = readable(JOBS, row)
    values["out_of_memory"] = bool(values["out_of_memory"])
    return Run(**values, unreadable=unreadable)


def row_of(run: Run) -> dict[str, Any]:
    """The run's columns."""
    values = asdict(run)
    del values["unreadable"]
    for name in _JSON:
        values[name] = json.dumps(values[name])
    return values


def put_run(base: sqlite3.Connection, run: Run, *, provisional: bool = False) -> None:
    """Write a run as Slurm or its intervals say it; what a verdict said of it stays. One that Slurm has told
    of does not become provisional again.
    """
    names = ("job", "restart", *FROM_SLURM)
    kept = (
        "array",
        "project",
        "component",
        "script",
        "steps",
        "node_type",
        "gpu_type",
    )  # an empty one says nothing
    sets = ", ".join(
        f"{n} = CASE WHEN excluded.{n} IN ('', '[]') THEN {n} ELSE excluded.{n} END"
        if n in kept
        else f"{n} = excluded.{n}"
        for n in FROM_SLURM
        if n not in (*_HELD, "max_rss")
    )
    sets += ", max_rss = max(max_rss, excluded.max_rss)"  # squeue knows none
    # While epilogs run Slurm names only the nodes where one still does.
    fewer = "(excluded.ended IS NOT NULL OR excluded.state = 'COMPLETING') AND nodes > excluded.nodes"
    for n in _HELD:
        sets += f", {n} = CASE WHEN {fewer} THEN {n} ELSE excluded.{n} END"
    # A verdict on a run that went on is none on how it ended, also when that is told long after.
    sets += (
        ", judged = CASE WHEN ended IS excluded.ended AND state IS excluded.state "
        f"AND nodes >= excluded.nodes AND max_rss >= excluded.max_rss THEN judged ELSE {ANEW} END"
    )
    values = row_of(run)
    base.execute(
        f"INSERT INTO jobs ({', '.join(names)}, provisional) "
        f"VALUES ({', '.join(f':{n}' for n in names)}, :provisional) "
        f"ON CONFLICT (job, restart) DO UPDATE SET {sets}, "
        "provisional = min(provisional, excluded.provisional)",
        {"provisional": provisional, **{name: values[name] for name in names}},
    )


assert len(COLUMNS) == len(set(COLUMNS))
