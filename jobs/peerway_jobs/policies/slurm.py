"""Holds, releases and cancels jobs by Slurm's commands. Only job numbers from Slurm stand in a command."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from peerway_common.printable import one_line
from peerway_jobs.slurm_json import SlurmFailed, answer_of, number, ran, text_of, time_of, word, words
from peerway_jobs.store.acts import DONE

_JOB = re.compile(r"[0-9]{1,10}", re.ASCII)


@dataclass(frozen=True)
class WaitingJob:
    """A job that waits, and is not held."""

    job: str
    user: str
    account: str
    project: str
    submitted: float


def waiting_jobs(account: str) -> list[WaitingJob]:
    """The jobs of an account that wait and that nobody holds. Raises SlurmFailed."""
    entries = answer_of("squeue", "--all", "--states=PENDING", f"--account={account}").get("jobs", [])
    jobs = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and (waiting := _waiting(entry, account)):
            jobs.append(waiting)
    return jobs


def _waiting(entry: dict[str, Any], account: str) -> WaitingJob | None:
    job, submitted = number(entry.get("job_id")), time_of(entry.get("submit_time"))
    is_held = text_of(entry.get("state_reason")).startswith("JobHeld") or entry.get("hold") is True
    if not job or submitted is None or is_held or word(entry.get("job_state")) != "PENDING":
        return None
    if text_of(entry.get("account")) != account:
        return None
    project = text_of(entry.get("wckey")).lstrip("*")
    return WaitingJob(str(int(job)), text_of(entry.get("user_name")), account, project, submitted)


def state_of(job: str) -> tuple[str, float | None] | None:
    """The state and the start of a job, as Slurm knows them now; None if it does not know the job. Raises
    SlurmFailed.
    """
    entries = answer_of("squeue", "--all", "--states=all", "--jobs", _checked(job)).get("jobs", [])
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and number(entry.get("job_id")) == int(job):
            return next(iter(words(entry.get("job_state"))), "UNKNOWN"), time_of(entry.get("start_time"))
    return None


def hold(job: str) -> str:
    """Hold a waiting job; returns DONE, or why Slurm refused."""
    return _outcome("scontrol", "hold", _checked(job))


def release(job: str) -> str:
    """Release a held job; returns DONE, or why Slurm refused."""
    return _outcome("scontrol", "release", _checked(job))


def cancel(job: str) -> str:
    """Cancel a running job; returns DONE, or why Slurm refused."""
    return _outcome("scancel", _checked(job))


def _checked(job: str) -> str:
    if _JOB.fullmatch(job) is None:
        raise SlurmFailed(f"{job!r} is no number of a job")
    return job


def _outcome(*command: str) -> str:
    try:
        done = ran(*command)
    except SlurmFailed as error:
        return str(error)
    why = one_line(command[0], done.stderr.decode(errors="replace"))
    # scancel ends with 0 even where it could not cancel, but then says why.
    if done.returncode or "error" in why.lower():
        return f"{' '.join(command[:-1])} ended with {done.returncode}: {why or 'it does not say why'}"
    return DONE
