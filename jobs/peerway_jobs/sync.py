"""Reads what squeue and sinfo say of jobs and nodes, and files it.

slurm_watch.py runs the commands; for jobs that they have forgotten, accounting.py asks sacct.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from peerway_jobs import vanished
from peerway_jobs.clock import AGREES_S
from peerway_jobs.hosts import expand_hosts
from peerway_jobs.slurm_json import exit_of, number, text_of, time_of, word, words
from peerway_jobs.slurm_queue import Waiting, by_reason, lines
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.queue import keep_queue
from peerway_jobs.store.runs import FINISHED, Run

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD")
_MOST_TASKS = 4_000_001  # Slurm's largest MaxArraySize
_GPUS = re.compile(r"gres/gpu(?::([^=,:]+))?[=:](\d+)")
_GRES = re.compile(r"(?:^|,)gpu(?::([^:(,]+))?:(\d+)(?=[(,]|$)")
_MEMORY = re.compile(r"(?:^|,)mem=(\d+(?:\.\d+)?)([KMGTP]?)")
_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")
_STATES = {  # of a node; the first of these that its flags or state contain decides
    "DOWN": "off",
    "POWERED_DOWN": "off",
    "POWER_DOWN": "off",
    "NOT_RESPONDING": "off",
    "FUTURE": "off",
    "UNKNOWN": "off",
    "INVALID": "off",
    "REBOOT_ISSUED": "off",
    "INVALID_REG": "blocked",  # it registered with less than slurm.conf says, and gets no jobs
    "DRAIN": "blocked",
    "DRAINED": "blocked",
    "DRAINING": "blocked",
    "FAIL": "blocked",
    "MAINT": "reserved",
    "MAINTENANCE": "reserved",
    "RESERVED": "reserved",
    "PLANNED": "reserved",
    "ALLOCATED": "busy",
    "MIXED": "partly busy",
    "IDLE": "free",
}


def take(store: JobStore, jobs: list[dict[str, Any]], nodes: list[dict[str, Any]], now: float) -> list[Run]:
    """File what squeue and sinfo reported, and end runs that squeue does not list; returns the listed
    runs.
    """
    runs = [run for job in jobs if (run := run_of(job, now)) is not None]
    file(store, runs, nodes)
    body = json.dumps(cluster_of(jobs, nodes, now), separators=(",", ":"))
    store.write(
        "INSERT INTO cluster VALUES (1, ?, ?) "
        "ON CONFLICT (one) DO UPDATE SET at = excluded.at, body = excluded.body",
        (now, body),
    )
    waiting = waiting_of(jobs, now)
    keep_queue(store, by_reason(waiting), *lines(waiting), now)
    vanished.close(store, {(run.job, run.restart) for run in runs}, now)
    store.slurm_answered = now
    return runs


def file(store: JobStore, runs: list[Run], nodes: list[dict[str, Any]]) -> None:
    """File the runs that have begun, with the types of their nodes."""
    known = {node["name"]: node for node in nodes if isinstance(node.get("name"), str)}
    for run in runs:
        held = [known[node] for node in expand_hosts(run.node_list) if node in known]
        run.node_type = _types(type_of(node) for node in held)
        if run.gpus and not run.gpu_type:  # accounting counts GPUs without their types
            run.gpu_type = _types(gpu_type_of(node) for node in held)
    store.update(run for run in runs if run.started is not None and run.state not in WAITING)


def run_of(job: dict[str, Any], now: float) -> Run | None:
    """The run that a squeue entry of the time `now` describes; None if it has no job number."""
    job_id = number(job.get("job_id"))
    if not job_id:
        return None
    state = word(job.get("job_state")) or "UNKNOWN"
    tres = text_of(job.get("tres_alloc_str")) or text_of(job.get("tres_req_str"))
    gpus = _GPUS.findall(tres)
    typed = [each for each in gpus if each[0]]
    started, ended = time_of(job.get("start_time")), time_of(job.get("end_time"))
    if state == "COMPLETING" and ended is not None and ended > now + AGREES_S:
        # While a job is being requeued, squeue shows it with the number of its next run and meaningless
        # times: its start is the time of the requeue, its end a time limit later. The end of a job that
        # really completes is past.
        state = "REQUEUED"
    code, signal = exit_of(job.get("exit_code"))
    limit = number(job.get("time_limit"))
    return Run(
        str(int(job_id)),
        int(number(job.get("restart_cnt")) or 0),
        text_of(job.get("user_name")),
        text_of(job.get("account")),
        text_of(job.get("name")),
        text_of(job.get("partition")),
        text_of(job.get("qos")),
        state,
        text_of(job.get("state_reason")),
        code,
        signal,
        state == "OUT_OF_MEMORY",
        time_of(job.get("submit_time")),
        started if state not in WAITING else None,
        ended if state in FINISHED else None,
        limit * 60 if limit else None,
        int(number(job.get("node_count")) or 0),
        _number_in(_CPUS, tres) or number(job.get("cpus")) or 0,
        # "gres/gpu=4,gres/gpu:h100=4" counts the same GPUs twice
        max([float(count) for kind, count in gpus if not kind] or [sum(float(count) for _, count in typed)]),
        typed[0][0] if typed else "",
        _memory(tres),
        text_of(job.get("nodes")),
        array=_array(job),
        project=text_of(job.get("wckey")).lstrip("*"),  # Slurm marks the user's default with *
        component=_component(job),
        suspended=_suspended(job, state, started, ended if state in FINISHED else now),
    )


def cluster_of(jobs: list[dict[str, Any]], nodes: list[dict[str, Any]], now: float) -> dict[str, Any]:
    """The cluster's state at `now`, as the live page shows it.

    A suspended job counts neither as running nor as waiting: it holds its GPUs and memory, and does not wait
    for anything that is free.
    """
    running = [run for job in jobs if (run := run_of(job, now)) and run.state in ("RUNNING", "COMPLETING")]
    waiting = waiting_of(jobs, now)
    reasons: Counter[str] = Counter()
    for _, run, tasks in waiting:
        reasons[run.reason or "None"] += tasks
    return {
        "nodes": [node_of(node) for node in nodes],
        "running": len(running),
        "users": len({run.user for run in running}),
        "waiting": sum(tasks for _, _, tasks in waiting),
        "waiting_cores": sum(run.cores * tasks for _, run, tasks in waiting),
        "waiting_gpus": sum(run.gpus * tasks for _, run, tasks in waiting),
        "reasons": reasons.most_common(5),
    }


def waiting_of(jobs: Iterable[dict[str, Any]], now: float) -> list[Waiting]:
    """The entries of squeue that wait, with their runs and the number of jobs that each stands for."""
    entries = ((job, run_of(job, now)) for job in jobs)
    return [(job, run, tasks_of(job)) for job, run in entries if run and run.state in WAITING]


def tasks_of(job: dict[str, Any]) -> int:
    """The number of jobs behind one line of squeue.

    The waiting tasks of an array are one line; its `array_task_string` lists them, such as "1-20:2,30%3".
    """
    tasks = 0
    for part in text_of(job.get("array_task_string")).partition("%")[0].split(","):
        if (match := _TASKS.fullmatch(part)) is None:
            break  # not a list of tasks: no array
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        tasks += max(0, (last - first) // max(step, 1) + 1)
    return min(max(tasks, 1), _MOST_TASKS)


def node_of(node: dict[str, Any]) -> dict[str, Any]:
    """A node as sinfo describes it.

    Its free GPUs count as blocked if the node has no free core or memory for them, or takes no jobs.
    """
    flags = [*words(node.get("state_flags")), *words(node.get("state"))]
    state = next(
        (_STATES[each] for key in _STATES for each in flags if each.rstrip("*~#!%$@^-+") == key), "off"
    )
    cores, used = number(node.get("cpus")) or 0, number(node.get("alloc_cpus")) or 0
    memory, taken = number(node.get("real_memory")) or 0, number(node.get("alloc_memory")) or 0
    gres = _GRES.findall(text_of(node.get("gres")))
    gpus, busy = _count(gres), min(_count(gres), _count(_GRES.findall(text_of(node.get("gres_used")))))
    free = gpus - busy
    full = state in ("busy", "partly busy") and (used >= cores or (memory > 0 and taken >= memory))
    blocked = free if state in ("blocked", "off", "reserved") or full else 0
    if state == "busy" and free and not full:
        state = "partly busy"
    return {
        "name": text_of(node.get("name"))[:63],
        "state": state,
        "cores": cores,
        "cores_busy": used,
        "memory": memory * (1 << 20),
        "memory_busy": taken * (1 << 20),
        "gpus": gpus,
        "gpus_busy": busy,
        "gpus_blocked": blocked,
        "gpu_type": gpu_type_of(node),
        "node_type": type_of(node),
        "reason": text_of(node.get("reason"))[:200],
        "partitions": words(node.get("partitions")),
    }


def type_of(node: dict[str, Any]) -> str:
    """A node's type: its first feature in slurm.conf, or else the type of its GPUs."""
    listed = node.get("features")
    features = listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else []
    return str(features[0])[:64] if features and features[0] else gpu_type_of(node)


def gpu_type_of(node: dict[str, Any]) -> str:
    """The type of a node's GPUs in slurm.conf; empty without GPUs."""
    gres = _GRES.findall(text_of(node.get("gres")))
    return gres[0][0] if gres else ""


def _array(job: dict[str, Any]) -> str:
    """The job's name within an array, such as 4242_7; empty if it is not of an array."""
    array, task = number(job.get("array_job_id")), number(job.get("array_task_id"))
    return f"{int(array)}_{int(task)}" if array and task is not None else ""


def _component(job: dict[str, Any]) -> str:
    """The part of a heterogeneous job, such as 4242+1; empty if it is not of such a job."""
    leader, offset = number(job.get("het_job_id")), number(job.get("het_job_offset"))
    return f"{int(leader)}+{int(offset or 0)}" if leader else ""


def _suspended(job: dict[str, Any], state: str, started: float | None, until: float | None) -> float:
    """The number of seconds in which the job was suspended until now.

    `pre_sus_time` is how long it ran before the last suspension; `suspend_time` is when it was last suspended
    or resumed.
    """
    changed, ran = time_of(job.get("suspend_time")), number(job.get("pre_sus_time")) or 0.0
    if changed is None or started is None or until is None:
        return 0.0
    if state != "SUSPENDED":
        ran += max(0.0, until - changed)
    return max(0.0, until - started - ran)


def _types(types: Iterable[str]) -> str:
    return ",".join(sorted(set(types) - {""}))


def _count(gres: list[tuple[str, str]]) -> int:
    return sum(int(count) for _, count in gres)


def _number_in(pattern: re.Pattern[str], text: str) -> float | None:
    match = pattern.search(text)
    return float(match[1]) if match else None


def _memory(tres: str) -> float:
    match = _MEMORY.search(tres)
    return float(match[1]) * 1024 ** (" KMGTP".index(match[2] or "M")) if match else 0.0
