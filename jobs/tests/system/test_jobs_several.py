"""Two servers, as processes, share a PostgreSQL and a VictoriaMetrics; one of them is killed."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ports import free_port
from postgres_server import PostgresServer, postgres, why_not

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.database import set_address

LIMIT_S = 150  # a guard against hangs, not an expectation


def wait(description: str, ready: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT_S
    while not ready():
        assert time.monotonic() < until, description
        time.sleep(0.05)


class Site:
    """Servers a and b, an agent of node n1, and what they share."""

    def __init__(self, folder: Path, database: PostgresServer) -> None:
        self.folder, self.database, self.place = folder, database, database.new()
        self.samples = f"127.0.0.1:{free_port()}"
        self.urls = {name: f"http://127.0.0.1:{free_port()}" for name in "ab"}
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in "ab":
            (folder / name).mkdir()
            set_address(folder / name, self.place)
        monitor = Monitor(folder / "a")
        (folder / "token").write_text(People(monitor.jobs).make_token("", ["agent"], time.time(), "n1"))
        monitor.close()
        (folder / "token").chmod(0o600)
        (folder / "agent.toml").write_text(
            f'server = "{self.urls["a"]} {self.urls["b"]}"\ntoken_file = "{folder}/token"\nnode = "n1"\n'
            f'interval_s = 0.1\nstate = "{folder}/state"\npage = ""\n'
        )

    def start(self, name: str, *command: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def serve(self, name: str) -> None:
        self.start(
            name, sys.executable, "-m", "peerway", "jobs", "serve", "--no-slurm", "--data",
            str(self.folder / name), "--listen", self.urls[name].removeprefix("http://"),
            "--samples", f"http://{self.samples}",
        )  # fmt: skip

    def kill(self, name: str) -> None:
        program = self.running.pop(name)
        program.kill()
        program.wait()

    def go_on_without(self, victim: str) -> None:
        """Kill a server; the agent and the other server do its work."""
        before = self.last()
        self.kill(victim)
        wait("batches at the other server", lambda: self.last() >= before + 10)
        wait("a server that leads", lambda: self.leader() == 1)

    def wait_until_served(self, name: str) -> None:
        """Wait until a server accepts connections."""

        def answers() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.urls[name]}/healthz"):
                return True
            return False

        wait("a server's answer", answers)

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def ranges(self) -> list[list[int]]:
        """The ranges of batches that have been acknowledged."""
        rows = self.database.execute("SELECT ranges FROM received", self.place)
        return json.loads(rows[0][0]) if rows else []

    def last(self) -> int:
        return max((last for _, last in self.ranges()), default=0)

    def in_series(self) -> int:
        """The number of batches whose samples are in VictoriaMetrics."""
        query = urllib.parse.urlencode(
            {"query": "count_over_time(node_memory_total_bytes[1h])", "nocache": "1"}
        )
        with urllib.request.urlopen(f"http://{self.samples}/api/v1/query?{query}") as answer:
            rows = json.load(answer)["data"]["result"]
        return int(rows[0]["value"][1]) if rows else 0

    def leader(self) -> int:
        """The number of connections that hold the lock of the server that leads."""
        rows = self.database.execute("SELECT count(*) FROM pg_locks WHERE classid = 1886846978 AND granted")
        return int(rows[0][0])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if why := why_not():
        pytest.skip(why)
    if not shutil.which("victoria-metrics"):
        pytest.skip("there is no victoria-metrics; on Debian: apt-get install victoria-metrics")
    with postgres() as database, contextlib.closing(Site(tmp_path, database)) as made:
        made.start(
            "series", "victoria-metrics", f"-storageDataPath={tmp_path}/series",
            f"-httpListenAddr={made.samples}", "-search.latencyOffset=0s", "-loggerLevel=ERROR",
            "-memory.allowedBytes=64MB",
        )  # fmt: skip
        made.serve("a")
        made.serve("b")
        made.start("agent", sys.executable, "-m", "peerway", "jobs", "agent", "--settings",
                   str(tmp_path / "agent.toml"))  # fmt: skip
        wait("the first batches", lambda: made.last() >= 5)
        yield made


def test_a_server_that_is_killed_loses_nothing_and_the_agent_goes_on_at_the_other(site: Site) -> None:
    wait("a server that leads", lambda: site.leader() == 1)
    site.go_on_without("a")
    site.serve("a")
    site.wait_until_served("a")
    site.kill("agent")
    ranges = site.ranges()
    assert [first for first, _ in ranges] == [1], "each batch since the first has been acknowledged"
    wait("the samples of all batches, also of those that waited at a server that was killed",
         lambda: site.in_series() >= ranges[0][1])  # fmt: skip
    assert "cannot send to" in site.log("agent")
    assert "takes batches" in site.log("agent")
    for name in "ab":
        assert "Traceback" not in site.log(name)
