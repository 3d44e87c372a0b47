"""Keeps samples on our own disk until a time-series database has them on its disk.

VictoriaMetrics holds accepted samples in memory for some seconds, and any database may be unavailable. So
batches are first written to `ahead.db`, and then acknowledged; a thread writes them to the database in the
order of their arrival. They stay in `ahead.db` for another `_KEEP_S`. If the database has restarted in this
time, it may have lost some of them, so all batches in `ahead.db` are written again. Writing a sample twice
has no effect.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from peerway_jobs.store.blocks import filed_of
from peerway_jobs.store.chunk import Points
from peerway_jobs.store.promql import PromStore, SamplesRefused
from peerway_jobs.store.sample_damage import DamageLog, SampleDamage
from peerway_jobs.store.samples import Filed, Key, Samples, StoreFailed, Thinning
from peerway_jobs.store.schema import WAITING, advising, bring_up, opened
from peerway_jobs.store.transaction import transaction
from peerway_jobs.untrusted import BadBatch

LOG = logging.getLogger("peerway_jobs")
MOST_BYTES = 2 << 30  # of batches waiting for the database; above it, agents keep their own
_KEEP_S = 120.0  # VictoriaMetrics flushes to disk every 5 s, or as -inmemoryDataFlushInterval says
_CHECK_S = 2.0  # how long "the database has not restarted" may be assumed without asking
_SECOND_S = 1.5
_PAUSE_S = 5.0  # after a failure, and the longest time between two tries
_AT_ONCE = 200  # batches
_INCREMENTAL = 2  # SQLite's auto_vacuum
_FREED_AT_ONCE = 64 << 20  # bytes given back at once, each minute; batches wait meanwhile
_SPARE_BYTES = 16 << 20  # free bytes to keep in the file for the next batches, or as many as are used
Name = tuple[str, str, int]  # node, stream, seq

_AHEAD = [
    """
    CREATE TABLE batches (
      number INTEGER PRIMARY KEY, node TEXT NOT NULL, stream TEXT NOT NULL, seq INTEGER NOT NULL,
      shift INTEGER NOT NULL, period INTEGER NOT NULL, payload BLOB NOT NULL, written REAL,
      UNIQUE (node, stream, seq)
    );
    CREATE INDEX batches_to_write ON batches (number) WHERE written IS NULL;
    CREATE INDEX batches_written ON batches (written) WHERE written IS NOT NULL;
    CREATE TABLE process (one INTEGER PRIMARY KEY CHECK (one = 1), began TEXT NOT NULL);
    """
]


class AheadStore(Samples):
    """Samples of a database, with a local copy of those that may not be on its disk yet."""

    reads_together = True

    def __init__(self, database: PromStore, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """Open the folder, or create it, and start to write what waits there to the database."""
        folder.mkdir(parents=True, exist_ok=True)
        self.database = database
        self._most = most_bytes
        self._lock = threading.RLock()  # of the file
        self._writing = threading.Lock()  # to the database; whoever has it may wait long
        path = folder / "ahead.db"
        with advising(path, WAITING):
            self._base = opened(path)
            _let_shrink(self._base)
            bring_up(self._base, _AHEAD)
        self._damage = DamageLog()
        self._decoded: dict[Name, Filed] = {}
        self._checked = 0.0
        self._why = ""
        self._work, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="ahead", daemon=True)
        self._thread.start()

    def put(self, batches: Sequence[Filed]) -> None:
        """On our disk when this returns. Raises StoreFailed if too much waits for the database."""
        rows = [
            (b.batch.node, b.batch.stream, b.batch.seq, b.shift_ms, b.period_ms, b.payload) for b in batches
        ]
        with self._lock:
            if (used := self._used()) > self._most:
                raise StoreFailed(
                    f"{used >> 20} MiB of samples wait for the database, the most are {self._most >> 20}"
                    + (f": {self._why}" if self._why else "")
                )
            with transaction(self._base) as base:
                base.executemany(
                    "INSERT OR IGNORE INTO batches (node, stream, seq, shift, period, payload) "
                    "VALUES (?,?,?,?,?,?)",
                    rows,
                )
            if len(self._decoded) < 4 * _AT_ONCE:  # saves decoding them again
                self._decoded.update(((b.batch.node, b.batch.stream, b.batch.seq), b) for b in batches)
        self._work.set()

    def read(
        self,
        node: str,
        kind: str,
        start_ms: int,
        end_ms: int,
        devices: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
    ) -> dict[Key, Points]:
        """Read from the database, once it has all batches of the node."""
        self._write_node(node)
        return self.database.read(node, kind, start_ms, end_ms, devices, metrics)

    def read_node(
        self, node: str, start_ms: int, end_ms: int, metrics: Iterable[str] | None = None
    ) -> dict[str, dict[Key, Points]]:
        """As `read`."""
        self._write_node(node)
        return self.database.read_node(node, start_ms, end_ms, metrics)

    def tidy(self, now_ms: int, thinning: Thinning) -> None:
        """Delete what is on the database's disk. Raises StoreFailed while the database is unavailable."""
        self._write_waiting()
        with self._lock, transaction(self._base) as base:
            # It had not restarted at the last check, so it has had _KEEP_S to write them to its disk.
            base.execute("DELETE FROM batches WHERE written < ?", (self._checked - _KEEP_S,))
        self._shrink()

    def damage(self) -> list[SampleDamage]:
        """Batches that could not be read, since this server started."""
        return self._damage.entries()

    def close(self) -> None:
        """End the thread and close the file; waiting batches are written after the next start."""
        self._end.set()
        self._work.set()
        self._thread.join()
        with self._lock:
            self._base.close()

    # -- to the database

    def _run(self) -> None:
        while not self._end.is_set():
            self._work.wait(_PAUSE_S)
            self._work.clear()
            try:
                self._write_waiting()
                self._why = ""
            except (StoreFailed, ValueError, sqlite3.Error) as error:
                if str(error) != self._why:
                    self._why = str(error)
                    LOG.warning("samples wait on our disk: %s", error)
                self._end.wait(_PAUSE_S)

    def _write_waiting(self) -> None:
        """Write all waiting batches to the database. Raises StoreFailed."""
        with self._writing:
            self._check_if_due()
            while not self._end.is_set() and self._write_some():
                pass

    def _write_node(self, node: str) -> None:
        """Write to the database until it has all batches of a node. Raises StoreFailed."""
        with self._writing:
            self._check_if_due()
            while not self._end.is_set() and self._waits(node) and self._write_some():
                pass

    def _waits(self, node: str) -> bool:
        """Whether the database does not have all batches of a node."""
        query = "SELECT 1 FROM batches WHERE written IS NULL AND node = ? LIMIT 1"
        with self._lock:
            return self._base.execute(query, (node,)).fetchone() is not None

    def _check_if_due(self) -> None:
        if time.time() - self._checked > _CHECK_S or not self._checked:
            self._check()

    def _check(self) -> None:
        """If the database has restarted, mark all batches in the file to be written again."""
        now, began = time.time(), self.database.began()
        with self._lock:
            row = self._base.execute("SELECT began FROM process").fetchone()
        before = row["began"] if row else None
        while began != before:
            # The start is reported in whole seconds: wait until no other process can have the same one.
            self._end.wait(_SECOND_S)
            if self._end.is_set():
                return
            now, before, began = time.time(), began, self.database.began()
        if row is None or row["began"] != began:
            with self._lock, transaction(self._base) as base:
                base.execute("UPDATE batches SET written = NULL WHERE written IS NOT NULL")
                base.execute("INSERT OR REPLACE INTO process VALUES (1, ?)", (began,))
        self._checked = now

    def _write_some(self) -> bool:
        with self._lock:
            rows = self._base.execute(
                "SELECT * FROM batches WHERE written IS NULL ORDER BY number LIMIT ?", (_AT_ONCE,)
            ).fetchall()
            known = [self._decoded.pop((row["node"], row["stream"], row["seq"]), None) for row in rows]
        if not rows:
            return False
        filed: list[Filed] = []
        for have, row in zip(known, rows, strict=True):
            try:
                filed.append(have or filed_of(row))
            except BadBatch as error:  # the others must not wait
                why = f"a batch that was kept cannot be read: {error}"
                self._damage.add(SampleDamage("ahead.db", why, row["number"], str(row["node"])))
        try:
            self.database.put(filed)
        except SamplesRefused:
            self._one_by_one(filed)
        except StoreFailed:
            self._checked = 0.0  # it may have restarted
            raise
        with self._lock, transaction(self._base) as base:
            base.executemany(
                "UPDATE batches SET written = ? WHERE number = ?",
                [(time.time(), row["number"]) for row in rows],
            )
        return True

    def _one_by_one(self, filed: list[Filed]) -> None:
        """Write each batch alone, to skip those that the database refuses for ever, such as too old
        samples.
        """
        refused: dict[str, int] = {}
        for each in filed:
            try:
                self.database.put([each])
            except SamplesRefused as error:
                refused[str(error)] = refused.get(str(error), 0) + 1
        for why, count in refused.items():
            LOG.error("%d batches have samples that the database will not keep: %s", count, why)

    def _used(self) -> int:
        pages, free, size = self._pages()
        return (pages - free) * size

    def _pages(self) -> tuple[int, ...]:
        """The number of pages of the file, the number of free ones, and the size of a page in bytes."""
        names = ("page_count", "freelist_count", "page_size")
        return tuple(int(self._base.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)

    def _shrink(self) -> None:
        """Give back the disk space that waiting batches took, once they have been written."""
        with self._lock:
            pages, free, size = self._pages()
            much = min(free - max(pages - free, _SPARE_BYTES // size), _FREED_AT_ONCE // size)
            if much > 0:
                self._base.executescript(f"PRAGMA incremental_vacuum({much})")  # execute would free one page
                self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _let_shrink(base: sqlite3.Connection) -> None:
    """Set up the file to give back free pages; the file of an older version is rewritten once for that."""
    if base.execute("PRAGMA auto_vacuum").fetchone()[0] != _INCREMENTAL:
        base.execute("PRAGMA auto_vacuum = INCREMENTAL")
        base.execute("VACUUM")
