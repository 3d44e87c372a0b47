"""A transaction that is all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from peerway_jobs.store.connection import Connection


@contextmanager
def transaction(base: Connection) -> Iterator[Connection]:
    """Commit everything in the block when it ends; roll it back if it raises."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield base
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:  # SQLite itself rolls back on some errors, such as a full disk
            base.execute("ROLLBACK")
        raise
