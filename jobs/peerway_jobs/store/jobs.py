"""Jobs, intervals, notes and verdicts, in SQLite or PostgreSQL (database.py).

`file` stores what agents send, `update` what Slurm reports. Both may come repeatedly and in any order.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from peerway_jobs.batch_check import MOST_INTERVAL_MS
from peerway_jobs.store.alarms import raise_alarm
from peerway_jobs.store.claims import CLAIMED, check_claims, remember_nodes
from peerway_jobs.store.cluster import cluster_state
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.database import database_at
from peerway_jobs.store.filing import file_batch, judge_again
from peerway_jobs.store.numbers import make_room
from peerway_jobs.store.parts import Part, intervals_of, notes_of
from peerway_jobs.store.ranges import Ranges, add, has
from peerway_jobs.store.runs import JOBS, Run, of_row, put_run
from peerway_jobs.store.samples import Filed, time_ms
from peerway_jobs.store.schema import VERSIONS
from peerway_jobs.store.stored import CLOCKS, NODES, RECEIVED, is_damaged, readable
from peerway_jobs.store.transaction import put_rows, transaction

_PERIOD_KEPT_S = 10.0  # computing it reads the facts of all nodes
_NO_START = is_damaged(JOBS, "started")


class JobStore:
    """The database of jobs."""

    def __init__(self, place: Path | str) -> None:
        """Open a file of SQLite, or create it, or open a database of PostgreSQL by its address. Raises
        sqlite3.Error, and ValueError for a database of a newer version.
        """
        self.database = database_at(place)
        try:
            self.database.bring_up(VERSIONS)
        except BaseException:
            self.database.close()
            raise
        self.lock = threading.RLock()
        self.writer = self.database.writer
        self._filed: dict[str, tuple[str, Ranges]] = {}  # node -> the stream it last sent, as stored
        self.newest: dict[str, int] = {}  # node -> time of its newest batch since the server began
        # When Slurm last answered about all jobs, 0 if not since the server began; None if Slurm is not
        # asked.
        self.slurm_answered: float | None = None
        # The same for Slurm's accounts, which are asked about ended runs; None also while they do not answer.
        self.accounts_answered: float | None = None
        self._period: tuple[float, float] = 0.0, 0.0  # seconds, and until when (time.monotonic) they count
        self._sizes: tuple[Any, dict[str, dict[str, Any]]] = (
            0.0,
            {},
        )  # time of Slurm's report, nodes by name

    def close(self) -> None:
        """Close all connections."""
        with self.lock:
            self.database.close()

    @property
    def reader(self) -> Connection:
        """A connection for reading; it never waits for the writer."""
        return self.database.reader

    def write(self, statement: str, values: Sequence[Any] | dict[str, Any] = ()) -> int:
        """Run one statement; returns the number of rows that it changed."""
        with self.lock, transaction(self.writer) as base:
            return base.execute(statement, values).rowcount

    # -- from agents

    def known(self, node: str, stream: str, seq: int) -> bool:
        """Whether this batch is already stored."""
        return has(self._ranges(self.reader, [(node, stream)])[node, stream], seq)

    def unfiled(self, batches: Sequence[Filed]) -> list[Filed]:
        """Those that were not stored when this server last stored some of their node."""
        keys = {(each.batch.node, each.batch.stream) for each in batches}
        ranges = {key: self._filed[key[0]][1] for key in keys if self._filed.get(key[0], ("",))[0] == key[1]}
        ranges |= self._ranges(self.reader, keys - ranges.keys())
        return [
            each for each in batches if not has(ranges[each.batch.node, each.batch.stream], each.batch.seq)
        ]

    def file(self, batches: Iterable[Filed], late_ms: int = 0) -> None:
        """Store the intervals, notes and facts of batches, and that the batches have arrived: all or nothing.

        Runs that were on the node of a batch made before `late_ms` and have ended are judged again.
        """
        with self.lock, transaction(self.writer) as base:
            filed_now = list(batches)
            streams = self._ranges(
                base, {(each.batch.node, each.batch.stream) for each in filed_now}, alarm=True
            )
            late: dict[str, list[int]] = {}
            begun: Counter[str] = Counter()
            for filed in filed_now:
                batch = filed.batch
                if add(streams[batch.node, batch.stream], batch.seq):
                    file_batch(base, filed, begun, confirm=self.slurm_answered is not None)
                    if batch.facts and batch.facts.interval_ms != self._period[0] * 1000:
                        self._period = 0.0, 0.0
                    if time_ms(filed) < late_ms:
                        late.setdefault(batch.node, []).append(time_ms(filed))
                self.newest[batch.node] = max(self.newest.get(batch.node, 0), time_ms(filed))
            put_rows(
                base,
                "INSERT INTO received VALUES",
                [(*key, json.dumps(ranges, separators=(",", ":"))) for key, ranges in streams.items()],
                "ON CONFLICT (node, stream) DO UPDATE SET ranges = excluded.ranges",
            )
            if self.database.is_shared:  # the server that judges may be another one
                put_rows(
                    base,
                    "INSERT INTO arrivals VALUES",
                    [(node, self.newest[node]) for node in {node for node, _ in streams}],
                    "ON CONFLICT (node) DO UPDATE SET newest = excluded.newest "
                    "WHERE excluded.newest > arrivals.newest",
                )
            for node, times in late.items():
                judge_again(base, node, min(times), max(times))
        self._filed |= {node: (stream, ranges) for (node, stream), ranges in streams.items()}

    def read_arrivals(self) -> None:
        """Bring `newest` up to date with what came to other servers of the same database."""
        if self.database.is_shared:
            for node, newest in self.reader.execute("SELECT node, newest FROM arrivals"):
                self.newest[node] = max(self.newest.get(node, 0), newest)

    @staticmethod
    def _ranges(
        base: Connection, streams: Collection[tuple[str, str]], *, alarm: bool = False
    ) -> dict[tuple[str, str], Ranges]:
        """The numbers of the batches that have arrived, of these (node, stream).

        If they cannot be read, every batch counts as new, since filing a batch twice has no effect. `alarm`:
        raise an alarm in this case.
        """
        ranges: dict[tuple[str, str], Ranges] = {key: [] for key in streams}
        if not ranges:
            return ranges
        places = ",".join(["(?,?)"] * len(ranges))
        rows = base.execute(
            f"SELECT node, stream, ranges FROM received WHERE (node, stream) IN (VALUES {places})",
            tuple(name for key in ranges for name in key),
        ).fetchall()
        for row in rows:
            received, unreadable = readable(RECEIVED, row)
            ranges[row["node"], row["stream"]] = received["ranges"]
            if unreadable and alarm:
                why = f"received.ranges of stream {row['stream']} could not be read, and begins anew"
                raise_alarm(base, time.time(), row["node"], "damaged", why)
        return ranges

    # -- from Slurm

    def update(self, runs: Iterable[Run]) -> None:
        """Store what Slurm reports of runs. A run with a new state or end is judged again."""
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
        """Raise an alarm about an agent, for administrators."""
        with self.lock, transaction(self.writer) as base:
            raise_alarm(base, time.time(), node, kind, text, job)

    # -- clocks

    def clocks(self, node: str) -> tuple[str, int] | None:
        """The stored boot and smallest clock difference of a node (clock.py); None if there is none."""
        row = self.reader.execute("SELECT boot, difference FROM clocks WHERE node = ?", (node,)).fetchone()
        values, unreadable = readable(CLOCKS, row)
        return (values["boot"], values["difference"]) if row and not unreadable else None

    def keep_clocks(self, of: Mapping[str, tuple[str, int]]) -> None:
        """Store the boot and clock difference of several nodes."""
        with self.lock, transaction(self.writer) as base:
            base.executemany(
                "INSERT INTO clocks VALUES (?,?,?) "
                "ON CONFLICT (node) DO UPDATE SET boot = excluded.boot, difference = excluded.difference",
                [(node, *each) for node, each in of.items()],
            )

    # -- reading

    def run(self, job: str, restart: int | None = None, *, provisional: bool = False) -> Run | None:
        """A run of a job, given its id or its name in an array (123_4); the last run if `restart` is None.

        `provisional`: also return a run that only agents have reported, which is shown to nobody.
        """
        seen = "TRUE" if provisional else "NOT provisional"
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
        """The other components of a heterogeneous job in their order, with the last run of each."""
        if not run.component:
            return []
        job = run.component.partition("+")[0]
        rows = self.reader.execute(
            "SELECT * FROM jobs WHERE component >= ? AND component < ? AND component != '' "
            "AND component != ? AND restart = (SELECT max(restart) FROM jobs AS each "
            "WHERE each.job = jobs.job AND each.component = jobs.component)",
            (f"{job}+", f"{job},", run.component),
        )
        runs = [each for each in map(of_row, rows) if each.component]
        return sorted(runs, key=lambda each: int(each.component.partition("+")[2]))

    def restarts(self, job: str) -> list[int]:
        """The numbers of a job's runs; numbers below 0 are runs of older jobs with the same id
        (numbers.py).
        """
        rows = self.reader.execute(
            "SELECT restart FROM jobs WHERE job = ? AND NOT provisional AND typeof(restart) = 'integer' "
            "ORDER BY restart",
            (job,),
        )
        return [row[0] for row in rows]

    def starts(self, job: str) -> list[float]:
        """When the runs of a job began (s since 1970), including those of older jobs with the same id."""
        rows = self.reader.execute(
            f"SELECT started FROM jobs WHERE job = ? AND started IS NOT NULL AND NOT {_NO_START}", (job,)
        )
        return [row[0] for row in rows]

    def intervals(self, run: Run) -> list[Part]:
        """The readable intervals of a run: columns node, step, slot, start, end, cores, ..."""
        return intervals_of(self.reader, run)[0]

    def neighbours(self, node: str, job: str, start_ms: int, end_ms: int) -> int:
        """The number of other jobs on the node in this time."""
        row = self.reader.execute(
            "SELECT count(DISTINCT job) FROM intervals WHERE node = ? AND step IS NULL AND job != ? "
            "AND start < ? AND coalesce(end, ?) > ?",
            (node, job, end_ms, end_ms, start_ms),
        ).fetchone()
        return int(row[0])

    def notes(self, run: Run) -> list[Part]:
        """The notes of agents about a run."""
        return notes_of(self.reader, run)[0]

    def unreadable(self, run: Run) -> list[str]:
        """The columns that cannot be read in the rows of a run."""
        return [*run.unreadable, *intervals_of(self.reader, run)[1], *notes_of(self.reader, run)[1]]

    def period(self) -> float:
        """The seconds between samples of most nodes; 10 if no node has reported yet."""
        if time.monotonic() < self._period[1]:
            return self._period[0]
        rows = self.reader.execute(
            "SELECT CASE WHEN json_valid(facts) THEN json_extract(facts, '$.interval_ms') END FROM nodes"
        )
        periods = [ms for (ms,) in rows if isinstance(ms, int) and 0 < ms <= MOST_INTERVAL_MS]
        period = float(median(periods or [10_000])) / 1000
        self._period = period, time.monotonic() + _PERIOD_KEPT_S
        return period

    def facts(self, node: str) -> dict[str, Any]:
        """The properties of a node; empty if its agent has not sent them."""
        row = self.reader.execute("SELECT facts FROM nodes WHERE node = ?", (node,)).fetchone()
        return readable(NODES, row)[0]["facts"] or {}

    def size_of(self, node: str) -> dict[str, float]:
        """A node's cores, GPUs and bytes of memory, as Slurm allocates them.

        If Slurm does not know the node, as its agent found them; empty if neither is known.
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
