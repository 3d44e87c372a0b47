"""A large cluster for tests of its pages: 1,000 nodes in racks, their use over a month, and a queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs_scene import GIB
from jobs_server import NOW

from peerway_jobs.batch import Batch, Facts, Gpu, Samples
from peerway_jobs.store import utilization
from peerway_jobs.store.queue import ReasonSum, WaitingJob, keep_queue
from peerway_jobs.store.transaction import transaction

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor

TYPES = ("milan", "h100", "a100")


def node_name(number: int) -> str:
    """Racks of 20 nodes: r01n01, …"""
    return f"r{number // 20 + 1:02}n{number % 20 + 1:02}"


def type_of(number: int) -> str:
    return TYPES[(number // 20) % 3]


def large_cluster(nodes: int = 1000) -> dict[str, Any]:
    """The cluster's state as sync.py stores it."""
    usual = ("busy", "busy", "busy", "partly busy", "free")
    entries = []
    for number in range(nodes):
        state = {17: "blocked", 43: "off", 61: "reserved"}.get(number % 97, usual[number % 5])
        gpus = 0 if type_of(number) == "milan" else 8
        used = {"busy": 1.0, "partly busy": 0.5}.get(state, 0.0)
        is_closed = state in ("blocked", "off", "reserved")
        entries.append(
            {
                "name": node_name(number),
                "state": state,
                "cores": 128,
                "cores_busy": int(128 * used),
                "memory": 512 * GIB,
                "memory_busy": int(512 * GIB * used),
                "gpus": gpus,
                "gpus_busy": int(gpus * used),
                "gpus_blocked": gpus if is_closed else 0,
                "gpu_type": type_of(number) if gpus else "",
                "node_type": type_of(number),
                "reason": "disk failed" if state == "blocked" else "",
                "partitions": ["gpu" if gpus else "cpu"],
            }
        )
    return {
        "nodes": entries,
        "running": 1403,
        "users": 211,
        "waiting": 640,
        "waiting_cores": 81920,
        "waiting_gpus": 1310,
        "reasons": [["Priority", 500], ["Resources", 100], ["QOSMaxGRESPerUser", 40]],
    }


def batch_of(number: int) -> Batch:
    """A present batch of a node, with two thirds of its GPUs computing."""
    uuids = [f"GPU-{number}-{each}" for each in range(0 if type_of(number) == "milan" else 8)]
    at = int(NOW * 1000)
    samples = {
        "node": Samples(
            ["node"],
            {
                "node_memory_total_bytes": [512 * GIB],
                "node_memory_available_bytes": [(number % 400 + 50) * GIB],
            },
        )
    }
    if uuids:
        ratios = [0.0 if (number + each) % 3 == 0 else 0.9 for each in range(8)]
        samples["gpu"] = Samples(
            uuids,
            {"gpu_utilization_ratio": [*ratios], "gpu_power_watts": [100 + 500 * each for each in ratios]},
        )
    facts = Facts(128, 512 * GIB, 10_000, "v2", "1", gpus=[Gpu(each, "NVIDIA H100") for each in uuids])
    return Batch(
        node_name(number), f"{number:032x}", 1, "00000000-0000-4000-8000-000000000000", at, 60_000,
        samples=samples, facts=facts,
    )  # fmt: skip


def record_month(monitor: Monitor, types: tuple[str, ...] = TYPES) -> None:
    """Rows of each step up to now, with a gap, as if the recorder had run for a month."""
    names = ", ".join(utilization.FIGURES)
    rows = []
    for length, step in utilization.RANGES.values():
        columns = length // step
        for column in range(columns):
            if columns // 3 < column < columns // 3 + 4:
                continue  # the server was down
            at = int(NOW // step * step) - (columns - 1 - column) * step
            for place, name in enumerate(types):
                share = 0.55 + 0.3 * ((column // 7 + place) % 3 - 1)
                gpus = 0 if name == "milan" else 2640
                figures = {
                    "minutes": 1, "nodes": 330, "cores": 42_240, "cores_allocated": 42_240 * share,
                    "cores_measured": 42_240, "cores_used": 42_240 * share * 0.6,
                    "gpus": gpus, "gpus_allocated": gpus * share, "gpus_measured": gpus,
                    "gpus_used": gpus * share * 0.7, "memory": 330, "memory_allocated": 330 * share,
                    "memory_measured": 330, "memory_used": 330 * share * 0.3,
                    "power_minutes": 1 if gpus else 0, "watts": gpus * (100 + 500 * share * 0.7),
                    "node_power_minutes": 0, "node_watts": 0,
                }  # fmt: skip
                rows.append((step, at, name, *(figures[each] for each in utilization.FIGURES)))
    statement = f"INSERT INTO utilization (step, at, node_type, {names}) VALUES ({{}})"
    waited = [(step, at, 1, at // step % 50, 64, 8) for step, at, name, *_ in rows if name == types[0]]
    with monitor.jobs.lock, transaction(monitor.jobs.writer) as base:
        base.execute("DELETE FROM utilization")
        base.executemany(statement.format(", ".join("?" * len(rows[0]))), rows)
        base.execute("DELETE FROM queue_history")
        base.executemany("INSERT INTO queue_history VALUES (?, ?, ?, ?, ?, ?)", waited)


def record_queue(monitor: Monitor) -> None:
    """A queue of several reasons; two lines are alice's."""
    reasons = [
        ReasonSum("Priority", 500, 64_000, 1000, NOW - 90_000),
        ReasonSum("Resources", 100, 12_800, 270, NOW - 7200),
        ReasonSum("QOSMaxGRESPerUser", 38, 4864, 40, NOW - 3600),
        ReasonSum("PartitionTimeLimit", 2, 256, 0, NOW - 400_000),
    ]

    def line(job: str, user: str, reason: str, tasks: int = 1, starts: float | None = None) -> WaitingJob:
        return WaitingJob(job, user, "phys", "train", "gpu", reason, tasks, 2, 128, 16, NOW - 5000, starts)

    lines = [
        line("9001", "bob", "Resources", starts=NOW + 1800),
        line("9002", "alice", "Priority", starts=NOW + 90_000),
        line("9003_[0-499]", "carol", "Priority", 500),
        line("9004", "alice", "PartitionTimeLimit"),
    ]
    keep_queue(monitor.jobs, reasons, lines, 0, NOW)
