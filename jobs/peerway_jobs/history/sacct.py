"""Reads jobs from the output of sacct: `--parsable2` text with a header, or `--json`."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.slurm_json import number, text_of, word
from peerway_jobs.store.runs import FINISHED, Run
from peerway_jobs.sync import run_of

NEEDED = ("JobIDRaw", "User", "State", "Start", "End")
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)[cn]?", re.ASCII)
_JOB = re.compile(r"\d{1,10}", re.ASCII)
_ARRAY = re.compile(r"(\d{1,10})_(\d{1,10})", re.ASCII)
_EXIT = re.compile(r"(\d{1,5}):(\d{1,5})", re.ASCII)


class BadSacct(ValueError):
    """The text is no output of sacct that can be read; the message says why and what to do."""


@dataclass
class PastJob:
    """A run, with what sacct knows of its use. `cpu_seconds` is None if sacct did not say."""

    run: Run
    cpu_seconds: float | None = None
    admin_comment: str = ""


@dataclass
class Past:
    """The jobs of a file, and why lines of it were left out."""

    jobs: list[PastJob] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    unfinished: int = 0  # they still run, or never started


def read(text: str) -> Past:
    """The jobs in the output of sacct. Raises BadSacct."""
    entries = _of_json(text) if text.lstrip().startswith("{") else _of_text(text)
    past = Past()
    peaks: defaultdict[str, float] = defaultdict(float)
    for where, entry in entries:
        if isinstance(entry, str):
            past.unreadable.append(f"{where}: {entry}")
        elif "step_of" in entry:
            peaks[entry["step_of"]] = max(peaks[entry["step_of"]], entry["max_rss"])
        elif (job := _job(entry)) is None:
            past.unfinished += 1
        else:
            past.jobs.append(job)
    for job in past.jobs:
        job.run.max_rss = max(job.run.max_rss, peaks[job.run.job])
    return past


def _job(entry: dict[str, Any]) -> PastJob | None:
    """The job of an entry in the form of squeue's JSON; None if it has not ended or never began."""
    state = entry["job_state"]
    # In squeue a requeued job waits; in sacct it is a run that has ended.
    run = run_of({**entry, "job_state": "COMPLETED" if state == "REQUEUED" else state}, time.time())
    if run is None or run.state not in FINISHED or run.started is None or run.ended is None:
        return None
    if run.ended < run.started:
        return None
    run = replace(
        run, state=state, suspended=entry.get("suspended") or 0.0, max_rss=entry.get("max_rss") or 0.0
    )
    return PastJob(run, entry.get("cpu_seconds"), entry.get("admin_comment") or "")


# -- text

Entry = tuple[str, dict[str, Any] | str]


def _of_text(text: str) -> Iterator[Entry]:
    lines = text.splitlines()
    if not lines:
        raise BadSacct("it is empty")
    names = lines[0].split("|")
    if missing := [name for name in NEEDED if name not in names]:
        raise BadSacct(
            f"its first line names no {', '.join(missing)}: call sacct with --parsable2 and -o, or with "
            f"--json; the line is {shortened(lines[0])!r}"
        )
    for place, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield f"line {place}", _entry_of_line(names, line)


def _entry_of_line(names: list[str], line: str) -> dict[str, Any] | str:
    values = line.split("|")
    extra = len(values) - len(names)
    if extra > 0 and "JobName" in names:  # the name of the job contains the separator
        at = names.index("JobName")
        values[at : at + extra + 1] = ["|".join(values[at : at + extra + 1])]
    if len(values) != len(names):
        return f"it has {len(values)} columns, and the first line {len(names)}"
    row = dict(zip(names, values, strict=True))
    raw = row["JobIDRaw"]
    job, dot, _ = raw.partition(".")
    if _JOB.fullmatch(job) is None:
        return f"JobIDRaw = {shortened(raw)!r} is no number of a job"
    try:
        if dot:
            return {"step_of": job, "max_rss": _size(row.get("MaxRSS", ""))}
        return _squeue_entry(job, row)
    except ValueError as error:
        return str(error)


def _squeue_entry(job: str, row: dict[str, str]) -> dict[str, Any]:
    """A line in the form of squeue's JSON. Raises ValueError."""
    array = _ARRAY.fullmatch(row.get("JobID", ""))
    code = _EXIT.fullmatch(row.get("ExitCode", ""))
    return {
        "job_id": int(job),
        "user_name": row["User"], "account": row.get("Account"), "name": row.get("JobName"),
        "partition": row.get("Partition"), "qos": row.get("QOS"), "wckey": row.get("WCKey"),
        "job_state": row["State"].partition(" ")[0],  # "CANCELLED by 1000"
        "exit_code": {"return_code": int(code[1]), "signal": int(code[2])} if code else None,
        "submit_time": _time(row.get("Submit", "")),
        "start_time": _time(row["Start"]), "end_time": _time(row["End"]),
        "time_limit": _whole(row.get("TimelimitRaw", "")),
        "node_count": _whole(row.get("NNodes", "")), "nodes": _nodes(row.get("NodeList", "")),
        "tres_alloc_str": row.get("AllocTRES"),
        "array_job_id": int(array[1]) if array else None, "array_task_id": int(array[2]) if array else None,
        "suspended": _duration(row.get("Suspended", "")), "cpu_seconds": _duration(row.get("TotalCPU", "")),
        "max_rss": _size(row.get("MaxRSS", "")), "admin_comment": row.get("AdminComment"),
    }  # fmt: skip


def _nodes(text: str) -> str:
    return "" if text == "None assigned" else text


def _time(text: str) -> float:
    """Seconds since 1970; 0 for a time that is not known. Raises ValueError."""
    if text in ("", "Unknown", "None", "N/A"):
        return 0
    if text.isdecimal():
        return float(text)
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{shortened(text)!r} is no time; sacct writes 2026-01-31T12:00:00") from None


def _duration(text: str) -> float | None:
    """The seconds of [DAYS-][HH:]MM:SS[.FRACTION]; None if there is none. Raises ValueError."""
    if not text:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{shortened(text)!r} is no duration; sacct writes 1-02:03:04")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    fraction = float(f"0.{match[5]}") if match[5] else 0.0
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds + fraction


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _size(text: str) -> float:
    match = _SIZE.fullmatch(text)
    return float(match[1]) * 1024 ** " KMGTP".index(match[2] or " ") if match else 0.0


# -- JSON


def _of_json(text: str) -> Iterator[Entry]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSacct(f"it is no JSON: {error}") from None
    jobs = answer.get("jobs")
    if not isinstance(jobs, list):
        raise BadSacct("it has no list of jobs; it should be the output of sacct --json")
    for place, job in enumerate(jobs):
        where = f"job {place + 1}"
        if not isinstance(job, dict) or not number(job.get("job_id")):
            yield where, "it has no job_id"
        else:
            yield where, _of_json_job(job)


def _of_json_job(job: dict[str, Any]) -> dict[str, Any]:
    from peerway_jobs.accounting import max_rss_of

    times, total = _part(job, "time"), _part(_part(job, "time"), "total")
    array = _part(job, "array")
    comment = job.get("comment")
    cpu = [_seconds(total), sum(_seconds(_part(_part(step, "time"), "total")) for step in _steps(job))]
    return {
        "job_id": job.get("job_id"),
        "user_name": job.get("user"), "account": job.get("account"), "name": job.get("name"),
        "partition": job.get("partition"), "qos": job.get("qos"),
        "wckey": text_of(_part(job, "wckey").get("wckey")),
        "job_state": word(_part(job, "state").get("current")),
        "state_reason": _part(job, "state").get("reason"), "exit_code": job.get("exit_code"),
        "submit_time": times.get("submission"), "start_time": times.get("start"),
        "end_time": times.get("end"), "time_limit": times.get("limit"),
        "node_count": job.get("allocation_nodes"), "nodes": _nodes(text_of(job.get("nodes"))),
        "tres_alloc_str": ",".join(_tres(_part(job, "tres").get("allocated"))),
        "array_job_id": array.get("job_id"), "array_task_id": array.get("task_id"),
        "suspended": number(times.get("suspended")),
        "cpu_seconds": max(cpu) if total else None,  # some versions count it only for the steps
        "max_rss": max_rss_of(job),
        "admin_comment": text_of(comment.get("administrator")) if isinstance(comment, dict) else "",
    }  # fmt: skip


def _steps(job: dict[str, Any]) -> list[dict[str, Any]]:
    steps = job.get("steps")
    return [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []


def _seconds(total: dict[str, Any]) -> float:
    return (number(total.get("seconds")) or 0) + (number(total.get("microseconds")) or 0) / 1e6


def _tres(allocated: Any) -> Iterable[str]:
    for each in allocated if isinstance(allocated, list) else []:
        if isinstance(each, dict) and (count := number(each.get("count"))) is not None:
            kind, name = text_of(each.get("type")), text_of(each.get("name"))
            unit = "M" if kind == "mem" else ""
            yield f"{kind}{'/' + name if name else ''}={count:.0f}{unit}"


def _part(entry: dict[str, Any], name: str) -> dict[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}
