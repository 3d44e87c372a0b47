"""One connection that writes, and a transaction that is whole or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def transaction(base: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Everything within the block is kept when it ends, nothing of it when it raises."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield base
        base.execute("COMMIT")
    except BaseException:
        if base.in_transaction:  # of some errors, such as a full disk, SQLite has rolled back itself
            base.execute("ROLLBACK")
        raise
