"""Chooses the database of jobs: a file of SQLite in the server's folder, or PostgreSQL.

A folder whose jobs are in PostgreSQL has the file `database` with its address, which all commands read.
"""

from __future__ import annotations

from pathlib import Path

from peerway_common.atomic_file import draft
from peerway_jobs.store.postgres import PostgresDatabase, is_postgres
from peerway_jobs.store.sqlite import SqliteDatabase

Database = SqliteDatabase | PostgresDatabase

ADDRESS = "database"  # name of the file
UNFINISHED = "restore.unfinished"  # a file in a folder that a restore has begun to fill


def database_at(place: Path | str) -> Database:
    """The database in a file, or at an address of PostgreSQL; its schema may still be an old one."""
    if is_postgres(place):
        return PostgresDatabase(str(place))
    return SqliteDatabase(Path(place))


def place_in(folder: Path) -> Path | str:
    """Where the jobs of a server's folder are: a path or an address."""
    try:
        return (folder / ADDRESS).read_text().strip()
    except FileNotFoundError:
        return folder / "jobs.db"


def set_address(folder: Path, url: str) -> None:
    """Remember that the jobs of a folder are in PostgreSQL. Only this user can read the file, because an
    address may contain a password.
    """
    with draft(folder / ADDRESS) as beside:
        beside.touch(mode=0o600)
        beside.write_text(f"{url}\n")
