"""Which messages webhooks were sent, and up to which time their events were covered."""

from __future__ import annotations

from collections.abc import Mapping

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.stored import DELIVERIES, is_damaged

SENT = "sent"
_KEPT_S = 90 * 86_400
_GOOD = f"NOT {is_damaged(DELIVERIES)}"


def covered(base: Connection, hook: str, event: str) -> float | None:
    """The time up to which a webhook knows of an event (s since 1970); None before its first message."""
    upto: float | None = base.execute(
        f"SELECT max(upto) FROM deliveries WHERE hook = ? AND event = ? AND outcome = '{SENT}' AND {_GOOD}",
        (hook, event),
    ).fetchone()[0]
    return upto


def record(store: JobStore, hook: str, event: str, now: float, upto: float, outcome: str) -> None:
    """Record that a message was sent, or why it was refused. The last of each webhook stays for ever."""
    store.write("INSERT INTO deliveries VALUES (?,?,?,?,?)", (hook, event, now, upto, outcome))
    store.write(
        "DELETE FROM deliveries WHERE hook = ? AND event = ? AND sent < ? AND upto < ?",
        (hook, event, now - _KEPT_S, upto),
    )


def outcomes(base: Connection, since: float) -> Mapping[tuple[str, str], int]:
    """The number of messages since a time, by channel (`mail`, `webhook`) and outcome (`sent`, `refused`)."""
    counts: dict[tuple[str, str], int] = {}
    for channel, table, refused in (
        ("mail", "notices", "body LIKE 'refused:%'"),
        ("webhook", "deliveries", f"outcome != '{SENT}'"),
    ):
        rows = base.execute(
            f"SELECT {refused} AS refused, count(*) AS messages FROM {table} WHERE sent > ? GROUP BY refused",
            (since,),
        )
        by_outcome = {bool(row["refused"]): row["messages"] for row in rows}
        counts[channel, "sent"] = by_outcome.get(False, 0)
        counts[channel, "refused"] = by_outcome.get(True, 0)
    return counts
