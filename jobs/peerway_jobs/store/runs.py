"""A run: one start of a job. A requeued job keeps its id and has several runs, told apart by their times."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from peerway_jobs.store.connection import Connection, Row
from peerway_jobs.store.stored import (
    FLAG,
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
    """One run. Times are seconds since 1970; `memory` is bytes over all its nodes."""

    job: str
    restart: int = 0  # below 0: a run of an older job with the same number
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
    array: str = ""  # "123_4": task 4 of array 123
    project: str = ""  # Slurm's WCKey
    component: str = ""  # "123+1": component 1 of heterogeneous job 123
    suspended: float = 0  # seconds in which Slurm had suspended it
    max_rss: float = 0  # bytes: the peak of one of its tasks, by Slurm's accounts
    script: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    # results of its verdict
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
    former_nodes: str = ""  # nodes that Slurm took back while it ran ("scontrol update")
    unreadable: list[str] = field(default_factory=list)  # columns of its row that cannot be read

    @property
    def has_key(self) -> bool:
        """Whether its job and restart can be read, so that data can be stored for it or asked about it."""
        return not {"job", "restart"}.intersection(self.unreadable)

    def elapsed(self, now: float) -> float:
        """The seconds that it has run, as Slurm counts them: without suspended time."""
        return max(0.0, (self.ended or now) - self.started - self.suspended) if self.started else 0.0


# The new value of `judged` for a run that must be judged again. Each cause subtracts 1, so that a verdict in
# progress sees that it is outdated (verdicts.py).
ANEW = "min(jobs.judged, 0) - 1"
COLUMNS = tuple(each.name for each in fields(Run) if each.name != "unreadable")
STATES = ("waiting", "inefficient", "efficient", "unremarkable", "no data", "short")  # of a verdict
_TIMES = ("submitted", "started", "ended")
_PATTERNS = {"job": r"[0-9]{1,10}", "array": r"([0-9]{1,10}_[0-9]{1,10})?", "component": r"([0-9]+\+[0-9]+)?"}
_NOTHING = Run("")
FROM_SLURM = COLUMNS[2 : COLUMNS.index("verdict")]
_JSON = ("steps",)
_HELD = ("nodes", "node_list")


def _kind_of(name: str) -> Kind:
    """What a column of the table of jobs may hold, derived from its field;
    the field's default replaces bad values.
    """
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
    elif declared == "bool":
        kind = FLAG
    else:
        kind = number(-MOST_SIZE, MOST_SIZE, whole=declared.startswith("int"))
    if "None" in declared:
        return maybe(kind)
    return replace(kind, absent="UNKNOWN" if name == "state" else getattr(_NOTHING, name))


JOBS: dict[str, Kind] = {name: _kind_of(name) for name in COLUMNS}


def of_row(row: Row) -> Run:
    """The run in a row of the table of jobs."""
    values, unreadable = readable(JOBS, row)
    values["out_of_memory"] = bool(values["out_of_memory"])
    return Run(**values, unreadable=unreadable)


def row_of(run: Run) -> dict[str, Any]:
    """The run as columns."""
    values = asdict(run)
    del values["unreadable"]
    for name in _JSON:
        values[name] = json.dumps(values[name])
    return values


def put_run(base: Connection, run: Run, *, provisional: bool = False) -> None:
    """Write a run as Slurm or its intervals describe it; the columns of its verdict stay.

    A run that Slurm has reported does not become provisional again.
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
    )  # an empty value does not replace another
    sets = ", ".join(
        f"{n} = CASE WHEN excluded.{n} IN ('', '[]') THEN jobs.{n} ELSE excluded.{n} END"
        if n in kept
        else f"{n} = excluded.{n}"
        for n in FROM_SLURM
        if n not in (*_HELD, "max_rss")
    )
    sets += ", max_rss = max(jobs.max_rss, excluded.max_rss)"  # squeue reports none
    # While epilogs run, Slurm lists only the nodes where one still runs.
    fewer = "(excluded.ended IS NOT NULL OR excluded.state = 'COMPLETING') AND jobs.nodes > excluded.nodes"
    for n in _HELD:
        sets += f", {n} = CASE WHEN {fewer} THEN jobs.{n} ELSE excluded.{n} END"
    # A verdict on a running run does not cover its end, even if the end is reported long after it.
    sets += (
        ", judged = CASE WHEN jobs.ended IS excluded.ended AND jobs.state IS excluded.state "
        f"AND jobs.nodes >= excluded.nodes AND jobs.max_rss >= excluded.max_rss "
        f"THEN jobs.judged ELSE {ANEW} END"
    )
    values = row_of(run)
    base.execute(
        f"INSERT INTO jobs ({', '.join(names)}, provisional) "
        f"VALUES ({', '.join(f':{n}' for n in names)}, :provisional) "
        f"ON CONFLICT (job, restart) DO UPDATE SET {sets}, "
        "provisional = (jobs.provisional AND excluded.provisional)",
        {"provisional": provisional, **{name: values[name] for name in names}},
    )


assert len(COLUMNS) == len(set(COLUMNS))
