"""Alarms about agents, for administrators: claims that Slurm does not confirm, and impossible values.

There is one row for each node, kind and job, with the number of times it happened.
"""

from __future__ import annotations

from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.stored import TEXT, TIME, WHOLE, choice, readable_rows

KINDS = {
    "claim": "an agent says something of a job that Slurm's record contradicts",
    "unconfirmed": "an agent names a job that Slurm does not know",
    "too many": "an agent names more jobs that Slurm has not confirmed than a node may",
    "implausible": "an agent sent times or sizes that cannot be; they were left out",
    "damaged": "a row of the database cannot be read",
}
ALARMS = {
    "node": TEXT, "kind": choice(*KINDS, absent="damaged"), "job": TEXT, "text": TEXT, "first": TIME,
    "last": TIME, "count": WHOLE,
}  # fmt: skip
_MOST_OF_NODE = 200  # rows; further alarms of the node count in a row without a job


def raise_alarm(base: Connection, now: float, node: str, kind: str, text: str, job: str = "") -> None:
    """Add an alarm, or count it again."""
    known = base.execute(
        "SELECT 1 FROM alarms WHERE node = ? AND kind = ? AND job = ?", (node, kind, job)
    ).fetchone()
    if known is None and job:
        rows = base.execute("SELECT count(*) FROM alarms WHERE node = ?", (node,)).fetchone()[0]
        job = "" if rows >= _MOST_OF_NODE else job
    base.execute(
        "INSERT INTO alarms VALUES (?,?,?,?,?,?,1) ON CONFLICT (node, kind, job) DO UPDATE SET "
        "text = excluded.text, last = excluded.last, count = alarms.count + 1",
        (node, kind, job, shortened(text, 300), now, now),
    )


def alarms(base: Connection, most: int = 500) -> list[dict[str, Any]]:
    """The newest `most` alarms, the newest first."""
    rows = base.execute("SELECT * FROM alarms ORDER BY last DESC, node, kind, job LIMIT ?", (most,))
    return readable_rows(ALARMS, rows)
