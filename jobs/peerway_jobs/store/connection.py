"""What the store needs of a connection to its database: the part of sqlite3's interface that it uses.

SQLite's own connections have it, and those of postgres.py offer it for PostgreSQL. So each statement is
written once, in the SQL that both understand, or that dialect.py translates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol


class Row(Protocol):
    """A row: its columns by name or by place. Iterating yields the values."""

    def __getitem__(self, key: int | str, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def keys(self) -> Iterable[str]:
        """The names of the columns."""


class Cursor(Protocol):
    """The rows of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    @property
    def description(self) -> Any:
        """A tuple for each column of the rows; its first item is the column's name."""

    def fetchone(self) -> Any:
        """The next row, or None."""

    def fetchall(self) -> list[Any]:
        """All further rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection. Each statement is a transaction, unless transaction.py began one."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run one statement. Parameters are ? with a sequence, or :name with a mapping."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
        """Run one statement for each set of parameters."""
