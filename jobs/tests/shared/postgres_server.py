"""A private PostgreSQL for tests: Debian's programs, on a socket in a folder of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

USER = "peerway"


def why_not() -> str:
    """Why there is no PostgreSQL here; empty if there is."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is missing: install peerway-jobs[postgresql]"
    if _programs() is None:
        return "there is no PostgreSQL; on Debian: apt-get install postgresql"
    return "" if os.geteuid() or _account() else "root has no ordinary user to run PostgreSQL as"


def _programs() -> Path | None:
    return max(
        Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda each: int(each.parent.name)
    )


def _account() -> pwd.struct_passwd | None:
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    return None


class PostgresServer:
    """The server's process and its folder."""

    def __init__(self, folder: Path, *settings: str) -> None:
        self.folder = folder
        self._settings = settings
        self._programs = _programs()
        self._process: subprocess.Popen[bytes] | None = None
        self._names = itertools.count(1)
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0 and (account := _account()):  # PostgreSQL refuses to run as root
            os.chown(folder, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._run("initdb", "-D", str(folder / "data"), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8",
                  "--locale=C", "--no-instructions")  # fmt: skip

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [f"{self._programs}/{program}", *words],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
            **self._as,
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}", *self._settings]
        options = [word for setting in settings for word in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [f"{self._programs}/postgres", "-D", str(self.folder / "data"), *options],
                stdout=log, stderr=log, cwd="/", **self._as,
            )  # fmt: skip
        import psycopg

        while True:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url()):
                return
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def stop(self) -> None:
        """End it at once; clients lose their connections."""
        if self._process:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    @property
    def pid(self) -> int:
        """The number of its first process."""
        assert self._process is not None
        return self._process.pid

    def url(self, schema: str = "") -> str:
        """The address of the database, or of a schema in it."""
        path = f"&options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://{USER}@/postgres?host={self.folder}{path}"

    def new(self) -> str:
        """The address of a new, empty schema: as good as a database, and much quicker to make."""
        name = f"s{next(self._names)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.url(name)

    def execute(self, sql: str, url: str = "") -> list[Any]:
        """The rows of a statement of the tests."""
        import psycopg

        with psycopg.connect(url or self.url(), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def postgres(*settings: str) -> Iterator[PostgresServer]:
    """A server while the block runs. What it commits survives the kill of its clients, but no power cut."""
    folder = Path(tempfile.mkdtemp(prefix="peerway-pg-"))
    server = None
    try:
        server = PostgresServer(folder, "fsync=off", "full_page_writes=off", "shared_buffers=16MB", *settings)
        server.start()
        yield server
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
