"""The files of the server's databases: who may read them, and what happens if one lost its content."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner
from jobs_scene import Job, put

from peerway_common.cli import command as peerway
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.promql import PromStore
from peerway_jobs.store.samples import Thinning
from peerway_jobs.store.write_ahead import AheadStore

pytestmark = pytest.mark.sqlite
RESTORE = "stop the server and restore jobs.db from its last backup"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_databases_are_for_their_user_alone(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "there already"
    (folder / "samples").mkdir(parents=True)
    before = os.umask(umask)
    try:
        monitor = Monitor(folder)
        ahead = AheadStore(PromStore("http://127.0.0.1:1"), folder / "samples")
        put(monitor, Job(1, {"step_cpu_user_seconds_total": 1.0}))
        monitor.samples.tidy(int(monitor.clock() * 1000), Thinning())
    finally:
        os.umask(before)
    try:
        assert monitor.jobs.run("1") is not None
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*.db*")}
    finally:
        monitor.close()
        ahead.close()
    assert {"jobs.db", "jobs.db-wal", "jobs.db-shm", "incoming.db", "ahead.db"} <= modes.keys()
    assert [name for name in modes if name.startswith(("day-", "month-"))]
    assert {oct(mode) for mode in modes.values()} == {"0o600"}, modes


def test_a_database_where_a_link_points_is_for_its_user_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "jobs.db").symlink_to(tmp_path / "elsewhere" / "jobs.db")
    Monitor(tmp_path / "data").close()
    assert stat.S_IMODE((tmp_path / "elsewhere" / "jobs.db").stat().st_mode) == 0o600


def test_the_mode_that_somebody_gave_to_a_database_stays(tmp_path: Path) -> None:
    Monitor(tmp_path).close()
    (tmp_path / "jobs.db").chmod(0o640)
    Monitor(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "jobs.db").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["100%25", "what?", "a#b"])
def test_a_folder_may_have_a_name_that_means_something_in_an_address(tmp_path: Path, name: str) -> None:
    Monitor(tmp_path / name).close()
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "jobs.db").stat().st_size > 0


def refused(*words: object) -> str:
    result = CliRunner().invoke(peerway, ["jobs", *map(str, words)])
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    return result.output


@pytest.mark.parametrize("content", [b"", b"something else"], ids=["empty", "broken header"])
def test_a_damaged_database_is_not_taken_for_a_new_one(tmp_path: Path, content: bytes) -> None:
    Monitor(tmp_path).close()
    (tmp_path / "jobs.db").write_bytes(content)
    found = "jobs.db is empty (0 bytes), but the folder has samples" if not content else "not a database"
    verbs = (
        ["list"], ["show", 1], ["token", "--node", "n1"], ["user", "alice", "--no-password"],
        ["serve", "--no-slurm", "--listen", "127.0.0.1:1"],
    )  # fmt: skip
    for words in (*verbs, ["doctor"]):
        told = refused(*words, "--data", tmp_path)
        assert found in told
        assert RESTORE in told
    assert (tmp_path / "jobs.db").read_bytes() == content


def test_a_damaged_file_of_waiting_batches_is_named(tmp_path: Path) -> None:
    Monitor(tmp_path).close()
    (tmp_path / "samples/incoming.db").write_bytes(b"something else" * 99)
    told = refused("serve", "--no-slurm", "--listen", "127.0.0.1:1", "--data", tmp_path)
    assert "incoming.db: file is not a database; stop the server and restore this file" in told


def test_an_empty_file_beside_its_log_is_not_taken_for_a_new_database(tmp_path: Path) -> None:
    """SQLite would delete the log with all its data."""
    (tmp_path / "jobs.db").touch()
    (tmp_path / "jobs.db-wal").write_bytes(b"changes")
    assert "jobs.db is empty (0 bytes), but the folder has jobs.db-wal" in refused("list", "--data", tmp_path)
    assert (tmp_path / "jobs.db-wal").read_bytes() == b"changes"


def test_an_empty_file_alone_becomes_a_database(tmp_path: Path) -> None:
    """A server that was killed just after it created the file leaves this file and its lock."""
    for name in ("jobs.db", "server.lock"):
        (tmp_path / name).touch()
    told = refused("doctor", "--data", tmp_path)
    assert "broken   database   jobs.db is empty (0 bytes)" in told
    Monitor(tmp_path).close()
    assert (tmp_path / "jobs.db").stat().st_size > 0
