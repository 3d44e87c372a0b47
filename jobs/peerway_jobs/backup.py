"""Backups of a server's folder, and what makes a folder or a database of one: restore, migrate and upgrade.

Each of them either happens as a whole or leaves what a server uses as it was.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from peerway_jobs.copying import Copied, copy
from peerway_jobs.store.database import ADDRESS, UNFINISHED, Database, database_at, place_in, set_address
from peerway_jobs.store.schema import VERSIONS, opened, too_new
from peerway_jobs.store.sqlite import SqliteDatabase

_JOBS = "jobs.db"
_MIGRATED = "jobs-migrated.db"


def backup(folder: Path, to: Path) -> list[str]:
    """Write everything of a server's folder to a new folder; the server may run. Returns the names of the
    files. Raises ValueError, OSError, sqlite3.Error.
    """
    if to.exists():
        raise ValueError(f"{to} exists already: name a new folder for the backup")
    draft = to.with_name(f".{to.name}.unfinished")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / "samples").mkdir(mode=0o700, parents=True)
    draft.chmod(0o700)
    try:
        # Jobs come first: the samples of a batch are stored before its intervals.
        _save_jobs(place_in(folder), draft / _JOBS)
        for file in _sample_files(folder / "samples"):
            _save_file(file, draft / "samples" / file.name)
        if (folder / "rules.toml").exists():
            shutil.copy2(folder / "rules.toml", draft / "rules.toml")
        names = sorted(str(file.relative_to(draft)) for file in draft.rglob("*") if file.is_file())
        draft.rename(to)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return names


def _sample_files(folder: Path) -> list[Path]:
    """The files of samples, in the order in which samples move from one to the next: incoming, days, months.
    What moves meanwhile is then in two files rather than in none.
    """
    places = {"day": 1, "month": 2}
    return sorted(
        folder.glob("*.db"), key=lambda file: (places.get(file.name.partition("-")[0], 0), file.name)
    )


def _save_jobs(place: Path | str, to: Path) -> None:
    if isinstance(place, Path):
        _save_file(place, to)
        return
    with closing(database_at(place)) as source, _new_file(to, VERSIONS[: source.version()]) as file:
        copy(source, file, file)


def _save_file(file: Path, to: Path) -> None:
    """Save a file of SQLite as it is at one moment; one that the server deleted meanwhile is left out."""
    if not file.exists():
        return
    with closing(opened(file, readonly=True)) as source, closing(sqlite3.connect(to)) as target:
        source.backup(target)
    to.chmod(0o600)


@contextmanager
def _new_file(path: Path, versions: list[str] = VERSIONS) -> Iterator[SqliteDatabase]:
    with closing(SqliteDatabase(path)) as file:
        file.bring_up(versions)
        yield file


def restore(folder: Path, saved: Path, database: str | None = None) -> None:
    """Fill a folder without jobs from a backup, or with `database` an empty database of PostgreSQL. Raises
    ValueError, OSError, sqlite3.Error.
    """
    if not (saved / _JOBS).is_file():
        raise ValueError(f"{saved} is no backup: it has no {_JOBS}")
    mark = folder / UNFINISHED
    if not mark.exists() and any((folder / name).exists() for name in (_JOBS, ADDRESS)):
        raise ValueError(f"{folder} already has jobs: name an empty folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / "samples").mkdir(mode=0o700, exist_ok=True)
    mark.write_text(f"{saved}\n")
    for file in _sample_files(saved / "samples"):
        _save_file(file, folder / "samples" / file.name)
    if (saved / "rules.toml").exists():
        shutil.copy2(saved / "rules.toml", folder / "rules.toml")
    draft = folder / f".{_JOBS}.unfinished"
    draft.unlink(missing_ok=True)
    _save_file(saved / _JOBS, draft)
    if database:
        with _new_file(draft) as source, closing(database_at(database)) as target:
            _fill(source, target)
        set_address(folder, database)
        draft.unlink()
    else:
        draft.rename(folder / _JOBS)
    mark.unlink()


def _fill(source: SqliteDatabase, target: Database) -> Copied:
    with target.alone():
        target.bring_up(VERSIONS)
        return copy(source, target, source)


def migrate(folder: Path, to: str) -> Copied:
    """Move the jobs of a folder to PostgreSQL, or with `to` "sqlite" back to the folder. Raises ValueError,
    OSError, sqlite3.Error.
    """
    place = place_in(folder)
    if to == "sqlite":
        if isinstance(place, Path):
            raise ValueError(f"the jobs of {folder} are in {place} already")
        if (folder / _JOBS).exists():
            raise ValueError(f"{folder / _JOBS} exists already: move it elsewhere")
        draft = folder / f".{_JOBS}.unfinished"
        draft.unlink(missing_ok=True)
        with closing(database_at(place)) as source, source.alone(), _new_file(draft) as file:
            source.bring_up(VERSIONS)
            copied = copy(source, file, file)
        draft.rename(folder / _JOBS)
        (folder / ADDRESS).unlink()
        return copied
    if not isinstance(place, Path):
        raise ValueError(f"the jobs of {folder} are in PostgreSQL already; its file {ADDRESS} says where")
    with _new_file(place) as source, closing(database_at(to)) as target:
        copied = _fill(source, target)
    set_address(folder, to)
    place.rename(folder / _MIGRATED)
    return copied


def upgrade(folder: Path, to: Path) -> tuple[int, int]:
    """Make a backup of the jobs, then migrate them to the newest version. Returns the versions before and
    after. Raises ValueError, OSError, sqlite3.Error.
    """
    with closing(database_at(place_in(folder))) as database, database.alone():
        before = database.version()
        if before != len(VERSIONS):
            if before > len(VERSIONS):
                raise ValueError(too_new(before, len(VERSIONS)))
            if isinstance(database, SqliteDatabase):
                _save_file(database.path, to)
            elif before:
                with _new_file(to, VERSIONS[:before]) as file:
                    copy(database, file, file)
            database.bring_up(VERSIONS)
        return before, database.version()
