"""Run MariaDB (on its own socket) and slurmdbd in the head's namespaces, so that sacct works."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from peerway_measure.rehearse.cluster.configuration import DBD, HEAD

PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd", "sacctmgr")
PACKAGES = "slurmdbd mariadb-server-core mariadb-client-core"

# Without grants: the socket lies in a folder that only root may enter. The data need not survive.
DATABASE = """
[mysqld]
datadir={folder}/db
socket={folder}/private/mysql.sock
pid-file={folder}/private/mysqld.pid
log-error={folder}/log/mysqld.log
user=root
skip-networking=1
skip-grant-tables=1
innodb_buffer_pool_size=64M
innodb_log_file_size=16M
innodb_lock_wait_timeout=900
innodb_flush_log_at_trx_commit=0
innodb_flush_method=nosync
skip-log-bin
performance_schema=OFF
"""


def prepare(folder: Path) -> None:
    """Write the configuration, and make an empty database."""
    (folder / "private").mkdir(mode=0o700)
    (folder / "my.cnf").write_text(DATABASE.format(folder=folder))
    dbd = folder / "slurmdbd.conf"
    dbd.write_text(DBD.format(folder=folder, head=HEAD))
    dbd.chmod(0o600)
    program = shutil.which("mariadb-install-db")
    assert program is not None
    done = subprocess.run(
        [program, "--no-defaults", "--user=root", f"--datadir={folder / 'db'}", "--skip-test-db",
         "--auth-root-authentication-method=socket"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RuntimeError(f"mariadb-install-db: {(done.stdout + done.stderr)[-800:]}")


def start(
    folder: Path, daemon: Callable[..., None], run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """Start both daemons and wait until slurmdbd answers."""
    daemon("mariadbd", f"--defaults-file={folder / 'my.cnf'}")
    _wait(folder / "log" / "mysqld.log", (folder / "private" / "mysql.sock").exists)
    daemon("slurmdbd", "-D", environment={"MYSQL_UNIX_PORT": str(folder / "private" / "mysql.sock")})
    log = folder / "log" / "slurmdbd.log"
    _wait(log, lambda: run("timeout", "3", "sacctmgr", "-n", "-P", "show", "cluster").returncode == 0)


def add_users(users: tuple[str, ...], run: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    """Give each user an account of their own."""
    for user in users:
        run("sacctmgr", "-i", "add", "account", f"project-{user}")
        run("sacctmgr", "-i", "add", "user", user, f"account=project-{user}")


def _wait(log: Path, ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not ready():
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"{log.name}: {log.read_text(errors='replace')[-800:] if log.exists() else 'is not there'}"
            )
        time.sleep(0.05)
