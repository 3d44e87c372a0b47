"""What the API answers, as its OpenAPI document has it; runs and verdicts are as where they are made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, Field, create_model

from peerway_jobs.rules.judging import Verdict
from peerway_jobs.store.runs import Run

_KINDS = get_type_hints(Run)


@dataclass(frozen=True)
class VerdictTold(Verdict):
    """A verdict, and when it was made."""

    judged: float = 0


if TYPE_CHECKING:

    class RunTold(BaseModel):
        """A run as lists have it: all that is known but its script."""

else:
    RunTold = create_model(
        "RunTold", **{each.name: (_KINDS[each.name], ...) for each in fields(Run) if each.name != "script"}
    )


class JobTold(RunTold):
    """A run with its verdict. `final`: it has ended and the verdict is on all of it."""

    # The verdict has the place of its state in lists.
    verdict: VerdictTold | None  # type: ignore[assignment,unused-ignore]
    script: str
    final: bool


class JobOfNode(JobTold):
    """What an agent is told of a job of its node: also the nodes that it was on."""

    on: list[str]


class Now(BaseModel):
    """What a node's agent measured last: shares, and of GPUs UUID and utilization, which is null for one that
    does not answer. A place without a GPU has an empty UUID.
    """

    cpu: float | None
    memory: float | None
    gpus: list[tuple[str, float | None]]


class Node(BaseModel):
    """A node: `now` is absent where no agent told in the last two minutes."""

    name: str
    state: str
    cores: float
    cores_busy: float
    memory: float
    memory_busy: float
    gpus: int
    gpus_busy: int
    gpus_blocked: int
    gpu_type: str
    reason: str
    partitions: list[str]
    now: Now | None = None


class Counts(BaseModel):
    """Sums over the nodes; `nodes` by their state."""

    cores: float
    cores_busy: float
    cores_free: float
    gpus: int
    gpus_busy: int
    gpus_free: int
    gpus_blocked: int
    nodes: dict[str, int]


class Cluster(BaseModel):
    """The cluster. What Slurm says of jobs is absent while it has said nothing; `at` is when it did."""

    at: float | None
    nodes: list[Node]
    counts: Counts
    running: int = 0
    users: int = 0
    waiting: int = 0
    waiting_cores: float = 0
    waiting_gpus: float = 0
    reasons: list[tuple[str, int]] = []
    unreadable: list[str] = []


class Sum(BaseModel):
    """What the jobs of one user, account, partition or finding had and wasted, in hours."""

    name: str
    jobs: int
    inefficient: int
    core_hours: float
    gpu_hours: float
    idle_core_hours: float
    idle_gpu_hours: float
    freed_core_hours: float
    freed_gpu_hours: float
    wasted: float


class Rules(BaseModel):
    """The rules in force, and why a changed file of rules is not."""

    hash: str
    text: str
    error: str


class Change(BaseModel):
    """A job on which other rules say something else: states before and after, rules that go and come."""

    job: str
    restart: int
    user: str
    state: tuple[str, str]
    gone: list[str]
    new: list[str]


class RulesChecked(BaseModel):
    """What is wrong with rules, with its line; empty where they can be used."""

    error: str
    notes: list[str]


class Replayed(BaseModel):
    """What other rules would have said. Pairs are before and after."""

    judged: int
    more: bool
    rules: dict[str, str]
    states: dict[str, dict[str, int]]
    findings: dict[str, tuple[int, int]]
    freed_gpu_hours: tuple[float, float]
    freed_core_hours: tuple[float, float]
    changed: int
    jobs: list[Change]


class Line(BaseModel):
    """One device of a graph: milliseconds since 1970, and values, null where there is no data."""

    name: str
    x: list[int]
    y: list[float | None]


class Plot(BaseModel):
    """One graph."""

    set_: str = Field(alias="set")
    unit: str
    lines: list[Line]
    left_out: int


class Strips(BaseModel):
    """Each core's busy percent over equal parts of the time; -1 is no data."""

    labels: list[str]
    start: float
    end: float
    rows: list[list[int]]


class StepTold(BaseModel):
    """A step on a node."""

    step: str
    node: str
    start: float
    end: float
    open: bool


class Graphs(BaseModel):
    """What the graphs of a job draw. `span` is the time that it had, in seconds since 1970; `unreadable` has
    the names of files of samples that were damaged: what they had is missing.
    """

    span: tuple[float, float] | None
    plots: list[Plot]
    cores: Strips | None
    steps: list[StepTold]
    unreadable: list[str]


class Alarm(BaseModel):
    """What an agent said that cannot count; `first` and `last` are when, `count` how often. `unreadable`
    names columns of its row that hold what cannot be.
    """

    node: str
    kind: str
    job: str
    text: str
    first: float
    last: float
    count: int
    unreadable: list[str]


class AuditEntry(BaseModel):
    """Who did what, and from where."""

    at: float
    who: str
    address: str
    action: str
    detail: str
    unreadable: list[str]


class Acknowledged(BaseModel):
    """All up to this number is on the server's disk."""

    stream: str
    acknowledged: int


class RefusedBatch(BaseModel):
    """Why batches are not taken. `frame` is the place in the POST, from 0, of the one that never will be, and
    `seq` its number.
    """

    error: str
    frame: int | None = None
    seq: int | None = None


class Token(BaseModel):
    """A token; it is not shown again."""

    token: str


class Why(BaseModel):
    """Why a call is refused; of a call with wrong parameters, where each is wrong."""

    detail: str | list[dict[str, Any]]


def errors(*codes: int, model: type[BaseModel] = Why) -> dict[int | str, dict[str, Any]]:
    """What a route may answer beside 200."""
    words = {
        400: "not as the protocol has it",
        401: "not logged in",
        403: "not allowed",
        404: "no such job, or not yours",
        413: "too much at once",
        422: "wrong parameters",
        429: "too often",
        503: "not now; try again",
    }
    return {code: {"model": model, "description": words[code]} for code in codes}
