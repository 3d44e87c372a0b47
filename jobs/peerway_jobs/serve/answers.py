"""Models of the API's answers, for its OpenAPI document; runs and verdicts use their own dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_type_hints

from pydantic import BaseModel, Field, create_model

from peerway_jobs.rules.judging import Verdict
from peerway_jobs.store.runs import Run

_KINDS = get_type_hints(Run)


@dataclass(frozen=True)
class VerdictTold(Verdict):
    """A verdict, and when it was made (s since 1970)."""

    judged: float = 0


if TYPE_CHECKING:

    class RunTold(BaseModel):
        """A run as in lists: everything except its script."""

else:
    RunTold = create_model(
        "RunTold", **{each.name: (_KINDS[each.name], ...) for each in fields(Run) if each.name != "script"}
    )


class JobTold(RunTold):
    """A run with its verdict. `final`: it has ended, and the verdict covers the whole run."""

    # In lists this field is the verdict's state; here it is the verdict.
    verdict: VerdictTold | None  # type: ignore[assignment,unused-ignore]
    script: str
    final: bool


class JobOfNode(JobTold):
    """A job as an agent of one of its nodes gets it, with the names of its nodes."""

    on: list[str]


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
    """The rules in force, and the error in a changed file of rules."""

    hash: str
    text: str
    error: str


class Change(BaseModel):
    """A job with another verdict by other rules: the state before and after, and findings that go and
    come.
    """

    job: str
    restart: int
    user: str
    state: tuple[str, str]
    gone: list[str]
    new: list[str]


class RulesChecked(BaseModel):
    """The error in rules with its line; empty if they can be used."""

    error: str
    notes: list[str]


class Replayed(BaseModel):
    """Verdicts by other rules. Pairs are before and after."""

    judged: int
    more: bool
    rules: dict[str, str]
    states: dict[str, dict[str, int]]
    findings: dict[str, tuple[int, int]]
    freed_gpu_hours: tuple[float, float]
    freed_core_hours: tuple[float, float]
    changed: int
    jobs: list[Change]


class PlotLine(BaseModel):
    """One device of a graph: times in ms since 1970, and values, null for no data."""

    name: str
    x: list[int]
    y: list[float | None]


class Plot(BaseModel):
    """One graph. `flat` is the value at which all its lines stay over the job's time; null if they do not."""

    set_: str = Field(alias="set")
    unit: str
    lines: list[PlotLine]
    left_out: int
    flat: float | None


class Strips(BaseModel):
    """Each core's busy percentage over equal parts of the time; -1 means no data. `flat` as of a graph."""

    labels: list[str]
    start: float
    end: float
    rows: list[list[int]]
    flat: float | None


class StepTold(BaseModel):
    """A step on a node."""

    step: str
    node: str
    start: float
    end: float
    open: bool


class Graphs(BaseModel):
    """What the graphs of a job draw. `span` is the time that it had, in seconds since 1970; `efficiency` has
    the shares of the GPUs, cores and memory allocated that it used; `unreadable` has the names of files of
    samples that were damaged: what they had is missing.
    """

    span: tuple[float, float] | None
    efficiency: Plot | None
    plots: list[Plot]
    cores: Strips | None
    steps: list[StepTold]
    unreadable: list[str]


class Alarm(BaseModel):
    """Something that an agent sent and that was not accepted.

    It happened `count` times, from `first` to `last`. `unreadable` lists the columns of this row that cannot
    be read.
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
    """One entry of the audit log: a person, an address, an action and its details."""

    at: float
    who: str
    address: str
    action: str
    detail: str
    unreadable: list[str]


class Acknowledged(BaseModel):
    """All batches up to this number are on the server's disk."""

    stream: str
    acknowledged: int


class RefusedBatch(BaseModel):
    """Why batches were refused. `frame` is the place in the POST (from 0) of the batch
    that will never be accepted, and `seq` its number.
    """

    error: str
    frame: int | None = None
    seq: int | None = None


class Token(BaseModel):
    """A token, which is shown only once."""

    token: str


class Why(BaseModel):
    """Why a call was refused; for wrong parameters, a list of what is wrong with each."""

    detail: str | list[dict[str, Any]]


def errors(*codes: int, model: type[BaseModel] = Why) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route: its possible answers besides 200."""
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
