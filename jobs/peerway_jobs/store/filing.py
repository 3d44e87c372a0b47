"""Files a batch of an agent into the database of jobs: its intervals, notes and facts.

If Slurm has not reported a run, the run is made of intervals. Ended runs for which the batch came late are
judged again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

from peerway_jobs.batch import Interval
from peerway_jobs.store.alarms import raise_alarm
from peerway_jobs.store.claims import check_claim
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.parts import SLACK_MS, Part
from peerway_jobs.store.runs import ANEW, Run, of_row, put_run
from peerway_jobs.store.samples import Filed, time_ms
from peerway_jobs.store.stored import INTERVALS, readable

MOST_UNCONFIRMED = 1000  # runs that a node's agent reported and Slurm has not confirmed


def file_batch(base: Connection, filed: Filed, begun: Counter[str], *, confirm: bool = False) -> None:
    """File everything in a batch except its samples.

    `confirm`: Slurm is asked, so a run that it has not reported is provisional until it does. `begun` counts
    the runs that each node has begun in this transaction.
    """
    batch, sent_ms = filed.batch, time_ms(filed)
    for reason in filed.left_out[:1]:
        more = f", and {len(filed.left_out) - 1} more" if len(filed.left_out) > 1 else ""
        raise_alarm(base, sent_ms / 1000, batch.node, "implausible", reason + more)
    named = _ReportedRuns(base, batch.node, sent_ms / 1000, confirm, begun)
    for interval in batch.intervals:
        of = _shifted(interval, filed.shift_ms)
        if _put_interval(base, batch.node, of, sent_ms) and of.step is None:
            named.run_of(of)
    base.executemany(
        "INSERT INTO seen VALUES (?,?,?,?,?,?,?,?,?)",
        [
            (
                batch.node,
                n.kind,
                n.time_ms + filed.shift_ms,
                _text(n.job),
                _text(n.owner),
                n.gpu,
                n.count,
                json.dumps(n.pids[:64]),
                n.text,
            )
            for n in batch.notes
        ],
    )
    if batch.facts:
        base.execute(
            "INSERT INTO nodes VALUES (?,?,?) ON CONFLICT (node) DO UPDATE SET facts = excluded.facts, "
            "told = excluded.told WHERE excluded.told >= nodes.told",
            (batch.node, json.dumps(asdict(batch.facts)), sent_ms),
        )


def judge_again(base: Connection, node: str, first_ms: int, last_ms: int) -> None:
    """Mark ended runs that were on a node in this time as due to be judged again, because samples came late.

    This includes runs that are not judged yet: their verdict may be in progress.
    """
    base.execute(
        f"UPDATE jobs SET judged = {ANEW} "
        "WHERE started <= :last / 1000.0 AND ended >= :first / 1000.0 "
        "AND job IN (SELECT job FROM intervals WHERE node = :node AND step IS NULL AND start <= :last "
        "AND coalesce(end, :last) >= :first)",
        {"node": node, "first": first_ms, "last": last_ms},
    )


def _put_interval(base: Connection, node: str, of: Interval, sent_ms: int) -> bool:
    """Store an interval; returns False if a newer batch has already reported it."""
    changed = base.execute(
        "INSERT INTO intervals VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
        "ON CONFLICT (node, id) DO UPDATE SET "
        "job = excluded.job, step = excluded.step, slot = excluded.slot, "
        "restart = coalesce(excluded.restart, intervals.restart), start = excluded.start, "
        "end = excluded.end, user = coalesce(excluded.user, intervals.user), "
        "partition = coalesce(excluded.partition, intervals.partition), "
        "cpus = coalesce(excluded.cpus, intervals.cpus), cores = coalesce(excluded.cores, intervals.cores), "
        "gpus = excluded.gpus, "
        "memory = coalesce(excluded.memory, intervals.memory), source = excluded.source, "
        "told = excluded.told WHERE excluded.told >= intervals.told",
        (
            node,
            of.id,
            str(of.job),
            of.step,
            of.slot,
            of.restart,
            of.start_ms,
            of.end_ms,
            of.user,
            of.partition,
            of.cpus,
            None if of.cores is None else json.dumps(of.cores),
            json.dumps(of.gpus),
            of.memory_bytes,
            of.source,
            sent_ms,
        ),
    ).rowcount
    return changed > 0


class _ReportedRuns:
    """Files the runs that a batch reports."""

    def __init__(self, base: Connection, node: str, now: float, confirm: bool, begun: Counter[str]) -> None:
        self._base, self._node, self._now, self._confirm, self._begun = base, node, now, confirm, begun
        self._counted = not confirm

    def run_of(self, of: Interval) -> None:
        """Create or update the run of an allocation. What Slurm has reported is not changed.

        A run that Slurm has not reported is made of its intervals; it is RUNNING while one of them is open.
        """
        base = self._base
        rows = base.execute("SELECT * FROM jobs WHERE job = ? ORDER BY restart", (str(of.job),)).fetchall()
        runs = [of_row(row) for row in rows]
        run = _run_at(runs, of)
        if run is None:
            self._count()
            if self._begun[self._node] >= MOST_UNCONFIRMED:  # the interval stays: Slurm may report the run
                why = f"more than {MOST_UNCONFIRMED:,} jobs that Slurm has not confirmed, such as {of.job}"
                raise_alarm(base, self._now, self._node, "too many", why)
                return
            self._begun[self._node] += 1
            number = of.restart if of.restart is not None else (runs[-1].restart + 1 if runs else 0)
            run = Run(str(of.job), number, started=of.start_ms / 1000, reason="agent")
        if run.reason != "agent":  # Slurm has reported it, and knows better
            check_claim(base, run, self._node, of.user, self._now)
            return
        start_ms = int((run.started or 0) * 1000)
        starts = [int((each.started or 0) * 1000) for each in runs]
        later = [each for each in starts if each > start_ms]
        parts = base.execute(
            "SELECT * FROM intervals WHERE job = ? AND step IS NULL AND start >= ? AND start < ?",
            (run.job, start_ms - SLACK_MS, min(later, default=1 << 62) - SLACK_MS),
        ).fetchall()
        allocations = [readable(INTERVALS, part)[0] for part in parts]
        put_run(base, _from_parts(run, allocations), provisional=self._confirm)

    def _count(self) -> None:
        """Count the node's runs that Slurm has not confirmed, once: most batches begin no run."""
        if not self._counted:
            self._counted = True
            row = self._base.execute(
                "SELECT count(*) FROM jobs WHERE provisional AND node_list = ?", (self._node,)
            ).fetchone()
            self._begun[self._node] = row[0]


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _shifted(of: Interval, by: int) -> Interval:
    end = None if of.end_ms is None else of.end_ms + by
    return replace(of, start_ms=of.start_ms + by, end_ms=end) if by else of


def _run_at(runs: list[Run], of: Interval) -> Run | None:
    """The run that an allocation belongs to by its time; None if there is none."""
    for run in reversed(runs):
        start, end = int((run.started or 0) * 1000), int(run.ended * 1000) if run.ended else 1 << 62
        if abs(of.start_ms - start) <= SLACK_MS or start < of.start_ms < end:
            return run
    return None


def _from_parts(run: Run, parts: Sequence[Part]) -> Run:
    """The run as its allocations on its nodes describe it."""
    if not parts:
        return run
    ends = [part["end"] for part in parts]
    ended = None if None in ends else max(ends) / 1000
    return replace(
        run,
        user=next((part["user"] for part in parts if part["user"]), run.user),
        partition=next((part["partition"] for part in parts if part["partition"]), run.partition),
        started=min(part["start"] for part in parts) / 1000,
        ended=ended,
        state="RUNNING" if ended is None else "ENDED",
        nodes=len({part["node"] for part in parts}),
        cores=sum(part["cpus"] or 0 for part in parts),
        gpus=sum(len(part["gpus"]) for part in parts),
        memory=sum(part["memory"] or 0 for part in parts),
        node_list=",".join(sorted({part["node"] for part in parts})),
    )
