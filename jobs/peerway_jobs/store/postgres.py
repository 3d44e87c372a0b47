"""The database of jobs in PostgreSQL, which several servers may share.

Only one server writes at a time, as with SQLite: each transaction that writes holds a lock of the database.
One server at a time leads: it judges, asks Slurm and sends mails. Both locks are PostgreSQL's own, which
releases them when their connection ends, however the server ended.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.dialect import FUNCTIONS, translated, translated_schema
from peerway_jobs.store.postgres_connections import (
    WRITING,
    PostgresFailed,
    Readers,
    Writer,
    lock,
    row_factory,
    version_of,
)
from peerway_jobs.store.schema import statements_of, too_new

if TYPE_CHECKING:
    import psycopg

SCHEMES = ("postgresql://", "postgres://")
_LEADING, _SERVING = 0x70770002, 0x70770003  # beside WRITING
_CONNECT_S = 10
_AT_ONCE = 2000  # rows that are copied at once
# A dead server's host answers nothing: PostgreSQL notices after a minute, and releases the locks. Compiling a
# statement (jit) takes longer than any of ours gains by it.
_OPTIONS = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3 -c jit=off"
_SPACE = "53100"  # SQLSTATE of a full disk
# Classes of SQLSTATE about the server's state rather than about the values of one statement.
_OF_SERVER = ("08", "53", "55", "57", "58", "XX")


def is_postgres(place: object) -> bool:
    """Whether this is the address of a database in PostgreSQL."""
    return isinstance(place, str) and place.startswith(SCHEMES)


class PostgresDatabase:
    """The database at an address such as postgresql://user@host/peerway."""

    is_shared = True

    def __init__(self, url: str) -> None:
        """Nothing is opened yet. Raises ValueError if the package psycopg is missing or the address is
        wrong.
        """
        try:
            import psycopg
        except ImportError as error:
            raise ValueError(
                f"PostgreSQL needs the Python package psycopg ({error}): install peerway-jobs[postgresql]"
            ) from None
        try:
            self._parameters = psycopg.conninfo.conninfo_to_dict(url)
        except psycopg.ProgrammingError as error:
            raise ValueError(f"this is no address of a database in PostgreSQL: {error}") from None
        host, port = self._parameters.get("host", "localhost"), self._parameters.get("port")
        where = f"{host}:{port}" if port else str(host)
        self.name = f"postgresql://{where}/{self._parameters.get('dbname', '')}"  # without a password
        self.writer: Connection = Writer(self)
        self.reader: Connection = Readers(self)
        self.trouble = ""  # why it could not be written when that was last tried
        self.versions: list[str] = []  # of the schema, once brought up
        self._leasing = threading.Lock()
        self._lease: psycopg.Connection[Any] | None = None  # holds the lock of the server that leads
        self._leads = False
        self._open: set[psycopg.Connection[Any]] = set()

    def connect(self) -> psycopg.Connection[Any]:
        """A new connection. Raises PostgresFailed."""
        import psycopg
        from psycopg.adapt import Loader

        class NumericLoader(Loader):
            """Sums of whole numbers are whole, and other sums are floats, as in SQLite."""

            def load(self, data: Any) -> int | float:
                text = bytes(data)
                return int(text) if text.lstrip(b"-").isdigit() else float(text)

        given: dict[str, Any] = {
            "connect_timeout": _CONNECT_S,
            "application_name": "peerway-jobs",
            **self._parameters,
        }
        given["options"] = f"{_OPTIONS} {self._parameters.get('options') or ''}"
        with self.explaining():
            connection = psycopg.connect(**given, autocommit=True, row_factory=row_factory)
            connection.adapters.register_loader("numeric", NumericLoader)
            # What is acknowledged must be on the disk.
            connection.execute(
                "SELECT set_config('synchronous_commit', 'on', FALSE) "
                "WHERE current_setting('synchronous_commit') = 'off'"
            )
        self._open.add(connection)
        return connection

    def discard(self, connection: psycopg.Connection[Any]) -> None:
        """Close a connection, which may be broken."""
        self._open.discard(connection)
        with suppress(Exception):
            connection.close()

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Raise psycopg's errors in the block as those of sqlite3, which the store's callers handle."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise self._explained(error) from None

    def _explained(self, error: psycopg.Error) -> sqlite3.Error:
        import psycopg

        why = " ".join(str(error).split()) or type(error).__name__
        if error.sqlstate == _SPACE:
            brief = "the database's disk is full"
            return PostgresFailed(self.name, f"{why}; make room on the disk of PostgreSQL", brief)
        if error.sqlstate and not error.sqlstate.startswith(_OF_SERVER):
            return sqlite3.DataError(f"{self.name}: {why}")
        if error.sqlstate is None and not isinstance(error, psycopg.OperationalError):
            return sqlite3.DataError(f"{self.name}: {why}")
        advice = "it is tried again; PostgreSQL's log says more"
        return PostgresFailed(self.name, f"{why}; {advice}", "the database does not answer")

    def bring_up(self, versions: list[str]) -> None:
        """Migrate to the newest version; each step is all or nothing. Raises ValueError for a database of a
        newer version.
        """
        connection = self.connect()
        try:
            while True:
                with self.explaining(), connection.transaction():
                    lock(connection, WRITING)
                    have = version_of(connection)
                    if have > len(versions):
                        raise ValueError(too_new(have, len(versions)))
                    if have == len(versions):
                        break
                    if have == 0:
                        connection.execute("CREATE TABLE peerway_version (version BIGINT NOT NULL)")
                        connection.execute("INSERT INTO peerway_version VALUES (0)")
                        for function in FUNCTIONS:
                            connection.execute(function)
                    for statement in statements_of(versions[have]):
                        connection.execute(translated_schema(statement), ())
                    if "CREATE TABLE audit" in versions[have]:
                        connection.execute(
                            "ALTER TABLE audit ADD COLUMN rowid BIGINT GENERATED ALWAYS AS IDENTITY"
                        )
                    connection.execute("UPDATE peerway_version SET version = %s", (have + 1,))
        finally:
            self.discard(connection)
        self.versions = versions

    def version(self) -> int:
        """The version of its schema; 0 if it has none yet."""
        connection = self.connect()
        try:
            with self.explaining():
                return version_of(connection)
        finally:
            self.discard(connection)

    def leads(self) -> bool:
        """Whether this server is the one that judges. The first that asks is, until its connection ends."""
        with self._leasing, self.explaining():
            if self._lease is None or self._lease.closed:
                self._lease, self._leads = self.connect(), False
                lock(self._lease, _SERVING, shared=True)
            try:
                if self._leads:
                    self._lease.execute("SELECT 1")  # raises if the connection, and so the lock, is lost
                else:
                    self._leads = lock(self._lease, _LEADING, wait=False)
            except BaseException:
                self.discard(self._lease)
                self._lease = None
                raise
            return self._leads

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep servers out while the block runs. Raises ValueError if one runs."""
        connection = self.connect()
        try:
            with self.explaining():
                if not lock(connection, _SERVING, wait=False):
                    raise ValueError(f"a server uses {self.name}: end all of its servers first")
            yield
        finally:
            self.discard(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Callable[[str], Iterator[Sequence[Any]]]]:
        """In the block, statements read the database as it was when the block began."""
        connection = self.connect()
        try:
            with self.explaining(), connection.transaction():
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

                def rows_of(sql: str) -> Iterator[Sequence[Any]]:
                    with connection.cursor(name="copied") as cursor:  # a part at a time
                        cursor.itersize = _AT_ONCE
                        cursor.execute(translated(sql), ())
                        yield from cursor

                yield rows_of
        finally:
            self.discard(connection)

    @contextmanager
    def filling(self) -> Iterator[Callable[[str, Sequence[str], Iterable[Sequence[Any]]], None]]:
        """In the block, add rows to tables. All of it or nothing is kept."""
        connection = self.connect()
        try:
            with self.explaining(), connection.transaction():
                lock(connection, WRITING)

                def fill(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
                    names = translated(", ".join(columns))
                    with connection.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                        for row in rows:
                            copy.write_row(row)

                yield fill
        finally:
            self.discard(connection)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            self.discard(connection)
