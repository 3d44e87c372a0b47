"""Connections to PostgreSQL that accept the store's SQL: one that writes, some that read."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from peerway_jobs.store.connection import Cursor
from peerway_jobs.store.dialect import translated
from peerway_jobs.store.schema import too_new

if TYPE_CHECKING:
    import psycopg

# Number of the advisory lock of the server that writes; a lock's second number is that of the schema.
WRITING = 0x70770001
_READERS = 8  # connections of a server for reading; further readers wait


class Source(Protocol):
    """The database that opens and closes these connections (postgres.py)."""

    name: str
    trouble: str
    versions: list[str]

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection."""

    def discard(self, connection: psycopg.Connection[Any]) -> None:
        """Close a connection."""

    def explaining(self) -> AbstractContextManager[None]:
        """Raise psycopg's errors in the block as those of sqlite3."""


class PostgresFailed(sqlite3.OperationalError):
    """PostgreSQL does not answer, or cannot do its work now. `brief` names no host, for people who are not
    administrators.
    """

    def __init__(self, name: str, why: str, brief: str) -> None:
        super().__init__(f"{name}: {why}")
        self.brief = brief


def lock(
    connection: psycopg.Connection[Any], number: int, *, wait: bool = True, shared: bool = False
) -> bool:
    """Take a lock: that of writing until the transaction ends, another until the connection ends."""
    kind = f"{'_xact' if number == WRITING else ''}_lock{'_shared' if shared else ''}"
    function = f"pg_{'' if wait else 'try_'}advisory{kind}"
    row = connection.execute(f"SELECT {function}(%s, hashtext(current_schema()))", (number,)).fetchone()
    return wait or bool(row and row[0])


def version_of(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute("SELECT to_regclass('peerway_version') IS NOT NULL").fetchone()
    if not row or not row[0]:
        return 0
    return _version_brought_up(connection)


def _version_brought_up(connection: psycopg.Connection[Any]) -> int:
    """The version of a database that has one: one statement less in each transaction."""
    row = connection.execute("SELECT version FROM peerway_version").fetchone()
    return int(row[0]) if row else 0


class Writer:
    """The connection that writes. It is opened when it is needed, and again after it broke."""

    def __init__(self, database: Source) -> None:
        self._database = database
        self._connection: psycopg.Connection[Any] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction has begun and its connection lives."""
        connection = self._connection
        return connection is not None and not connection.closed and connection.info.transaction_status != 0

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run one statement; "BEGIN IMMEDIATE" also waits until no other server writes."""
        if sql == "BEGIN IMMEDIATE":
            return self._begin()
        cursor: Cursor = self._run(lambda c: c.execute(translated(sql), _clean(parameters)))
        if sql == "COMMIT":
            self._database.trouble = ""
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
        """Run one statement for each set of parameters."""
        sets = [_clean(each) for each in parameters]
        if sets:
            self._run(lambda c: c.cursor().executemany(translated(sql), sets))

    def _begin(self) -> Cursor:
        for again in (self._connection is not None, False):
            try:
                cursor: Cursor = self._run(lambda c: c.execute("BEGIN"))
                break
            except sqlite3.OperationalError:
                if not again:  # else PostgreSQL has restarted since this connection was last used
                    raise
        self._run(lambda c: lock(c, WRITING))
        known = len(self._database.versions)
        if known and (have := self._run(_version_brought_up)) != known:
            self._run(lambda c: c.execute("ROLLBACK"))
            why = self._database.trouble = too_new(have, known)
            raise PostgresFailed(self._database.name, why, why)
        return cursor

    def _run(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = self._database.connect()
            with self._database.explaining():
                return work(self._connection)
        except sqlite3.OperationalError as error:
            self._database.trouble = str(error)
            raise
        finally:
            if self._connection is not None and self._connection.closed:
                self._database.discard(self._connection)
                self._connection = None


class Readers:
    """Connections that read. A statement's rows are all here when it returns, so its connection is free."""

    in_transaction = False

    def __init__(self, database: Source) -> None:
        self._database = database
        self._idle: list[psycopg.Connection[Any]] = []
        self._most = threading.BoundedSemaphore(_READERS)

    def execute(self, sql: str, parameters: Any = (), /) -> Cursor:
        """Run one statement."""
        statement, values = translated(sql), _clean(parameters)
        with self._most, self._database.explaining():
            while True:
                try:
                    connection, kept = self._idle.pop(), True
                except IndexError:
                    connection, kept = self._database.connect(), False
                try:
                    return connection.execute(statement, values)
                except Exception:
                    # If PostgreSQL has restarted since, the next connection may be a new one.
                    if not (kept and connection.closed):
                        raise
                finally:
                    if connection.closed:
                        self._database.discard(connection)
                    else:
                        self._idle.append(connection)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Any:
        """Refuse: these connections only read."""
        raise sqlite3.ProgrammingError("a connection for reading was told to write")


def _clean(parameters: Any) -> Any:
    """Parameters without NUL characters, which PostgreSQL cannot store in a text."""
    if isinstance(parameters, dict):
        return {name: _without_nul(value) for name, value in parameters.items()}
    return tuple(_without_nul(value) for value in parameters)


def _without_nul(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


class PostgresRow(tuple[Any, ...]):
    """A row, as sqlite3.Row."""

    __slots__ = ()
    places: dict[str, int] = {}  # noqa: RUF012 -- set in the classes that _row_class makes

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.places[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        """The names of the columns."""
        return list(self.places)


@lru_cache(512)
def _row_class(names: tuple[str, ...]) -> type[PostgresRow]:
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    ordered = {name: places[name] for name in names}
    return type("PostgresRow", (PostgresRow,), {"__slots__": (), "places": ordered})


def row_factory(cursor: Any) -> Callable[[Sequence[Any]], Any]:
    description = cursor.description
    return _row_class(tuple(column.name for column in description)) if description else tuple
