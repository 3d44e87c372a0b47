"""The names `job.…` of the rules' language: what Slurm and the agents reported of a run, as plain values."""

from __future__ import annotations

from typing import Any

from peerway_jobs.measured import Measured
from peerway_jobs.rules.former import former_part
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.parts import Part
from peerway_jobs.store.runs import FINISHED

HOUR = 3600.0

FIELDS: dict[str, str] = {
    "job.cores": "CPU cores allocated",
    "job.gpus": "GPUs allocated",
    "job.nodes": "nodes allocated",
    "job.memory": "bytes of memory allocated, over all nodes",
    "job.elapsed": "seconds that it has run, without suspended time",
    "job.time_limit": "time limit in seconds",
    "job.waited": "seconds from its submission to its start",
    "job.partition": "partition",
    "job.qos": "quality of service",
    "job.user": "user",
    "job.account": "account",
    "job.state": "Slurm's state, such as RUNNING or TIMEOUT",
    "job.finished": "whether the job has ended",
    "job.interactive": "whether it has an interactive step (salloc)",
    "job.out_of_memory": "whether the kernel or Slurm killed it for want of memory",
    "job.gpu_type": "type of its GPUs",
    "job.node_type": "types of its nodes, separated by commas",
    "job.alone": "whether no other job was on its nodes while it ran",
    "job.node_cores": "the most cores of one of its nodes, as Slurm counts them",
    "job.node_gpus": "the most GPUs of one of its nodes",
    "job.node_memory": "the most bytes of memory of one of its nodes",
    "job.foreign_processes": "its processes that were seen on GPUs of other jobs",
    "job.leftover_processes": "its processes that were seen after its end",
    "job.short_of_user": "jobs of its user below 2 minutes each, in the 24 hours before its end",
}


def job_fields(measured: Measured, jobs: JobStore) -> dict[str, Any]:
    """The values of all FIELDS."""
    run = measured.run
    nodes = [jobs.size_of(node) for node in {part["node"] for part in measured.intervals}]
    notes = jobs.notes(run)

    def largest(name: str) -> float | None:
        return max((each[name] for each in nodes if each), default=None)

    def noted(kind: str) -> list[Part]:
        return [note for note in notes if note["kind"] == kind and note["job"] == run.job]

    def processes(kind: str) -> int:
        """The number of processes noted; each note is about one process on one GPU."""
        return len({(note["node"], pid) for note in noted(kind) for pid in note["pids"] or [0]})

    former = former_part(measured)
    values = {
        "cores": run.cores + former.cores,
        "gpus": run.gpus + former.gpus,
        "nodes": run.nodes + former.nodes,
        "memory": run.memory + former.memory or None,
        "elapsed": run.elapsed(measured.now),
        "time_limit": run.time_limit,
        "waited": run.started - run.submitted if run.started and run.submitted else None,
        "partition": run.partition,
        "qos": run.qos,
        "user": run.user,
        "account": run.account,
        "state": run.state,
        "finished": run.ended is not None or run.state in FINISHED,
        "interactive": any(part["step"] == "interactive" for part in measured.intervals),
        "out_of_memory": run.out_of_memory or run.state == "OUT_OF_MEMORY" or bool(noted("oom_kill")),
        "gpu_type": run.gpu_type,
        "node_type": run.node_type,
        "alone": measured.alone,
        "node_cores": largest("cores"),
        "node_gpus": largest("gpus"),
        "node_memory": largest("memory"),
        "foreign_processes": processes("foreign_process"),
        "leftover_processes": processes("leftover"),
        "short_of_user": _short_jobs(jobs, measured),
    }
    return {f"job.{name}": value for name, value in values.items()}


def _short_jobs(jobs: JobStore, measured: Measured) -> int:
    run = measured.run
    end = run.ended or measured.now
    row = jobs.reader.execute(
        "SELECT count(*) FROM jobs WHERE user = ? AND started BETWEEN ? AND ? AND ended <= ? "
        "AND NOT provisional AND ended - started < 120",
        (run.user, end - 24 * HOUR, end, end),
    ).fetchone()
    return int(row[0])
