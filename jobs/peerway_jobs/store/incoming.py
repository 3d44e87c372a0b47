"""Batches as they came, until their stretch of half an hour is over and is sealed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from peerway_jobs.store.blocks import filed_of
from peerway_jobs.store.sample_damage import DamageLog, SampleDamage
from peerway_jobs.store.sample_files import INCOMING
from peerway_jobs.store.samples import Filed, time_ms
from peerway_jobs.store.schema import WAITING, advising, bring_up, opened
from peerway_jobs.store.stored import LAST_MS
from peerway_jobs.store.transaction import transaction
from peerway_jobs.untrusted import BadBatch

STRETCH_MS = 1_800_000
_LAST_STRETCH = LAST_MS // STRETCH_MS
_COLUMNS = "rowid, node, stretch, shift, period, payload"
_VERSIONS = [
    """
    CREATE TABLE batches (
      node TEXT NOT NULL, stream TEXT NOT NULL, seq INTEGER NOT NULL, stretch INTEGER NOT NULL,
      shift INTEGER NOT NULL, period INTEGER NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (node, stream, seq)
    );
    CREATE INDEX batches_of_stretch ON batches (node, stretch);
    CREATE INDEX batches_by_stretch ON batches (stretch, node);
    """
]


class Incoming:
    """The file `incoming.db` of a folder. It has no lock of its own."""

    def __init__(self, folder: Path, damage: DamageLog) -> None:
        """Open it, or make it. `damage` learns of batches that cannot be read."""
        self._damage = damage
        path = folder / f"{INCOMING}.db"
        with advising(path, WAITING):
            self._base = opened(path)
            bring_up(self._base, _VERSIONS)

    def put(self, batches: Sequence[Filed]) -> None:
        """One transaction for all of them."""
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
        with transaction(self._base) as base:
            base.executemany("INSERT OR IGNORE INTO batches VALUES (?,?,?,?,?,?,?)", rows)

    def within(self, node: str, start_ms: int, end_ms: int) -> list[sqlite3.Row]:
        """The batches of a node whose stretches have a part of that time."""
        stretches = start_ms // STRETCH_MS, end_ms // STRETCH_MS
        query = f"SELECT {_COLUMNS} FROM batches WHERE node = ? AND stretch BETWEEN ? AND ?"
        return self._base.execute(query, (node, *stretches)).fetchall()

    def complete(self, time_ms: int) -> list[tuple[int, int]]:
        """The stretches that are over at this time, in their order: a row of each node, and the stretch."""
        self._mend_stretches()
        query = "SELECT min(rowid), stretch FROM batches WHERE stretch < ? GROUP BY stretch, node"
        return [(row, stretch) for row, stretch in self._base.execute(query, (time_ms // STRETCH_MS,))]

    def of_row(self, row: int, stretch: int) -> list[sqlite3.Row]:
        """The batches of a stretch that have the node of this row, whatever its name is."""
        query = (
            f"SELECT {_COLUMNS} FROM batches WHERE stretch = ? "
            "AND node = (SELECT node FROM batches WHERE rowid = ?)"
        )
        return self._base.execute(query, (stretch, row)).fetchall()

    def delete(self, rows: Iterable[sqlite3.Row]) -> None:
        """They are sealed."""
        with transaction(self._base) as base:
            base.executemany("DELETE FROM batches WHERE rowid = ?", [(row["rowid"],) for row in rows])

    def lost(self, row: sqlite3.Row, error: BadBatch) -> None:
        """Remember a batch that is left out, as it cannot be read."""
        stretch = row["stretch"]
        is_known = isinstance(stretch, int) and 0 <= stretch <= _LAST_STRETCH
        start, end = (stretch * STRETCH_MS, (stretch + 1) * STRETCH_MS) if is_known else (0, LAST_MS)
        why = f"a batch that was kept cannot be read: {error}"
        self._damage.add(SampleDamage(f"{INCOMING}.db", why, row["rowid"], str(row["node"]), start, end))

    def close(self) -> None:
        """Close it."""
        self._base.close()

    def _mend_stretches(self) -> None:
        """A batch is found by its stretch: where that cannot be, it is reckoned anew. A text counts as more
        than any number.
        """
        query = f"SELECT {_COLUMNS} FROM batches WHERE stretch < 0 OR stretch > ?"
        for row in self._base.execute(query, (_LAST_STRETCH,)).fetchall():
            try:
                stretch = max(0, _stretch(time_ms(filed_of(row))))
            except BadBatch as error:
                self.lost(row, error)
                self.delete([row])
            else:
                self._base.execute("UPDATE batches SET stretch = ? WHERE rowid = ?", (stretch, row["rowid"]))


def _stretch(time: int) -> int:
    """The number of the stretch with a sample, which stands for the time before it: the one at midnight is
    the last of a day, as it is the last of a thinned step.
    """
    return (time - 1) // STRETCH_MS
