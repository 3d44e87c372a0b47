"""Jobs, intervals, notes and verdicts in SQLite. One process writes; any number read.

What comes from an agent is put by `file`, what Slurm says by `update`: both may come twice and in any order.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

from peerway.jobs.batch import Interval
from peerway.jobs.store.pending import judge_again
from peerway.jobs.store.ranges import Ranges, add, has
from peerway.jobs.store.runs import COLUMNS, FROM_SLURM, Run, of_row, row_of
from peerway.jobs.store.samples import Filed, time_ms
from peerway.jobs.store.schema import VERSIONS, bring_up, opened
from peerway.jobs.store.transaction import transaction

_SLACK_MS = 30_000  # by which Slurm's start of a job and the node's may differ


class JobStore:
    """The database of jobs."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.lock = threading.RLock()
        self.writer = opened(path)
        bring_up(self.writer, VERSIONS)
        self.newest: dict[str, int] = {}  # node -> the time of its newest batch since the server began
        self._sizes: tuple[float, dict[str, dict[str, Any]]] = (0.0, {})  # of nodes, and when Slurm told them
        self._local = threading.local()
        self._readers: dict[threading.Thread, sqlite3.Connection] = {}

    def close(self) -> None:
        """Close all connections."""
        with self.lock:
            for base in (self.writer, *self._readers.values()):
                base.close()

    @property
    def reader(self) -> sqlite3.Connection:
        """This thread's connection for reading: it never waits for the writer."""
        base: sqlite3.Connection | None = getattr(self._local, "base", None)
        if base is None:
            base = self._local.base = opened(self.path, readonly=True)
            with self.lock:  # a server's threads come and go: what ended ones opened is closed
                for thread in [each for each in self._readers if not each.is_alive()]:
                    self._readers.pop(thread).close()
                self._readers[threading.current_thread()] = base
        return base

    def write(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement; how many rows it changed."""
        with self.lock, transaction(self.writer) as base:
            return base.execute(statement, values).rowcount

    # -- from agents

    def known(self, node: str, stream: str, seq: int) -> bool:
        """Whether this batch is kept already."""
        return has(self._ranges(self.reader, node, stream), seq)

    def file(self, batches: Iterable[Filed], late_ms: int = 0) -> None:
        """Keep the intervals, notes and facts of batches, and that these have come: all or nothing. What
        ended while batches from before `late_ms` were made is judged anew.
        """
        with self.lock, transaction(self.writer) as base:
            streams: dict[tuple[str, str], Ranges] = {}
            late: dict[str, list[int]] = {}
            for filed in batches:
                batch = filed.batch
                key = (batch.node, batch.stream)
                ranges = streams.setdefault(key, self._ranges(base, *key))
                if add(ranges, batch.seq):
                    self._file_one(base, filed)
                    if time_ms(filed) < late_ms:
                        late.setdefault(batch.node, []).append(time_ms(filed))
                self.newest[batch.node] = max(self.newest.get(batch.node, 0), time_ms(filed))
            base.executemany(
                "INSERT OR REPLACE INTO received VALUES (?,?,?)",
                [(*key, json.dumps(ranges, separators=(",", ":"))) for key, ranges in streams.items()],
            )
            for node, times in late.items():
                judge_again(base, node, min(times), max(times))

    @staticmethod
    def _ranges(base: sqlite3.Connection, node: str, stream: str) -> Ranges:
        row = base.execute(
            "SELECT ranges FROM received WHERE node = ? AND stream = ?", (node, stream)
        ).fetchone()
        return json.loads(row["ranges"]) if row else []

    def _file_one(self, base: sqlite3.Connection, filed: Filed) -> None:
        batch, told = filed.batch, time_ms(filed)
        for interval in batch.intervals:
            self._put_interval(base, batch.node, _shifted(interval, filed.shift_ms), told)
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
                "told = excluded.told WHERE excluded.told >= told",
                (batch.node, json.dumps(asdict(batch.facts)), told),
            )

    def _put_interval(self, base: sqlite3.Connection, node: str, of: Interval, told: int) -> None:
        changed = base.execute(
            "INSERT INTO intervals VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
            "ON CONFLICT (node, id) DO UPDATE SET "
            "job = excluded.job, step = excluded.step, slot = excluded.slot, "
            "restart = coalesce(excluded.restart, restart), start = excluded.start, end = excluded.end, "
            "user = coalesce(excluded.user, user), partition = coalesce(excluded.partition, partition), "
            "cpus = coalesce(excluded.cpus, cpus), cores = coalesce(excluded.cores, cores), "
            "gpus = excluded.gpus, "
            "memory = coalesce(excluded.memory, memory), source = excluded.source, told = excluded.told "
            "WHERE excluded.told >= told",
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
                told,
            ),
        ).rowcount
        if changed and of.step is None:
            self._run_of_interval(base, of)

    def _run_of_interval(self, base: sqlite3.Connection, of: Interval) -> None:
        """A run that Slurm has not told of is made of its intervals; it counts as RUNNING while one is
        open.
        """
        rows = base.execute("SELECT * FROM jobs WHERE job = ? ORDER BY restart", (str(of.job),)).fetchall()
        run = _run_at([of_row(row) for row in rows], of)
        if run is None:
            number = of.restart if of.restart is not None else (rows[-1]["restart"] + 1 if rows else 0)
            run = Run(str(of.job), number, started=of.start_ms / 1000, reason="agent")
        if run.reason != "agent":  # Slurm has told, and knows better
            return
        start_ms = int((run.started or 0) * 1000)
        later = [int(row["started"] * 1000) for row in rows if (row["started"] or 0) * 1000 > start_ms]
        parts = base.execute(
            "SELECT * FROM intervals WHERE job = ? AND step IS NULL AND start >= ? AND start < ?",
            (run.job, start_ms - _SLACK_MS, min(later, default=1 << 62) - _SLACK_MS),
        ).fetchall()
        run = _from_parts(run, parts)
        self._put_run(base, run)

    # -- from Slurm

    def update(self, runs: Iterable[Run]) -> None:
        """What Slurm says of runs: all of it is taken. A run whose state or end is new is judged anew."""
        with self.lock, transaction(self.writer) as base:
            for run in runs:
                self._put_run(base, run)

    @staticmethod
    def _put_run(base: sqlite3.Connection, run: Run) -> None:
        names = ("job", "restart", *FROM_SLURM)
        kept = ("script", "steps", "node_type", "gpu_type")  # an empty one says nothing
        sets = ", ".join(
            f"{n} = CASE WHEN excluded.{n} IN ('', '[]') THEN {n} ELSE excluded.{n} END"
            if n in kept
            else f"{n} = excluded.{n}"
            for n in FROM_SLURM
        )
        # A verdict on a run that went on is none on how it ended, also when that is told long after.
        sets += (
            ", judged = CASE WHEN ended IS excluded.ended AND state IS excluded.state THEN judged ELSE 0 END"
        )
        values = row_of(run)
        base.execute(
            f"INSERT INTO jobs ({', '.join(names)}) VALUES ({', '.join(f':{n}' for n in names)}) "
            f"ON CONFLICT (job, restart) DO UPDATE SET {sets}",
            {name: values[name] for name in names},
        )

    # -- reading

    def run(self, job: str, restart: int | None = None) -> Run | None:
        """A run of a job; the last one where no number is given."""
        which = "ORDER BY restart DESC LIMIT 1" if restart is None else "AND restart = ?"
        row = self.reader.execute(
            f"SELECT * FROM jobs WHERE job = ? {which}", (job,) if restart is None else (job, restart)
        ).fetchone()
        return of_row(row) if row else None

    def restarts(self, job: str) -> list[int]:
        """The numbers of the runs of a job."""
        rows = self.reader.execute("SELECT restart FROM jobs WHERE job = ? ORDER BY restart", (job,))
        return [row[0] for row in rows]

    def intervals(self, run: Run) -> list[sqlite3.Row]:
        """The intervals of a run, allocations and steps, clipped to its time: columns node, step, slot,
        cores, ...
        """
        start = int((run.started or 0) * 1000)
        end = int(run.ended * 1000) if run.ended else int(time.time() * 1000) + _SLACK_MS
        return self.reader.execute(
            "SELECT node, id, step, slot, user, cpus, cores, gpus, memory, source, "
            "max(start, :start) AS start, "
            "min(coalesce(end, :end), :end) AS end, end IS NULL AS open FROM intervals "
            "WHERE job = :job AND start < :end AND coalesce(end, :end) > :start ORDER BY node, start",
            {"job": run.job, "start": start, "end": end},
        ).fetchall()

    def neighbours(self, node: str, job: str, start_ms: int, end_ms: int) -> int:
        """How many other jobs were on the node in this time."""
        row = self.reader.execute(
            "SELECT count(DISTINCT job) FROM intervals WHERE node = ? AND step IS NULL AND job != ? "
            "AND start < ? AND coalesce(end, ?) > ?",
            (node, job, end_ms, end_ms, start_ms),
        ).fetchone()
        return int(row[0])

    def notes(self, run: Run) -> list[sqlite3.Row]:
        """What agents saw of a run; of left-over processes also what was seen after its end."""
        start, end = int((run.started or 0) * 1000), int(run.ended * 1000) if run.ended else 1 << 62
        return self.reader.execute(
            "SELECT * FROM seen WHERE (job = :job OR owner = :job) AND time >= :start "
            "AND (time <= :end OR kind = 'leftover') ORDER BY time LIMIT 1000",
            {"job": run.job, "start": start, "end": end},
        ).fetchall()

    def period(self) -> float:
        """Seconds between the samples of most nodes; 10 before any has told."""
        rows = self.reader.execute("SELECT json_extract(facts, '$.interval_ms') FROM nodes")
        return float(median([row[0] for row in rows] or [10_000])) / 1000

    def facts(self, node: str) -> dict[str, Any]:
        """What a node is; nothing where it has not said so."""
        row = self.reader.execute("SELECT facts FROM nodes WHERE node = ?", (node,)).fetchone()
        with suppress(ValueError):
            return dict(json.loads(row["facts"])) if row else {}
        return {}

    def size_of(self, node: str) -> dict[str, float]:
        """Its cores, GPUs and bytes of memory as Slurm allocates them; where Slurm does not know the node, as
        its agent found them. Nothing where neither has told.
        """
        row = self.reader.execute("SELECT at FROM cluster").fetchone()
        if row and row["at"] != self._sizes[0]:
            body = json.loads(self.reader.execute("SELECT body FROM cluster").fetchone()["body"])
            self._sizes = row["at"], {each["name"]: each for each in body["nodes"]}
        known = self._sizes[1].get(node)
        if known and known["cores"]:
            return {name: float(known[name]) for name in ("cores", "gpus", "memory")}
        if not (facts := self.facts(node)):
            return {}
        return {"cores": facts["cpus"], "gpus": len(facts["gpus"]), "memory": facts["memory_bytes"]}


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _shifted(of: Interval, by: int) -> Interval:
    end = None if of.end_ms is None else of.end_ms + by
    return replace(of, start_ms=of.start_ms + by, end_ms=end) if by else of


def _run_at(runs: list[Run], of: Interval) -> Run | None:
    """The run that an allocation belongs to: by its time."""
    for run in reversed(runs):
        start, end = int((run.started or 0) * 1000), int(run.ended * 1000) if run.ended else 1 << 62
        if abs(of.start_ms - start) <= _SLACK_MS or start < of.start_ms < end:
            return run
    return None


def _from_parts(run: Run, parts: Sequence[sqlite3.Row]) -> Run:
    """A run as its allocations on its nodes say it."""
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
        gpus=sum(len(json.loads(part["gpus"])) for part in parts),
        memory=sum(part["memory"] or 0 for part in parts),
        node_list=",".join(sorted({part["node"] for part in parts})),
    )


assert len(COLUMNS) == len(set(COLUMNS))
