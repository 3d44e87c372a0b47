"""The audit log: who logged in, and who changed rules, people and tokens."""

from __future__ import annotations

import getpass
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.stored import TEXT, TIME, choice, readable_rows
from peerway_jobs.store.transaction import transaction

ACTIONS = (
    "logged in", "wrong password", "logged out", "token made", "token revoked", "rules changed",
    "person added", "person changed", "person deleted", "policy acted",
)  # fmt: skip
AUDIT = {"at": TIME, "who": TEXT, "address": TEXT, "action": choice(*ACTIONS, absent=""), "detail": TEXT}
HERE = "command line"  # instead of an address
_MOST = 100_000  # entries; the oldest are deleted first


def note(store: JobStore, now: float, who: str, address: str, action: str, detail: str = "") -> None:
    """Add an entry."""
    assert action in ACTIONS, action
    with store.lock, transaction(store.writer) as base:
        base.execute(
            "INSERT INTO audit VALUES (?,?,?,?,?)",
            (now, shortened(who, 64), address, action, shortened(detail, 300)),
        )
        base.execute(
            "DELETE FROM audit WHERE rowid <= (SELECT max(rowid) FROM audit) - ?",
            (_MOST,),
        )


def is_noted(store: JobStore, since: float, who: str, address: str, action: str, detail: str) -> bool:
    """Whether the log has such an entry from `since` (s since 1970) on."""
    row = store.reader.execute(
        "SELECT 1 FROM audit WHERE at >= ? AND who = ? AND address = ? AND action = ? AND detail = ?",
        (since, shortened(who, 64), address, action, shortened(detail, 300)),
    ).fetchone()
    return row is not None


def operator() -> str:
    """The user of the command line on the server's host."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name
        return "unknown"


def entries(store: JobStore, most: int = 500) -> list[dict[str, Any]]:
    """The newest `most` entries, the newest first."""
    rows = store.reader.execute("SELECT * FROM audit ORDER BY rowid DESC LIMIT ?", (most,))
    return readable_rows(AUDIT, rows)
