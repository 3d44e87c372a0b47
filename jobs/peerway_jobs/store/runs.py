"""A run of a job: one start of it. A job that Slurm requeued keeps its id and has several, told apart by
time.
"""

from __future__ import annotations

import json
import math
import sqlite3
from dataclasses import asdict, dataclass, field, fields
from typing import Any

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

    def elapsed(self, now: float) -> float:
        """The seconds that it has run, as Slurm counts them: without those in which it was suspended."""
        return max(0.0, (self.ended or now) - self.started - self.suspended) if self.started else 0.0


# What `judged` becomes of a run that is to be judged anew. Each cause takes one off, so that a verdict that
# was being made meanwhile sees that it is not the last word (verdicts.py).
ANEW = "min(judged, 0) - 1"
COLUMNS = tuple(each.name for each in fields(Run) if each.name != "unreadable")
LAST_S = 253_402_300_799  # the end of the year 9999, the last that can be written as a date
_TIMES = ("submitted", "started", "ended")
_NOTHING = Run("")
_MOST = 1e18
FROM_SLURM = COLUMNS[2 : COLUMNS.index("verdict")]
_JSON = ("steps",)
_HELD = ("nodes", "node_list")


def of_row(row: sqlite3.Row) -> Run:
    """The run in a row of the table of jobs."""
    values = {name: row[name] for name in COLUMNS}
    unreadable = [name for name, value in values.items() if not _can_be(name, value)]
    for name in unreadable:
        values[name] = getattr(_NOTHING, name)
    values["job"] = str(row["job"])
    values["steps"] = json.loads(values["steps"]) if "steps" not in unreadable else []
    values["out_of_memory"] = bool(values["out_of_memory"])
    return Run(**values, unreadable=unreadable)


def _can_be(name: str, value: Any) -> bool:
    """Whether a column may hold this: a row may be older than the checks of what comes in, or damaged."""
    kind = str(Run.__dataclass_fields__[name].type)
    if value is None:
        return "None" in kind
    if name == "steps":
        try:
            return isinstance(json.loads(value), list)
        except (ValueError, TypeError, RecursionError):
            return False
    if kind == "str":
        return isinstance(value, str)
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    if kind.startswith("int") and value != int(value):
        return False
    return 0 <= value <= LAST_S if name in _TIMES else abs(value) < _MOST


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
