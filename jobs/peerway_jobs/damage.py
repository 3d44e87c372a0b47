"""Finds database rows with impossible values, for administrators, who can restore a backup.

Code that reads such rows copes with them (stored.py), and many are not on any page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from peerway_common.printable import shortened
from peerway_jobs.store import stored
from peerway_jobs.store.acts import ACTS
from peerway_jobs.store.alarms import ALARMS
from peerway_jobs.store.audit import AUDIT
from peerway_jobs.store.cluster import CLUSTER
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.months import MONTHS
from peerway_jobs.store.queue import QUEUE
from peerway_jobs.store.queue_history import QUEUE_HISTORY
from peerway_jobs.store.runs import JOBS
from peerway_jobs.store.stored import Kind, is_damaged, readable
from peerway_jobs.store.utilization import UTILIZATION
from peerway_jobs.verdicts import VERDICTS

TABLES: Mapping[str, Mapping[str, Kind]] = {
    "jobs": {**JOBS, "provisional": stored.FLAG},
    "intervals": stored.INTERVALS,
    "seen": stored.SEEN,
    "verdicts": {"job": JOBS["job"], "restart": JOBS["restart"], "rules": stored.TEXT, **VERDICTS},
    "rulesets": stored.RULESETS,
    "received": stored.RECEIVED,
    "nodes": stored.NODES,
    "cluster": CLUSTER,
    "people": stored.PEOPLE,
    "sessions": stored.SESSIONS,
    "tokens": stored.TOKENS,
    "notices": stored.NOTICES,
    "deliveries": stored.DELIVERIES,
    "acts": ACTS,
    "clocks": stored.CLOCKS,
    "alarms": ALARMS,
    "audit": AUDIT,
    "arrivals": stored.ARRIVALS,
    "shared": stored.SHARED,
    "months": MONTHS,
    "queue": QUEUE,
    "queue_history": QUEUE_HISTORY,
    "utilization": UTILIZATION,
}
# The columns that name a row; of people's secrets none.
KEYS: Mapping[str, tuple[str, ...]] = {
    "jobs": ("job", "restart"), "intervals": ("node", "id"), "verdicts": ("job", "restart"),
    "received": ("node", "stream"), "nodes": ("node",), "cluster": ("one",), "people": ("name",),
    "clocks": ("node",), "alarms": ("node", "kind", "job"),
    "arrivals": ("node",), "shared": ("name",), "queue": ("one",), "utilization": ("step", "at", "node_type"),
    "queue_history": ("step", "at"),
    "months": ("month", "user", "account", "project", "partition", "tag"),
}  # fmt: skip
MOST_SHOWN = 20  # per table


@dataclass(frozen=True)
class Damage:
    """A row with columns that cannot be read."""

    table: str
    row: str  # its key as text
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table} ({self.row}): {', '.join(self.columns)}"


def damaged_rows(base: Connection) -> list[Damage]:
    """The first MOST_SHOWN damaged rows of each table. This reads the whole database.

    Values inside JSON are not checked in detail here, but by the code that reads them.
    """
    damage: list[Damage] = []
    for table, kinds in TABLES.items():
        rows = base.execute(f"SELECT * FROM {table} WHERE {is_damaged(kinds)} LIMIT ?", (MOST_SHOWN,))
        for row in rows:
            _, unreadable = readable(kinds, row)
            key = ", ".join(f"{name} {shortened(repr(row[name]), 40)}" for name in KEYS.get(table, ()))
            damage.append(Damage(table, key, tuple(unreadable)))
    return damage
