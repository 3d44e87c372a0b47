"""A transaction that is all or nothing, and many rows in few statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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


_AT_ONCE = 200  # rows of a statement


def put_rows(base: Connection, insert: str, rows: Sequence[Sequence[Any]], then: str) -> None:
    """`INSERT INTO t VALUES`, the rows, and what follows, such as ON CONFLICT; no two rows have the same key.
    A statement of many rows costs PostgreSQL and us a fraction of a statement for each.
    """
    for at in range(0, len(rows), _AT_ONCE):
        some = rows[at : at + _AT_ONCE]
        places = f"({','.join('?' * len(some[0]))})"
        values = [value for row in some for value in row]
        base.execute(f"{insert} {','.join([places] * len(some))} {then}", values)
