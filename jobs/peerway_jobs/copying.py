"""Copies a whole database of jobs into an empty one: all or nothing, and all as of one moment.

One of the two is a file of SQLite, whose columns may hold anything. PostgreSQL's hold what they were declared
for, so values of another type are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from peerway_jobs.damage import TABLES
from peerway_jobs.store.database import Database
from peerway_jobs.store.dialect import FLAGS
from peerway_jobs.store.sqlite import SqliteDatabase

Rows = Iterator[Sequence[Any]]
_TYPES: dict[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (float, int)}


@dataclass
class Copied:
    """What was copied: the rows of each table, and the values that were left out, by table and column."""

    rows: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)


def is_empty(database: Database) -> bool:
    """Whether no table has a row."""
    return all(database.reader.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None for name in TABLES)


def copy(source: Database, target: Database, file: SqliteDatabase) -> Copied:
    """Copy all tables. `file` is that of the two which is SQLite, and says which types the columns have.

    Raises ValueError if the target is not empty, or if they are not of the same version.
    """
    have, wanted = source.version(), target.version()
    if have != wanted:
        raise ValueError(f"{source.name} is of version {have}, {target.name} of version {wanted}")
    if not is_empty(target):
        raise ValueError(f"{target.name} already has jobs or people: name an empty database")
    copied = Copied()
    with source.snapshot() as rows_of, target.filling() as fill:
        for table in TABLES:
            types = file.types(table)
            order = " ORDER BY rowid" if table == "audit" else ""
            rows = rows_of(f"SELECT {', '.join(types)} FROM {table}{order}")
            counted = _counted if target is file else partial(_checked, types)
            fill(table, tuple(types), counted(table, rows, copied))
    return copied


def _counted(table: str, rows: Rows, copied: Copied) -> Rows:
    copied.rows[table] = 0
    for row in rows:
        copied.rows[table] += 1
        yield row


def _checked(types: dict[str, tuple[str, bool]], table: str, rows: Rows, copied: Copied) -> Rows:
    """The rows with values that PostgreSQL's columns can hold."""
    checks = [_check(table, name, *of, copied) for name, of in types.items()]
    for row in _counted(table, rows, copied):
        yield [check(value) for check, value in zip(checks, row, strict=True)]


def _check(table: str, name: str, kind: str, needed: bool, copied: Copied) -> Callable[[Any], Any]:
    """The check of one column's values."""
    absent = TABLES[table][name].absent if name in TABLES[table] else None
    if isinstance(absent, list) or (absent is None and needed):
        absent = "[]" if isinstance(absent, list) else ""
    flag, wanted = name in FLAGS, _TYPES[kind]

    def check(value: Any) -> Any:
        if value is None and not needed:
            return None
        if not isinstance(value, wanted):
            copied.left_out[f"{table}.{name}"] = copied.left_out.get(f"{table}.{name}", 0) + 1
            value = absent
        if flag:
            return bool(value)
        return value.replace("\0", "\ufffd") if isinstance(value, str) else value

    return check
