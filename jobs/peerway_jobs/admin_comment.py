"""Writes the verdict on an ended job into its AdminComment in Slurm, if the server is told to.

`scontrol update` changes no job that has ended, so sacctmgr writes the comment into Slurm's accounts. A
comment that somebody else wrote is not changed: sacct is asked for the present ones first.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from peerway_common.printable import one_line
from peerway_jobs.backoff import Backoff
from peerway_jobs.monitor import Monitor
from peerway_jobs.rules.template import figure
from peerway_jobs.slurm_json import SlurmFailed, answer_of, number, ran, text_of
from peerway_jobs.store.pending import SETTLE
from peerway_jobs.store.runs import STATES, Run, of_row

PREFIX = "peerway: "
_EVERY = 3  # sampling periods
_OLDEST_S = 86_400.0  # after the end of a job
_AGAIN_S = (60.0, 300.0)  # pauses between tries for one job; then it is given up
_MOST = 100  # jobs in one round
_TAG = re.compile(r"[a-z0-9-]{1,64}", re.ASCII)
_VERDICTS = {"unremarkable": "no finding", "short": "too short to judge"}

Key = tuple[str, int, float | None]


def comment(run: Run) -> str:
    """The line for a judged run, without capital letters, which sacctmgr would change. It contains nothing
    that a user chose.
    """
    assert run.verdict in STATES
    used = [
        f"{name} {round(100 * share)} %"
        for name, share in (
            ("gpu", run.gpu_efficiency if run.gpus else None),
            ("cpu", run.cpu_efficiency),
            ("memory", run.memory_efficiency),
        )
        if share is not None
    ]
    idle = f"{figure(run.idle_gpu_hours, 'en')} idle gpu-hours" if run.idle_gpu_hours >= 0.05 else ""
    tag = run.tag if _TAG.fullmatch(run.tag) else ""
    parts = [_VERDICTS.get(run.verdict, run.verdict), ", ".join(used), idle, tag]
    return PREFIX + "; ".join(filter(None, parts)).replace("\u00a0", " ").lower()


class Comments:
    """Remembers for which runs a comment is written, or was given up."""

    def __init__(self, monitor: Monitor, tell: Callable[[str], None]) -> None:
        self._monitor, self._tell = monitor, tell
        self._backoff: Backoff[Key] = Backoff(_AGAIN_S)
        self._reported = ""

    def work(self, stop: threading.Event) -> None:
        """Write comments until `stop` is set."""
        while not stop.wait(_EVERY * self._monitor.jobs.period()):
            try:
                self.write_due()
                why = ""
            except SlurmFailed as error:
                why = str(error)
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
            if why and why != self._reported:
                self._tell(f"comments in Slurm cannot be written: {why}")
            self._reported = why

    def write_due(self) -> int:
        """Write the comments that are missing; returns how many. Raises SlurmFailed, also if Slurm refused
        one: the others are written before.
        """
        now = self._monitor.clock()
        runs = self._judged(now)
        self._backoff.keep(map(_key, runs))
        due = [run for run in runs if self._backoff.due(_key(run), now)][:_MOST]
        if not due:
            return 0
        present = _present_comments([run.job for run in due])
        written, refused = 0, ""
        for run in due:
            before = present.get(run.job)
            text = comment(run)
            if before is None or before == text or (before and not before.startswith(PREFIX)):
                if before is None:  # the accounts lag behind
                    self._backoff.tried(_key(run), now)
                else:
                    self._backoff.end(_key(run))
                continue
            done = ran(
                "sacctmgr", "--immediate", "modify", "job", "where", f"jobid={run.job}", "set",
                f"AdminComment={text}",
            )  # fmt: skip
            if done.returncode:
                self._backoff.tried(_key(run), now)
                why = (done.stderr or done.stdout).decode(errors="replace")
                refused = f"job {run.job}: {one_line('sacctmgr', why)}"
            else:
                self._backoff.end(_key(run))
                written += 1
        if refused:
            raise SlurmFailed(refused)
        return written

    def _judged(self, now: float) -> list[Run]:
        """The newest runs that Slurm reported as ended and whose verdict covers the whole run."""
        jobs = self._monitor.jobs
        rows = jobs.reader.execute(
            "SELECT * FROM jobs WHERE ended > ? AND judged >= ended + ? AND NOT provisional AND restart >= 0 "
            "AND reason != 'agent' ORDER BY ended DESC LIMIT ?",
            (now - _OLDEST_S, SETTLE * jobs.period(), 10 * _MOST),
        )
        runs = [run for run in map(of_row, rows) if run.has_key and run.verdict != "waiting"]
        newest = {run.job: max(each.restart for each in runs if each.job == run.job) for run in runs}
        return [run for run in runs if run.restart == newest[run.job]]


def _key(run: Run) -> Key:
    return run.job, run.restart, run.judged


def _present_comments(jobs: list[str]) -> dict[str, str]:
    """The AdminComment of each of these jobs in Slurm's accounts. Raises SlurmFailed."""
    entries = answer_of("sacct", "--allusers", "--jobs", ",".join(jobs)).get("jobs", [])
    comments = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and (job := number(entry.get("job_id"))):
            comment_of = entry.get("comment")
            written = comment_of.get("administrator") if isinstance(comment_of, dict) else ""
            comments[str(int(job))] = text_of(written)
    return comments
