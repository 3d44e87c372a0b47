"""The disk of the server and of the agent really becomes full.

Nothing acknowledged is lost, both say what is wrong, and both continue when there is space again. A small
tmpfs is filled with ballast until the kernel refuses one more byte.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from ports import free_port

from peerway_common.cli import command as peerway
from peerway_jobs.agent.spool import Spool
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People

LIMIT_S = 150  # a guard against hangs, not an expectation
PASSWORD = "correct horse"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path) -> None:
    """Fill the disk until not one more byte fits."""
    with (disk / "ballast").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    assert os.statvfs(disk).f_bavail == 0


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink()


def wait(description: str, ready: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not ready():
        assert time.monotonic() < until, description
        time.sleep(0.05)


class Both:
    """A server and the agent of one node, as processes."""

    def __init__(self, folder: Path, data: Path, state: Path) -> None:
        self.folder, self.data, self.state = folder, data, state
        self.url = f"http://127.0.0.1:{free_port()}"
        monitor = Monitor(data)
        people = People(monitor.jobs)
        people.put("ann")
        people.set_password("ann", PASSWORD)
        self.token = people.make_token("ann", ["jobs:read"], time.time())
        agent = people.make_token("", ["agent"], time.time(), "n1")
        monitor.close()
        (folder / "token").write_text(agent)
        (folder / "token").chmod(0o600)
        (folder / "agent.toml").write_text(
            f'server = "{self.url}"\ntoken_file = "{folder}/token"\nnode = "n1"\ninterval_s = 0.1\n'
            f'state = "{state}"\npage = ""\n'
        )
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start_server(self) -> None:
        listen = self.url.removeprefix("http://")
        self._start("server", "serve", "--no-slurm", "--data", str(self.data), "--listen", listen)

    def start_agent(self) -> None:
        self._start("agent", "agent", "--settings", str(self.folder / "agent.toml"))

    def _start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "peerway", "jobs", *command], stdout=log, stderr=log
            )

    def kill(self, name: str) -> None:
        """Kill a process with SIGKILL."""
        program = self._running.pop(name)
        program.kill()
        program.wait()

    @contextlib.contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Stop the process while the block runs."""
        self._running[name].send_signal(signal.SIGSTOP)
        yield
        self._running[name].send_signal(signal.SIGCONT)

    def ended(self, name: str) -> bool:
        return self._running[name].poll() is not None

    def close(self) -> None:
        for program in self._running.values():
            program.kill()
            program.wait()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{self.url}/login").status_code == 200
        return False

    def kept(self) -> list[list[int]]:
        """The ranges of batches that the server has acknowledged."""
        base = sqlite3.connect(f"file:{self.data}/jobs.db?mode=ro", uri=True)
        with contextlib.closing(base):
            rows = base.execute("SELECT ranges FROM received").fetchall()
        return json.loads(rows[0][0]) if rows else []

    def sampled(self) -> set[int]:
        """The batches whose samples are stored; their stretch may have been sealed meanwhile."""
        base = sqlite3.connect(f"file:{self.data}/samples/incoming.db?mode=ro", uri=True)
        with contextlib.closing(base):
            return {seq for (seq,) in base.execute("SELECT seq FROM batches")}

    def last(self) -> int:
        return max((last for _, last in self.kept()), default=0)


@pytest.fixture
def both(disk: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Both]:
    of_server = request.param == "server"
    made = Both(
        tmp_path,
        disk / "data" if of_server else tmp_path / "data",
        tmp_path / "state" if of_server else disk / "state",
    )
    made.start_server()
    wait("the server's answer", made.answers)
    made.start_agent()
    wait("the first batches", lambda: made.ended("agent") or made.last() >= 3)
    assert not made.ended("agent"), made.log("agent")
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.parametrize("both", ["server"], indirect=True)
def test_a_server_without_room_loses_nothing_and_says_so(both: Both, disk: Path) -> None:
    fill(disk)
    wait("the agent's words", lambda: "503" in both.log("agent"))
    free = rf"of its file system, {disk}, \S+ \S+ of \S+ \S+ are free; make room there"
    assert re.search(rf"the server answers 503: .*{disk}/data/\S+\.db: .*; {free}", both.log("agent"))
    assert re.search(rf"filing failed: {disk}/data/\S+\.db: .*; {free}", both.log("server"))
    told = subprocess.run(
        [sys.executable, "-m", "peerway", "jobs", "doctor", "--data", both.data],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 1, told.stderr
    assert re.search(rf"broken +disk .*; {free.partition(';')[0]}", told.stdout)
    assert "absent   slurm" in told.stdout  # as the server was started
    written = subprocess.run(
        [sys.executable, "-m", "peerway", "jobs", "user", "eve", "--no-password", "--data", both.data],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert written.returncode == 1
    assert re.search(rf"^peerway: {disk}/data/jobs.db: .*; {free}", written.stderr.replace("\n", " "))
    full_at = both.last()
    before = both.sampled()
    # Stored data can be read, and it is reported that nothing can be written.
    head = {"Authorization": f"Bearer {both.token}"}
    assert httpx.get(f"{both.url}/api/v1/jobs", headers=head).status_code == 200
    entry = httpx.post(
        f"{both.url}/login", data={"name": "ann", "password": PASSWORD}, headers={"Origin": both.url}
    )
    assert entry.status_code == 503
    assert "the server&#39;s disk is full" in entry.text
    assert str(disk) not in entry.text  # the folder is only the administrator's business
    # A server that starts on the full disk does no worse.
    both.kill("server")
    both.start_server()
    wait("the return of the server", lambda: both.ended("server") or both.answers())
    if both.ended("server"):
        assert "Traceback" not in both.log("server")
        assert re.search(rf"peerway: {disk}/data/\S+\.db: .*; {free}", both.log("server"))
    make_room(disk)
    if both.ended("server"):
        both.start_server()
    wait("more batches", lambda: both.last() >= full_at + 10)
    both.kill("agent")
    kept = both.kept()
    assert len(kept) == 1, kept  # none is missing since the first
    assert kept[0][0] == 1
    now = both.sampled()
    assert before <= now
    first = min(now)
    assert now >= set(range(first, kept[0][1] + 1))
    assert len(re.findall("filing failed", both.log("server"))) <= 2, "said once, not with each try"


@pytest.mark.parametrize("both", ["agent"], indirect=True)
def test_an_agent_without_room_says_what_it_lost_and_goes_on(both: Both, disk: Path) -> None:
    fill(disk)
    wait("the agent's words", lambda: "a batch is lost" in both.log("agent"))
    assert "No space left on device" in both.log("agent")
    settings = both.folder / "other.toml"
    settings.write_text(f'state = "{disk}/other"\npage = ""\n')
    with both.stopped("agent"):  # it frees a page when a batch is sent
        fill(disk)
        other = subprocess.run(
            [sys.executable, "-m", "peerway", "jobs", "agent", "--settings", settings],
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
    assert other.returncode == 1
    assert re.search(
        rf"the agent cannot start: {disk}/other\S*: No space left on device; of its file system, {disk}, ",
        other.stderr,
    )
    time.sleep(0.5)
    both.kill("agent")
    both.start_agent()  # on the full disk
    wait("the words of the new agent", lambda: both.log("agent").count("a batch is lost") > 1)
    assert not both.ended("agent")
    make_room(disk)
    lost_at = both.last()
    wait("more batches", lambda: both.last() >= lost_at + 10)
    assert not both.ended("agent")
    both.kill("agent")
    both.kill("server")
    base = sqlite3.connect(f"file:{both.data}/jobs.db?mode=ro", uri=True)
    with contextlib.closing(base):
        ((lost,),) = base.execute("SELECT sum(count) FROM seen WHERE kind = 'dropped'").fetchall()
    assert lost > 0
    kept = both.kept()
    holes = sum(after[0] - before[1] - 1 for before, after in itertools.pairwise(kept))
    assert 0 < holes <= lost + 50  # the killed agent's numbers are not used again


def test_a_disk_that_is_mounted_read_only_is_not_taken_for_somebody_elses(disk: Path) -> None:
    Monitor(disk / "data").close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for verb in ("doctor", "list"):
        told = CliRunner().invoke(peerway, ["jobs", verb, "--data", str(disk / "data")])
        assert told.exit_code == 1
        assert f"{disk}/data is on a file system that is mounted read-only" in told.output


def test_a_spool_outlives_a_disk_on_which_no_file_can_be_made(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=6", "tmpfs", folder],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        spool = Spool(folder / "spool", 8 << 20)
        spool.append(b"first")
        names = [folder / f"more{n}" for n in range(6)]
        with contextlib.suppress(OSError):
            for name in names:
                name.touch()
        lost = 0
        for _ in range(10):
            try:
                spool.append(os.urandom(60_000))
            except OSError:
                lost += 1
        assert 0 < lost < 10
        assert spool.dropped >= lost
        for name in names:
            name.unlink(missing_ok=True)
        first, frames = spool.unsent()
        spool.acknowledge(first + len(frames) - 1)
        following = spool.next_seq
        spool.append(b"again")
        assert spool.unsent()[0] == following
        assert Spool(folder / "spool", 8 << 20).next_seq == following + 1
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
