"""Jobs, intervals, notes and verdicts in SQLite. One process writes; any number read.

What comes from an agent is put by `file`, what Slurm says by `update`: both may come twice and in any order.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from peerway_jobs.batch_check import MOST_INTERVAL_MS
from peerway_jobs.store.alarms import raise_alarm
from peerway_jobs.store.claims import CLAIMED, check_claims, remember_nodes
from peerway_jobs.store.cluster import cluster_state
from peerway_jobs.store.filing import file_batch, judge_again
from peerway_jobs.store.numbers import make_room
from peerway_jobs.store.parts import Part, intervals_of, notes_of
from peerway_jobs.store.ranges import Ranges, add, has
from peerway_jobs.store.runs import JOBS, Run, of_row, put_run
from peerway_jobs.store.samples import Filed, time_ms
from peerway_jobs.store.schema import RESTORE, VERSIONS, advising, bring_up, emptied, opened
from peerway_jobs.store.stored import CLOCKS, NODES, RECEIVED, is_damaged, readable
from peerway_jobs.store.transaction import transaction

_NO_START = is_damaged(JOBS, "started")


class JobStore:
    """The database of jobs."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # passwords are in it, hashed
        self.path = path
        self.lock = threading.RLock()
        self.writer = _writer(path)
        self.newest: dict[str, int] = {}  # node -> the time of its newest batch since the server began
        # When Slurm was last asked and told all since the server began; None where it is not asked at all.
        self.slurm_answered: float | None = None
        # The same of Slurm's accounts, which are asked of ended runs; None also while they give no answer.
        self.accounts_answered: float | None = None
        self._sizes: tuple[Any, dict[str, dict[str, Any]]] = (0.0, {})  # of nodes, and when Slurm told them
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
            begun: Counter[str] = Counter()
            for filed in batches:
                batch = filed.batch
                key = (batch.node, batch.stream)
                ranges = streams.setdefault(key, self._ranges(base, *key, alarm=True))
                if add(ranges, batch.seq):
                    file_batch(base, filed, begun, confirm=self.slurm_answered is not None)
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
    def _ranges(base: sqlite3.Connection, node: str, stream: str, *, alarm: bool = False) -> Ranges:
        """What has come of a stream. If that cannot be read, all counts as new: to file a batch twice changes
        nothing. `alarm`: say so to administrators.
        """
        row = base.execute(
            "SELECT ranges FROM received WHERE node = ? AND stream = ?", (node, stream)
        ).fetchone()
        received, unreadable = readable(RECEIVED, row)
        ranges: Ranges = received["ranges"]
        if unreadable and alarm:
            why = f"received.ranges of stream {stream} could not be read, and begins anew"
            raise_alarm(base, time.time(), node, "damaged", why)
        return ranges

    # -- from Slurm

    def update(self, runs: Iterable[Run]) -> None:
        """What Slurm says of runs: all of it is taken. A run whose state or end is new is judged anew."""
        with self.lock, transaction(self.writer) as base:
            for run in runs:
                if make_room(base, run):
                    row = "SELECT * FROM jobs WHERE job = ? AND restart = ?", (run.job, run.restart)
                    before = base.execute(*row).fetchone()
                    put_run(base, run)
                    after = base.execute(*row).fetchone()
                    if before is None or any(before[name] != after[name] for name in CLAIMED):
                        now_known = of_row(after)
                        if before is not None:
                            now_known = remember_nodes(base, of_row(before), now_known)
                        check_claims(base, now_known, time.time())

    def alarm(self, node: str, kind: str, text: str, job: str = "") -> None:
        """Keep what administrators have to know of an agent."""
        with self.lock, transaction(self.writer) as base:
            raise_alarm(base, time.time(), node, kind, text, job)

    # -- clocks

    def clocks(self, node: str) -> tuple[str, int] | None:
        """What was kept of a node's clock: its boot, and the least difference (clock.py)."""
        row = self.reader.execute("SELECT boot, difference FROM clocks WHERE node = ?", (node,)).fetchone()
        values, unreadable = readable(CLOCKS, row)
        return (values["boot"], values["difference"]) if row and not unreadable else None

    def keep_clocks(self, of: Mapping[str, tuple[str, int]]) -> None:
        """Keep that of several nodes."""
        with self.lock, transaction(self.writer) as base:
            base.executemany(
                "INSERT OR REPLACE INTO clocks VALUES (?,?,?)", [(node, *each) for node, each in of.items()]
            )

    # -- reading

    def run(self, job: str, restart: int | None = None, *, provisional: bool = False) -> Run | None:
        """A run of a job, by its id or as one of an array, 123_4; the last one where no number is given.
        `provisional`: also one that only agents have named, which is shown to nobody.
        """
        seen = "1" if provisional else "NOT provisional"
        if "_" in job:
            row = self.reader.execute(
                "SELECT job FROM jobs WHERE array = ? AND array != '' ORDER BY started DESC LIMIT 1", (job,)
            ).fetchone()
            return self.run(row["job"], restart, provisional=provisional) if row else None
        which = "ORDER BY restart DESC LIMIT 1" if restart is None else "AND restart = ?"
        row = self.reader.execute(
            f"SELECT * FROM jobs WHERE job = ? AND {seen} {which}",
            (job,) if restart is None else (job, restart),
        ).fetchone()
        return of_row(row) if row else None

    def siblings(self, run: Run) -> list[Run]:
        """The other components of a heterogeneous job, in their order, the last run of each."""
        if not run.component:
            return []
        job = run.component.partition("+")[0]
        rows = self.reader.execute(
            "SELECT *, max(restart) FROM jobs WHERE component >= ? AND component < ? AND component != '' "
            "AND component != ? GROUP BY job",
            (f"{job}+", f"{job},", run.component),
        )
        runs = [each for each in map(of_row, rows) if each.component]
        return sorted(runs, key=lambda each: int(each.component.partition("+")[2]))

    def restarts(self, job: str) -> list[int]:
        """The numbers of the runs of a job; below 0 are those of older jobs with its number (numbers.py)."""
        rows = self.reader.execute(
            "SELECT restart FROM jobs WHERE job = ? AND NOT provisional AND typeof(restart) = 'integer' "
            "ORDER BY restart",
            (job,),
        )
        return [row[0] for row in rows]

    def starts(self, job: str) -> list[float]:
        """When the runs of a job began, also those of older jobs with its number."""
        rows = self.reader.execute(
            f"SELECT started FROM jobs WHERE job = ? AND started IS NOT NULL AND NOT {_NO_START}", (job,)
        )
        return [row[0] for row in rows]

    def intervals(self, run: Run) -> list[Part]:
        """The intervals of a run that can be read: columns node, step, slot, start, end, cores, ..."""
        return intervals_of(self.reader, run)[0]

    def neighbours(self, node: str, job: str, start_ms: int, end_ms: int) -> int:
        """How many other jobs were on the node in this time."""
        row = self.reader.execute(
            "SELECT count(DISTINCT job) FROM intervals WHERE node = ? AND step IS NULL AND job != ? "
            "AND start < ? AND coalesce(end, ?) > ?",
            (node, job, end_ms, end_ms, start_ms),
        ).fetchone()
        return int(row[0])

    def notes(self, run: Run) -> list[Part]:
        """What agents saw of a run."""
        return notes_of(self.reader, run)[0]

    def unreadable(self, run: Run) -> list[str]:
        """Columns that cannot be read of what is kept of a run."""
        return [*run.unreadable, *intervals_of(self.reader, run)[1], *notes_of(self.reader, run)[1]]

    def period(self) -> float:
        """Seconds between the samples of most nodes; 10 before any has told."""
        rows = self.reader.execute(
            "SELECT CASE WHEN json_valid(facts) THEN json_extract(facts, '$.interval_ms') END FROM nodes"
        )
        periods = [ms for (ms,) in rows if isinstance(ms, int) and 0 < ms <= MOST_INTERVAL_MS]
        return float(median(periods or [10_000])) / 1000

    def facts(self, node: str) -> dict[str, Any]:
        """What a node is; nothing where it has not said so."""
        row = self.reader.execute("SELECT facts FROM nodes WHERE node = ?", (node,)).fetchone()
        return readable(NODES, row)[0]["facts"] or {}

    def size_of(self, node: str) -> dict[str, float]:
        """Its cores, GPUs and bytes of memory as Slurm allocates them; where Slurm does not know the node, as
        its agent found them. Nothing where neither has told.
        """
        row = self.reader.execute("SELECT at FROM cluster").fetchone()
        if row and row["at"] != self._sizes[0]:
            self._sizes = row["at"], {each["name"]: each for each in cluster_state(self.reader).nodes}
        known = self._sizes[1].get(node)
        if known and known["cores"]:
            return {name: float(known[name]) for name in ("cores", "gpus", "memory")}
        if not (facts := self.facts(node)):
            return {}
        return {"cores": facts["cpus"], "gpus": len(facts["gpus"]), "memory": facts["memory_bytes"]}


def _writer(path: Path) -> sqlite3.Connection:
    """The connection that writes. Raises sqlite3.DatabaseError, with what to do for a damaged file."""
    if remains := emptied(path):
        raise sqlite3.DatabaseError(
            f"{path.name} is empty (0 bytes), but the folder has {remains}: it lost its content; {RESTORE}"
        )
    with advising(path, RESTORE):
        base = opened(path)
        bring_up(base, VERSIONS)
        return base
