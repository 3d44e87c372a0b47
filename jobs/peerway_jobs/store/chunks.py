"""The built-in store of samples: SQLite files with sealed chunks, not with one row per sample.

A batch stays in `incoming.db` as it arrived until its stretch of half an hour is over. Then the stretch of
its node is sealed: one chunk per device is written to the file of the day, and the batches are deleted. The
two files cannot be changed atomically, so a crash in between leaves the samples in both; readers then drop
the duplicates. Samples that arrive later become another chunk beside the first. Old days are thinned into the
file of their month, and the day's file is removed as a whole.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from peerway_jobs.store.blocks import chunk_rows, of_batches, thinned_block
from peerway_jobs.store.chunk import Points, merged, unpacked_all
from peerway_jobs.store.samples import DAY_MS, Filed, Key, Policy, Samples, time_ms
from peerway_jobs.store.schema import bring_up, opened
from peerway_jobs.store.transaction import transaction

STRETCH_MS = 1_800_000
_SETTLE_MS = 120_000  # wait after the end of a stretch, for batches on their way
_MOST_OPEN = 8  # files of days kept open

_INCOMING = [
    """
    CREATE TABLE batches (
      node TEXT NOT NULL, stream TEXT NOT NULL, seq INTEGER NOT NULL, stretch INTEGER NOT NULL,
      shift INTEGER NOT NULL, period INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (node, stream, seq)
    );
    CREATE INDEX batches_of_stretch ON batches (node, stretch);
    CREATE INDEX batches_by_stretch ON batches (stretch, node);
    """
]
_DAY = [
    """
    CREATE TABLE chunks (
      node TEXT NOT NULL, kind TEXT NOT NULL, device TEXT NOT NULL,
      start INTEGER NOT NULL, end INTEGER NOT NULL, body BLOB NOT NULL
    );
    CREATE INDEX chunks_of_node ON chunks (node, kind, start);
    """
]
Found = defaultdict[tuple[str, str, str], list[Points]]  # (kind, device, metric)


class ChunkStore(Samples):
    """Samples in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, or create it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.RLock()
        self._incoming = opened(folder / "incoming.db")
        bring_up(self._incoming, _INCOMING)
        self._files: dict[str, sqlite3.Connection] = {}

    def put(self, batches: Sequence[Filed]) -> None:
        """Store all batches in one transaction."""
        rows = [
            (
                b.batch.node,
                b.batch.stream,
                b.batch.seq,
                _stretch(time_ms(b)),
                b.shift_ms,
                b.period_ms,
                b.payload,
            )
            for b in batches
        ]
        with self._lock, transaction(self._incoming) as base:
            base.executemany("INSERT OR IGNORE INTO batches VALUES (?,?,?,?,?,?,?)", rows)

    def read(
        self,
        node: str,
        kind: str,
        start_ms: int,
        end_ms: int,
        devices: Iterable[str] | None = None,
        metrics: Iterable[str] | None = None,
    ) -> dict[Key, Points]:
        """Read from sealed chunks and from unsealed batches."""
        only = None if devices is None else frozenset(devices)
        wanted = None if metrics is None else frozenset(metrics)
        points_of: Found = defaultdict(list)
        with self._lock:  # because sealing moves samples from one file to another
            for name in self._names(start_ms, end_ms):
                self._read_chunks(self._file(name), points_of, node, kind, start_ms, end_ms, only, wanted)
            rows = self._incoming.execute(
                "SELECT shift, period, payload FROM batches WHERE node = ? AND stretch BETWEEN ? AND ?",
                (node, start_ms // STRETCH_MS, end_ms // STRETCH_MS),
            ).fetchall()
        for key, points in of_batches(rows, kind, only, wanted).items():
            points_of[key].append(points)
        answer = {}
        for (_, device, metric), parts in points_of.items():
            points = _cut(merged(parts), start_ms, end_ms)
            if points.times.size:
                answer[device, metric] = points
        return answer

    def tidy(self, now_ms: int, policy: Policy) -> None:
        """Seal, thin and drop."""
        self.seal(now_ms)
        for path in sorted(self._folder.glob("day-*.db")):
            if _start_ms(path.stem) + DAY_MS <= now_ms - policy.raw_days * DAY_MS:
                self._thin(path, policy)
        for path in sorted(self._folder.glob("month-*.db")):
            if _start_ms(path.stem) + 31 * DAY_MS <= now_ms - policy.thin_days * DAY_MS:
                self._drop(path)

    def seal(self, now_ms: int) -> None:
        """Seal all stretches that are over, one stretch of one node at a time."""
        last = (now_ms - _SETTLE_MS) // STRETCH_MS
        while True:
            with self._lock:
                row = self._incoming.execute(
                    "SELECT node, stretch FROM batches WHERE stretch < ? ORDER BY stretch, node LIMIT 1",
                    (last,),
                ).fetchone()
                if row is None:
                    return
                self._seal_one(row["node"], row["stretch"])

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for base in (self._incoming, *self._files.values()):
                base.close()
            self._files.clear()

    # -- sealing

    def _seal_one(self, node: str, stretch: int) -> None:
        rows = self._incoming.execute(
            "SELECT rowid, shift, period, payload FROM batches WHERE node = ? AND stretch = ?",
            (node, stretch),
        ).fetchall()
        devices: defaultdict[tuple[str, str], dict[str, Points]] = defaultdict(dict)
        for (kind, device, metric), points in of_batches(rows).items():
            devices[kind, device][metric] = points
        base = self._file(f"day-{_day(stretch * STRETCH_MS)}")
        with transaction(base):
            base.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", chunk_rows(node, devices))
        with transaction(self._incoming) as incoming:
            incoming.executemany("DELETE FROM batches WHERE rowid = ?", [(row["rowid"],) for row in rows])

    def _thin(self, path: Path, policy: Policy) -> None:
        """Move a day into its month, thinned, one node at a time.

        Until the day's file is removed, readers find its samples twice. Thinning it again after an
        interruption has no effect.
        """
        nodes, last = self._contents(path)
        for node in nodes:
            self._thin_node(path.stem, node, policy)
        with self._lock:
            if self._contents(path)[1] == last:  # else samples were sealed since: thin them next time
                self._drop(path)

    def _contents(self, path: Path) -> tuple[list[str], int]:
        """The nodes of a day, and the number of its last row."""
        with self._lock:
            day = self._file(path.stem)
            nodes = [node for (node,) in day.execute("SELECT DISTINCT node FROM chunks ORDER BY node")]
            return nodes, day.execute("SELECT coalesce(max(rowid), 0) FROM chunks").fetchone()[0]

    def _thin_node(self, day: str, node: str, policy: Policy) -> None:
        """Thin a node. The lock is held to read and to write, but not to compute, so
        that batches need not wait.
        """
        month, start = f"month-{day[4:11]}", _start_ms(day)
        with self._lock:
            raw = self._file(day).execute(
                "SELECT kind, device, body FROM chunks WHERE node = ? ORDER BY rowid", (node,)
            )
            bodies: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
            for kind, device, body in raw:
                bodies[kind, device].append(body)
            known = self._file(month).execute(
                "SELECT kind, device, body FROM chunks WHERE node = ? AND start = ?", (node, start)
            )
            means = {(kind, device): body for kind, device, body in known}
        rows = [
            (node, *key, start, start + DAY_MS, thinned_block(several, means.get(key), policy.thin_ms))
            for key, several in bodies.items()
        ]
        with self._lock, transaction(self._file(month)) as base:
            base.executemany(
                "DELETE FROM chunks WHERE node = ? AND kind = ? AND device = ? AND start = ?",
                [row[:4] for row in rows],
            )
            base.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", rows)

    def _drop(self, path: Path) -> None:
        with self._lock:
            if base := self._files.pop(path.stem, None):
                base.close()
            for name in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
                name.unlink(missing_ok=True)

    # -- files

    def _names(self, start_ms: int, end_ms: int) -> Iterator[str]:
        """The files that may have samples of this time; months come first, so that raw samples override
        them.
        """
        for kind, longest in (("month", 31 * DAY_MS), ("day", DAY_MS)):
            for path in sorted(self._folder.glob(f"{kind}-*.db")):
                start = _start_ms(path.stem)
                if start <= end_ms and start + longest >= start_ms:
                    yield path.stem

    def _file(self, name: str) -> sqlite3.Connection:
        base = self._files.pop(name, None)
        if base is None:
            base = opened(self._folder / f"{name}.db")
            bring_up(base, _DAY)
        self._files[name] = base  # the most recently used file is last
        while len(self._files) > _MOST_OPEN:
            self._files.pop(next(iter(self._files))).close()
        return base

    def _read_chunks(
        self,
        base: sqlite3.Connection,
        points_of: Found,
        node: str,
        kind: str,
        start: int,
        end: int,
        only: frozenset[str] | None,
        wanted: frozenset[str] | None,
    ) -> None:
        rows = base.execute(
            "SELECT rowid, device, body FROM chunks WHERE node = ? AND kind = ? AND start <= ? AND end >= ?",
            (node, kind, end, start),
        )
        chosen = [row for row in rows if only is None or row["device"] in only]
        chosen.sort(key=itemgetter("rowid"))  # sorted here, because SQLite would copy each body to sort
        blocks = unpacked_all((row["body"] for row in chosen), wanted)
        for row, metrics in zip(chosen, blocks, strict=True):
            for metric, points in metrics.items():
                points_of[kind, row["device"], metric].append(points)


def _cut(points: Points, start: int, end: int) -> Points:
    inside = (points.times > start) & (points.times <= end)
    return points if inside.all() else Points(points.times[inside], points.values[inside], points.period)


def _stretch(time: int) -> int:
    """The number of the stretch of a sample.

    A sample stands for the time before it, so the sample at midnight is the last of a day, as it is the last
    of a thinned step.
    """
    return (time - 1) // STRETCH_MS


def _day(time: int) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d")


def _start_ms(name: str) -> int:
    """The start (ms since 1970) of the file "day-2026-11-22" or "month-2026-11"."""
    parts = [int(part) for part in name.split("-")[1:]]
    return int(datetime(parts[0], parts[1], parts[2] if len(parts) > 2 else 1, tzinfo=UTC).timestamp() * 1000)
