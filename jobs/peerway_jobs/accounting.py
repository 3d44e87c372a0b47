"""Asks `sacct` about runs whose end, state or memory Slurm's queue did not report.

slurmdbd keeps a job long after squeue has forgotten it. These are three kinds of runs: runs that should still
be going but that squeue does not list; runs whose end only agents reported, because agents know neither state
nor exit code; and runs killed for lack of memory, which may have ended before a sample of their memory.

Slurm writes its accounts late, or keeps none. So the server asks a few times about each run, with growing
pauses. A question that slurmdbd does not answer does not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from peerway_jobs.backoff import Backoff
from peerway_jobs.slurm_json import SlurmFailed, answer_of, exit_of, number, text_of, time_of, word
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import FINISHED, Run, of_row

_AGAIN_S = (2, 10, 60, 300, 1800, 7200)  # pauses between two questions about a run; then it is given up
_PAUSE_S = 30.0  # after a question that was not answered
_OLDEST_S = 14 * 86_400
_MOST = 200  # runs in one question
_SLACK_S = 30.0  # by which Slurm's and the node's start of a job may differ
_LATE_S = 3.0  # by which an agent's start may be later than Slurm's end: clocks differ, seconds are whole
_DISABLED = "accounting storage is disabled"  # a choice of the site, not a failure

Entry = dict[str, Any]


class Accounts:
    """Remembers which runs it has asked about."""

    def __init__(self) -> None:
        self._backoff: Backoff[tuple[str, int]] = Backoff(_AGAIN_S)
        self._not_before = 0.0
        self.refused = ""  # why the last question failed

    def missed(self, store: JobStore, listed: set[tuple[str, int]], now: float) -> list[Run]:
        """Ask about the due runs that are not `listed` (known to squeue); returns those that have ended."""
        candidates = [run for run in _candidates(store, now) if (run.job, run.restart) not in listed]
        keys = _keys(candidates)
        self._backoff.keep(keys)
        due = [run for run in candidates if self._backoff.due((run.job, run.restart), now)][:_MOST]
        if not due or now < self._not_before:
            return []
        numbers = ",".join(sorted({run.job for run in due}))
        try:
            entries = answer_of("sacct", "--allusers", "--duplicates", "--jobs", numbers).get("jobs", [])
        except SlurmFailed as error:
            if _DISABLED not in str(error):
                self.refused, self._not_before = str(error), now + _PAUSE_S
                return []
            entries = []
        self.refused = ""
        for run in due:
            self._backoff.tried((run.job, run.restart), now)
        of_job: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            if isinstance(entry, dict) and (number_of_job := number(entry.get("job_id"))):
                of_job[str(int(number_of_job))].append(entry)
        ended = [mended for run in due if (mended := ended_by(run, of_job[run.job], store.starts(run.job)))]
        self._tell_unconfirmed(store, _keys(due) - _keys(ended), listed)
        return ended

    @staticmethod
    def _tell_unconfirmed(store: JobStore, keys: set[tuple[str, int]], listed: set[tuple[str, int]]) -> None:
        """Raise an alarm for runs that agents reported, but that neither squeue nor the accounts know."""
        for job, restart in keys - listed:
            row = store.reader.execute(
                "SELECT node_list, user FROM jobs WHERE job = ? AND restart = ? AND provisional",
                (job, restart),
            ).fetchone()
            if row:
                whose = f"job {job} of {row['user'] or 'nobody'}"
                why = f"{row['node_list']} names {whose}, which Slurm does not know"
                store.alarm(row["node_list"][:63], "unconfirmed", why, job)

    def next(self) -> float:
        """When the next run that was asked about before is due again."""
        return max(self._backoff.next(), self._not_before)


def _keys(runs: Sequence[Run]) -> set[tuple[str, int]]:
    return {(run.job, run.restart) for run in runs}


def _candidates(store: JobStore, now: float) -> list[Run]:
    rows = store.reader.execute(
        "SELECT * FROM jobs WHERE started IS NOT NULL AND ended IS NULL "
        "UNION ALL SELECT * FROM jobs WHERE ended > ? "
        "AND (state = 'ENDED' OR state = 'OUT_OF_MEMORY' AND max_rss = 0)",
        (now - _OLDEST_S,),
    )
    return [run for run in map(of_row, rows) if run.has_key]


def ended_by(run: Run, entries: Sequence[Entry], starts: Sequence[float]) -> Run | None:
    """The run with the end from its job's accounts, or None if they have no end of it.

    A requeued job has an entry for each run, and some entries may still be missing. So an entry belongs to
    the run that began nearest to it; `starts` are the starts of all runs of the job.
    """
    if run.started is None:
        return None
    candidates: list[tuple[float, Entry]] = []
    for entry in entries:
        start, end = _at(entry, "start"), _at(entry, "end")
        if start is None or end is None or _state(entry) not in FINISHED:
            continue
        away = abs(start - run.started)
        if away > min(abs(start - each) for each in starts):
            continue
        if start - _SLACK_S <= run.started <= end + _LATE_S:
            candidates.append((away, entry))
    if not candidates:
        return None
    _, entry = min(candidates, key=lambda each: each[0])
    code, signal = exit_of(entry.get("exit_code"))
    state = _state(entry)
    return replace(
        run if run.reason != "agent" else _described(run, entry),
        state=state,
        reason=text_of(_part(entry, "state").get("reason")),
        exit_code=code,
        signal=signal,
        out_of_memory=state == "OUT_OF_MEMORY",
        started=_at(entry, "start"),
        ended=_at(entry, "end"),
        suspended=number(_part(entry, "time").get("suspended")) or run.suspended,
        max_rss=max(_max_rss(entry), run.max_rss),
    )


def _described(run: Run, entry: Entry) -> Run:
    """The run with everything that Slurm knows, for a run that only agents reported."""
    tres: dict[str, float] = defaultdict(float)
    kind = ""
    allocated = _part(entry, "tres").get("allocated")
    for each in allocated if isinstance(allocated, list) else []:
        name = text_of(each.get("name"))
        resource = text_of(each.get("type"))
        if resource == "gres" and name.partition(":")[0] == "gpu":
            kind = kind or name.partition(":")[2]
            tres["gpu"] = max(tres["gpu"], number(each.get("count")) or 0)
        else:
            tres[resource] += number(each.get("count")) or 0
    limit = number(_part(entry, "time").get("limit"))
    array, task = number(_part(entry, "array").get("job_id")), number(_part(entry, "array").get("task_id"))
    return replace(
        run,
        user=text_of(entry.get("user")) or run.user,
        account=text_of(entry.get("account")),
        name=text_of(entry.get("name")),
        partition=text_of(entry.get("partition")) or run.partition,
        qos=text_of(entry.get("qos")),
        submitted=_at(entry, "submission"),
        time_limit=limit * 60 if limit else None,
        nodes=int(tres["node"] or number(entry.get("allocation_nodes")) or run.nodes),
        cores=tres["cpu"] or run.cores,
        gpus=tres["gpu"] or run.gpus,
        gpu_type=kind or run.gpu_type,
        memory=tres["mem"] * (1 << 20) or run.memory,
        node_list=text_of(entry.get("nodes")) or run.node_list,
        array=f"{int(array)}_{int(task)}" if array and task is not None else "",
        project=text_of(_part(entry, "wckey").get("wckey")).lstrip("*"),
    )


def _max_rss(entry: Entry) -> float:
    """The largest memory (bytes) of one task of any of its steps."""
    steps = entry.get("steps")
    sizes = [0.0]
    for step in steps if isinstance(steps, list) else []:
        requested = _part(_part(step, "tres"), "requested") if isinstance(step, dict) else {}
        most = requested.get("max")
        for each in most if isinstance(most, list) else []:
            if isinstance(each, dict) and text_of(each.get("type")) == "mem":
                sizes.append(number(each.get("count")) or 0.0)
    return max(sizes)


def _part(entry: Entry, name: str) -> dict[str, Any]:
    part = entry.get(name)
    return part if isinstance(part, dict) else {}


def _at(entry: Entry, name: str) -> float | None:
    return time_of(_part(entry, "time").get(name))


def _state(entry: Entry) -> str:
    return word(_part(entry, "state").get("current"))
