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
from collections.abc import Iterable, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path

from peerway_jobs.store.blocks import chunk_rows, of_batches, thinned_block
from peerway_jobs.store.chunk import BadChunk, Points, merged, unpacked_all
from peerway_jobs.store.incoming import STRETCH_MS, Incoming
from peerway_jobs.store.sample_damage import DamageLog, SampleDamage
from peerway_jobs.store.sample_files import Damaged, SampleFiles, day_of, times_of
from peerway_jobs.store.samples import DAY_MS, Filed, Key, Samples, Thinning
from peerway_jobs.store.stored import LAST_MS
from peerway_jobs.store.transaction import transaction

_SETTLE_MS = 120_000  # after the end of a stretch: batches on their way
Found = defaultdict[tuple[str, str, str], list[Points]]  # (kind, device, metric)


class ChunkStore(Samples):
    """Samples in a folder."""

    def __init__(self, folder: Path) -> None:
        """Open the folder, or create it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._damage = DamageLog()
        self._incoming = Incoming(folder, self._damage)
        self._files = SampleFiles(folder)
        self._thin_again: dict[str, int] = {}  # when a damaged day is tried once more

    def put(self, batches: Sequence[Filed]) -> None:
        """One transaction for all of them."""
        with self._lock:
            self._incoming.put(batches)

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
        with self._lock:  # a seal moves samples from one file to the other
            for name in self._files.names_within(start_ms, end_ms):
                with suppress(Damaged), self._damage.of_file(self._files.path(name)):
                    self._read_chunks(name, points_of, node, kind, start_ms, end_ms, only, wanted)
            rows = self._incoming.within(node, start_ms, end_ms)
        for key, points in of_batches(rows, self._incoming.lost, kind, only, wanted).items():
            points_of[key].append(points)
        answer = {}
        for (_, device, metric), parts in points_of.items():
            points = _cut(merged(parts), start_ms, end_ms)
            if points.times.size:
                answer[device, metric] = points
        return answer

    def damage(self) -> list[SampleDamage]:
        """What could not be read, since this server started."""
        return self._damage.entries()

    def tidy(self, now_ms: int, thinning: Thinning) -> None:
        """Seal, thin and drop. A damaged file holds up no other."""
        self.seal(now_ms)
        for name in self._files.names("day"):
            is_old = _end_ms(name) <= now_ms - thinning.raw_days * DAY_MS
            if is_old and now_ms >= self._thin_again.get(name, 0):
                try:
                    with self._damage.of_file(self._files.path(name)):
                        self._thin(name, thinning)
                except Damaged:
                    self._thin_again[name] = now_ms + DAY_MS
        # Days that could not be thinned go, too, in the end.
        for kind, days in (
            ("day", max(thinning.raw_days, thinning.thin_days)),
            ("month", thinning.thin_days),
        ):
            for name in self._files.names(kind):
                if _end_ms(name) <= now_ms - days * DAY_MS:
                    self._drop(name)

    def seal(self, now_ms: int) -> None:
        """Make chunks of all stretches that are over, one stretch of one node after the other. Those of a day
        whose file is damaged wait for it.
        """
        with self._lock:
            complete = self._incoming.complete(now_ms - _SETTLE_MS)
        damaged: set[str] = set()
        for row, stretch in complete:
            name = day_of(stretch * STRETCH_MS)
            if name in damaged:
                continue
            with self._lock:
                rows = self._incoming.of_row(row, stretch)
                try:
                    with self._damage.of_file(self._files.path(name)):
                        self._seal(name, rows)
                except Damaged:
                    damaged.add(name)
                else:
                    self._incoming.delete(rows)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            self._incoming.close()
            self._files.close()

    def _seal(self, name: str, rows: list[sqlite3.Row]) -> None:
        devices: defaultdict[tuple[str, str], dict[str, Points]] = defaultdict(dict)
        for (kind, device, metric), points in of_batches(rows, self._incoming.lost).items():
            devices[kind, device][metric] = points
        with transaction(self._files.file(name)) as base:
            base.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", chunk_rows(rows[0]["node"], devices))

    # -- thinning

    def _thin(self, name: str, thinning: Thinning) -> None:
        """A day becomes part of its month, one node after the other; until its file is gone a reader meets
        its samples twice. To thin it again after an interruption changes nothing.
        """
        nodes, last = self._contents(name)
        for node in nodes:
            self._thin_node(name, node, thinning)
        with self._lock:
            if self._contents(name)[1] == last:  # else the next time: what was sealed meanwhile is raw
                self._drop(name)

    def _contents(self, name: str) -> tuple[list[str], int]:
        """The nodes of a day, and the number of its last row."""
        with self._lock:
            day = self._files.file(name)
            nodes = [node for (node,) in day.execute("SELECT DISTINCT node FROM chunks ORDER BY node")]
            return nodes, day.execute("SELECT coalesce(max(rowid), 0) FROM chunks").fetchone()[0]

    def _thin_node(self, day: str, node: str, thinning: Thinning) -> None:
        """Thin a node. The lock is held to read and to write, but not to compute, so
        that batches need not wait.
        """
        month, start = f"month-{day[4:11]}", _start_ms(day)
        with self._lock:
            raw = (
                self._files.file(day)
                .execute(
                    "SELECT rowid, kind, device, body FROM chunks WHERE node = ? ORDER BY rowid", (node,)
                )
                .fetchall()
            )
            known = (
                self._files.file(month)
                .execute(
                    "SELECT rowid, kind, device, body FROM chunks WHERE node = ? AND start = ?", (node, start)
                )
                .fetchall()
            )
        blocks = self._unpacked_of(day, node, raw)
        means = self._unpacked_of(month, node, known)
        rows = []
        for key, several in blocks.items():
            thin = thinned_block(several, means.get(key, [{}])[-1], thinning.thin_ms)
            rows.append((node, *key, start, start + DAY_MS, thin))
        with self._lock, transaction(self._files.file(month)) as base:
            base.executemany(
                "DELETE FROM chunks WHERE node = ? AND kind = ? AND device = ? AND start = ?",
                [row[:4] for row in rows],
            )
            base.executemany("INSERT INTO chunks VALUES (?,?,?,?,?,?)", rows)

    def _unpacked_of(
        self, name: str, node: str, rows: list[sqlite3.Row]
    ) -> dict[tuple[str, str], list[dict[str, Points]]]:
        """The metrics of each chunk that can be read, by kind and device."""
        blocks: defaultdict[tuple[str, str], list[dict[str, Points]]] = defaultdict(list)
        for row, block in zip(rows, unpacked_all(row["body"] for row in rows), strict=True):
            if isinstance(block, BadChunk):
                self._damage.add_chunk(name, node, row["rowid"], block)
            else:
                blocks[row["kind"], row["device"]].append(block)
        return blocks

    def _drop(self, name: str) -> None:
        with self._lock:
            self._files.drop(name)
            self._damage.forget(self._files.path(name).name)
            self._thin_again.pop(name, None)

    # -- reading

    def _read_chunks(
        self,
        name: str,
        points_of: Found,
        node: str,
        kind: str,
        start: int,
        end: int,
        only: frozenset[str] | None,
        wanted: frozenset[str] | None,
    ) -> None:
        rows = self._files.file(name).execute(
            "SELECT rowid, device, start, end, body FROM chunks "
            "WHERE node = ? AND kind = ? AND start <= ? AND end >= ?",
            (node, kind, end, start),
        )
        chosen = [row for row in rows if only is None or row["device"] in only]
        chosen.sort(key=itemgetter("rowid"))  # sorted here, because SQLite would copy each body to sort
        blocks = unpacked_all((row["body"] for row in chosen), wanted)
        for row, metrics in zip(chosen, blocks, strict=True):
            if isinstance(metrics, BadChunk):
                self._damage.add_chunk(name, node, row["rowid"], metrics)
                continue
            for metric, points in metrics.items():
                points_of[kind, row["device"], metric].append(points)


def _cut(points: Points, start: int, end: int) -> Points:
    inside = (points.times > start) & (points.times <= end)
    return points if inside.all() else Points(points.times[inside], points.values[inside], points.period)


def _start_ms(name: str) -> int:
    return (times_of(name) or (0, 0))[0]


def _end_ms(name: str) -> int:
    return (times_of(name) or (0, LAST_MS))[1]
