"""Models of the API's answers about the cluster, for its OpenAPI document."""

from __future__ import annotations

from pydantic import BaseModel

from peerway_jobs.store.queue import ReasonSum, WaitingJob


class Now(BaseModel):
    """What a node's agent measured last, as shares from 0 to 1.

    `gpus` are pairs of UUID and utilization; the utilization is null if the GPU does not answer. A place
    without a GPU has an empty UUID. `watts` is what its GPUs draw together, `node_watts` what the whole node
    draws.
    """

    cpu: float | None
    memory: float | None
    gpus: list[tuple[str, float | None]]
    watts: float | None = None
    node_watts: float | None = None


class Node(BaseModel):
    """A node; `now` is absent if its agent has sent nothing in the last two minutes."""

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
    node_type: str = ""
    reason: str
    partitions: list[str]
    rack: str = ""
    now: Now | None = None


class Counts(BaseModel):
    """Sums over the nodes; `nodes` counts them by state."""

    cores: float
    cores_busy: float
    cores_free: float
    gpus: int
    gpus_busy: int
    gpus_free: int
    gpus_blocked: int
    nodes: dict[str, int]


class Cluster(BaseModel):
    """The cluster. The fields from Slurm are absent until Slurm has answered; `at` is when it last did."""

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


class Curves(BaseModel):
    """The use of the nodes of one type: their number, cores and GPUs in the last step with figures, and
    curves with a value each step, null where it is unknown. Shares are from 0 to 1, `watts` is the power of
    their GPUs, `node_watts` that of whole nodes.
    """

    nodes: float
    cores: float
    gpus: float
    curves: dict[str, list[float | None]]


class ClusterUse(BaseModel):
    """The use of the cluster over a range: a value each `step` seconds from `begin` (s since 1970) on.
    `waiting` has the jobs that waited, and the cores and GPUs that they wanted.
    """

    begin: int
    step: int
    whole: Curves
    types: dict[str, Curves]
    waiting: dict[str, list[float | None]]
    unreadable: list[str]


class Waiting(BaseModel):
    """The jobs that wait, as Slurm reported them at `at`; `left_out` are lines that are not stored."""

    at: float | None
    reasons: list[ReasonSum]
    lines: list[WaitingJob]
    left_out: int
    unreadable: list[str]
