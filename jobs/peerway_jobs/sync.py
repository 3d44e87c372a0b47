"""What Slurm says of jobs and nodes, by `squeue --json` and `sinfo --json`: how it is read and filed.

slurm_watch.py asks; what these have forgotten, accounting.py asks of `sacct`.
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
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import FINISHED, Run

WAITING = ("PENDING", "REQUEUED", "REQUEUE_HOLD")
_MOST_TASKS = 4_000_001  # Slurm's largest MaxArraySize
_GPUS = re.compile(r"gres/gpu(?::([^=,:]+))?[=:](\d+)")
_GRES = re.compile(r"(?:^|,)gpu(?::([^:(,]+))?:(\d+)(?=[(,]|$)")
_MEMORY = re.compile(r"(?:^|,)mem=(\d+(?:\.\d+)?)([KMGTP]?)")
_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")
_TASKS = re.compile(r"(\d{1,7})(?:-(\d{1,7})(?::(\d{1,7}))?)?")
_STATES = {  # of a node; the first flag or word that is here decides
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
    """File what squeue and sinfo told, and end the runs that are not among it; gives the runs."""
    runs = [run for job in jobs if (run := run_of(job, now)) is not None]
    file(store, runs, nodes)
    body = json.dumps(cluster_of(jobs, nodes, now), separators=(",", ":"))
    store.write("INSERT OR REPLACE INTO cluster VALUES (1, ?, ?)", (now, body))
    vanished.close(store, {(run.job, run.restart) for run in runs}, now)
    store.slurm_answered = now
    return runs


def file(store: JobStore, runs: list[Run], nodes: list[dict[str, Any]]) -> None:
    """File runs that have begun, with the types of their nodes."""
    known = {node["name"]: node for node in nodes if isinstance(node.get("name"), str)}
    for run in runs:
        held = [known[node] for node in expand_hosts(run.node_list) if node in known]
        run.node_type = _types(type_of(node) for node in held)
        if run.gpus and not run.gpu_type:  # where accounting counts GPUs without their types
            run.gpu_type = _types(gpu_type_of(node) for node in held)
    store.update(run for run in runs if run.started is not None and run.state not in WAITING)


def run_of(job: dict[str, Any], now: float) -> Run | None:
    """A run as squeue tells of it at `now`; None for what has no number."""
    job_id = number(job.get("job_id"))
    if not job_id:
        return None
    state = word(job.get("job_state")) or "UNKNOWN"
    tres = text_of(job.get("tres_alloc_str")) or text_of(job.get("tres_req_str"))
    gpus = _GPUS.findall(tres)
    typed = [each for each in gpus if each[0]]
    started, ended = time_of(job.get("start_time")), time_of(job.get("end_time"))
    if state == "COMPLETING" and ended is not None and ended > now + AGREES_S:
        # A job that is being requeued is told with the number of its next run and times that are none: its
        # start is that of the requeue, its end a time limit after it. One that really completes has ended.
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
        project=text_of(job.get("wckey")).lstrip("*"),  # Slurm marks one that is its user's default
        component=_component(job),
        suspended=_suspended(job, state, started, ended if state in FINISHED else now),
    )


def cluster_of(jobs: list[dict[str, Any]], nodes: list[dict[str, Any]], now: float) -> dict[str, Any]:
    """The cluster's state at `now`, as the live page shows it. A suspended job has its GPUs and memory, and
    waits for nothing that is free: it is neither among those that compute nor among those that wait.
    """
    running, waiting = [], []
    for job in jobs:
        run = run_of(job, now)
        if run and run.state in ("RUNNING", "COMPLETING"):
            running.append(run)
        elif run and run.state in WAITING:
            waiting.append((run, tasks_of(job)))
    reasons: Counter[str] = Counter()
    for run, tasks in waiting:
        reasons[run.reason or "None"] += tasks
    return {
        "nodes": [node_of(node) for node in nodes],
        "running": len(running),
        "users": len({run.user for run in running}),
        "waiting": sum(tasks for _, tasks in waiting),
        "waiting_cores": sum(run.cores * tasks for run, tasks in waiting),
        "waiting_gpus": sum(run.gpus * tasks for run, tasks in waiting),
        "reasons": reasons.most_common(5),
    }


def tasks_of(job: dict[str, Any]) -> int:
    """How many jobs stand behind one line of squeue: the tasks of an array that still wait are one, and
    `array_task_string` is their list, as "1-20:2,30%3".
    """
    tasks = 0
    for part in text_of(job.get("array_task_string")).partition("%")[0].split(","):
        if (match := _TASKS.fullmatch(part)) is None:
            break  # no array has an empty list
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        tasks += max(0, (last - first) // max(step, 1) + 1)
    return min(max(tasks, 1), _MOST_TASKS)


def node_of(node: dict[str, Any]) -> dict[str, Any]:
    """A node as sinfo tells of it. Its free GPUs are blocked where no core or no memory is left for them, or
    where it takes no jobs.
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
        "reason": text_of(node.get("reason"))[:200],
        "partitions": words(node.get("partitions")),
    }


def type_of(node: dict[str, Any]) -> str:
    """A node's type: its first feature in slurm.conf; without one the type of its GPUs."""
    listed = node.get("features")
    features = listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else []
    return str(features[0])[:64] if features and features[0] else gpu_type_of(node)


def gpu_type_of(node: dict[str, Any]) -> str:
    """The type of a node's GPUs, as slurm.conf calls it; empty without."""
    gres = _GRES.findall(text_of(node.get("gres")))
    return gres[0][0] if gres else ""


def _array(job: dict[str, Any]) -> str:
    """How the owner of an array knows this job of it."""
    array, task = number(job.get("array_job_id")), number(job.get("array_task_id"))
    return f"{int(array)}_{int(task)}" if array and task is not None else ""


def _component(job: dict[str, Any]) -> str:
    """Which part of a heterogeneous job this is."""
    leader, offset = number(job.get("het_job_id")), number(job.get("het_job_offset"))
    return f"{int(leader)}+{int(offset or 0)}" if leader else ""


def _suspended(job: dict[str, Any], state: str, started: float | None, until: float | None) -> float:
    """The seconds in which it was suspended. `pre_sus_time` is how long it ran before it was last suspended,
    `suspend_time` when it was last suspended or resumed.
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
