"""A large cluster: several servers behind VictoriaMetrics and PostgreSQL, under the agents of 3,000 nodes.

    nice -n 10 python jobs/tests/load/jobs_fleet.py --nodes 3000 --servers 2 --minutes 10 \
        --out results/jobs/large.jsonl

Each simulated node has 8 GPUs and one job, and sends a batch each 10 s to one of the servers. What is refused
is sent again, as an agent does. At the end every acknowledged batch must be in PostgreSQL, and
VictoriaMetrics must have its samples. The agents are a process of their own, so that their CPU time is told
apart.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from jobs_load import SERVE, connected, peak_of
from jobs_node import BOOT, CORES, GPUS, batch, cpu_of
from jobs_stream import Stream
from jobs_sustained import (
    DATABASE,
    NODE_METRIC,
    counted,
    first_of,
    kept_of,
    look,
    of_postgres,
    quantiles,
    resident_of,
    victoria_metrics,
    waiting_in,
)  # fmt: skip
from postgres_server import PostgresServer, postgres

from peerway_jobs.batch import encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.database import set_address

PERIOD_S = 10
PORT = 18751  # of the first server; the others follow
SENDERS = (
    200  # threads; each sends for some nodes, so that this many POSTs may wait for their answers at once
)


class Agents:
    """All simulated agents: how long each batch took from the moment it was due until it was acknowledged."""

    def __init__(self, tokens: dict[str, str], servers: int, minutes: float) -> None:
        self._tokens, self._servers, self._until_s = list(tokens.items()), servers, minutes * 60
        self._stream = Stream()
        self._lock = threading.Lock()
        self.waits: list[float] = []  # since `take` was last called
        self.again = 0  # POSTs that were not answered with 200

    def run(self) -> None:
        """Send for the whole time."""
        begun = time.monotonic()
        with ThreadPoolExecutor(SENDERS) as pool:
            for done in [pool.submit(self._send, place, begun) for place in range(SENDERS)]:
                done.result()

    def take(self) -> tuple[list[float], int]:
        """The seconds of each batch, and the POSTs that had to be sent again, since the last call."""
        with self._lock:
            waits, self.waits, again, self.again = self.waits, [], self.again, 0
        return waits, again

    def _send(self, place: int, begun: float) -> None:
        mine = range(place, len(self._tokens), SENDERS)
        port = PORT + place % self._servers
        connection = connected(port)
        seq = 0
        while time.monotonic() - begun < self._until_s:
            seq += 1
            for turn, number in enumerate(mine):
                due = begun + (seq - 1 + (turn + place / SENDERS) / len(mine)) * PERIOD_S
                time.sleep(max(0.0, due - time.monotonic()))
                while not self._post(connection, number, seq):
                    with self._lock:
                        self.again += 1
                    time.sleep(1)
                    connection = connected(port)
                with self._lock:
                    self.waits.append(time.monotonic() - due)

    def _post(self, connection: http.client.HTTPConnection, number: int, seq: int) -> bool:
        """Send a batch; returns whether it was acknowledged."""
        node, token = self._tokens[number]
        now = int(time.time() * 1000)
        if seq == 1:
            payload = encode(first_of(node, number, batch(node, seq, now)))
        else:
            payload = self._stream.batch(node, number, seq, now)
        headers = {"Authorization": f"Bearer {token}", "Peerway-Sent": Sent(now, seq * 10_000, BOOT).header()}
        try:
            connection.request("POST", "/api/v1/agent/batches", frame(payload), headers)
            answer = connection.getresponse()
            told = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        if answer.status not in (200, 429, 503):
            raise SystemExit(f"{answer.status}: {told.decode()}")
        return answer.status == 200


def agents(pipe: Connection, tokens: dict[str, str], servers: int, minutes: float) -> None:
    """The process of the agents: answers each message with what `take` returns, and whether they go on."""
    all_of = Agents(tokens, servers, minutes)
    work = threading.Thread(target=all_of.run)
    work.start()
    while pipe.recv():
        going = work.is_alive()
        pipe.send((all_of.take(), going))
    work.join()


@contextlib.contextmanager
def serving(folders: list[Path]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A server in each folder."""
    servers = [
        subprocess.Popen(
            [sys.executable, *SERVE, f"127.0.0.1:{PORT + place}", "--data", str(folder),
             "--samples", f"http://{DATABASE}"]
        )
        for place, folder in enumerate(folders)
    ]  # fmt: skip
    try:
        for place in range(len(servers)):
            connected(PORT + place).close()
        yield servers
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(60)


class Meter:
    """CPU seconds of all parts since the last look."""

    def __init__(self, servers: list[int], samples: int, jobs: int, agents: int) -> None:
        self._servers, self._samples, self._jobs, self._agents = servers, samples, jobs, agents
        self.begin = self._last = self._now()

    def _now(self) -> dict[str, float]:
        return {
            "servers": sum(map(cpu_of, self._servers)), "victoria_metrics": cpu_of(self._samples),
            "postgresql": of_postgres(self._jobs)["cpu_s"], "agents": cpu_of(self._agents),
        }  # fmt: skip

    def spent(self) -> dict[str, float]:
        """Since the last call."""
        last, self._last = self._last, self._now()
        return {name: round(value - last[name], 2) for name, value in self._last.items()}

    def of_one_core(self, seconds: float) -> dict[str, float]:
        """Of the whole time."""
        return {name: round((value - self.begin[name]) / seconds, 3) for name, value in self._last.items()}


def minutes_of(
    pipe: Connection, meter: Meter, servers: list[subprocess.Popen[bytes]], folders: list[Path],
    samples: int, jobs: int,
) -> Iterator[tuple[dict[str, Any], list[float]]]:  # fmt: skip
    """A line and the batches' seconds for each minute until the agents have ended."""
    going = True
    while going:
        waits: list[float] = []
        repeated = 0
        ends = time.monotonic() + 60
        while going and time.monotonic() < ends:
            time.sleep(1)
            pipe.send(True)
            (more, again), going = pipe.recv()
            waits += more
            repeated += again
        yield {
            "cpu_s": meter.spent(), "batches": len(waits), "sent_again": repeated,
            "acknowledged_in": quantiles(waits or [0.0]),
            "waiting": [waiting_in(folder) for folder in folders],
            "servers": [resident_of(server.pid)["own"] for server in servers],
            "victoria_metrics": resident_of(samples)["own"], "postgresql": of_postgres(jobs)["memory"],
            "load": os.getloadavg()[0],
        }, waits  # fmt: skip


def steady(lines: list[dict[str, Any]], nodes: int) -> dict[str, Any]:
    """CPU time a batch after the first minute, in which all series and jobs are new, and the cores that all
    nodes need with it.
    """
    later = lines[1:] or lines
    batches = sum(line["batches"] for line in later)
    each = {
        name: sum(line["cpu_s"][name] for line in later) / max(1, batches) * 1000
        for name in lines[0]["cpu_s"]
    }
    return {
        "cpu_ms_a_batch": {name: round(ms, 3) for name, ms in each.items()},
        "cores": {name: round(ms / 1000 * nodes / PERIOD_S, 3) for name, ms in each.items()},
    }


def fleet(
    folder: Path,
    server: PostgresServer,
    samples: subprocess.Popen[bytes],
    nodes: int,
    count: int,
    minutes: float,
) -> dict[str, Any]:
    """Run it; returns the record."""
    url = server.new()
    folders = [folder / f"server{place}" for place in range(count)]
    for each in folders:
        each.mkdir(mode=0o700)
        set_address(each, url)
    monitor = Monitor(folders[0])
    people = People(monitor.jobs)
    tokens = {
        name: people.make_token("", ["agent"], time.time(), name)
        for name in (f"node{n:04}" for n in range(nodes))
    }
    people.put("root", "admin")
    person = people.make_token("root", ["jobs:read", "cluster:read", "admin"], time.time())
    monitor.close()
    ours, theirs = multiprocessing.Pipe()
    done = threading.Event()
    with serving(folders) as servers, ThreadPoolExecutor(1) as pool:
        sender = multiprocessing.get_context("fork").Process(
            target=agents, args=(theirs, tokens, count, minutes)
        )
        sender.start()
        meter = Meter([each.pid for each in servers], samples.pid, server.pid, sender.pid or 0)
        looks, begun = pool.submit(look, person, done, PORT), time.monotonic()
        lines: list[dict[str, Any]] = []
        waits: list[float] = []
        for line, of_minute in minutes_of(ours, meter, servers, folders, samples.pid, server.pid):
            lines.append(line)
            waits += of_minute
            print(json.dumps(line), flush=True)
        ours.send(False)
        sender.join()
        wall_s = time.monotonic() - begun
        shares = meter.of_one_core(wall_s)
        done.set()
        pages = {path: quantiles(of) for path, of in looks.result().items()}
        ended = time.monotonic()
        while any(waiting_in(each) for each in folders):
            time.sleep(0.5)
        written_s = time.monotonic() - ended
        peaks = {"servers": [peak_of(each.pid) for each in servers], "victoria_metrics": peak_of(samples.pid)}
    time.sleep(2)  # samples of the last second cannot be found yet
    stored, kept = counted(NODE_METRIC), kept_of(folders[0])
    if {stored, kept} != {len(waits)}:
        raise SystemExit(f"{len(waits)} acknowledged, {kept} in PostgreSQL, {stored} in VictoriaMetrics")
    return {
        "test": "fleet", "nodes": nodes, "gpus": nodes * GPUS, "cores": nodes * CORES, "servers": count,
        "wall_s": wall_s, "batches": len(waits), "due": int(nodes * minutes * 60 / PERIOD_S),
        "of_one_core": shares, **steady(lines, nodes),
        "acknowledged_in": quantiles(waits), "answered_in": pages,
        "written_after_s": round(written_s, 1), "peak_bytes": peaks, "minutes": lines,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        postgres("shared_buffers=128MB", "fsync=on", "full_page_writes=on") as server,
    ):
        at = Path(folder, "samples")
        at.mkdir()
        with victoria_metrics(at) as samples:
            record = fleet(Path(folder), server, samples, options.nodes, options.servers, options.minutes)
    record |= {
        "cpus": os.cpu_count(), "nice": os.nice(0), "python": platform.python_version(),
        "machine": platform.machine(), "load": os.getloadavg()[0],
        "command": " ".join(["python", *sys.argv]), "time": time.time(),
    }  # fmt: skip
    print(json.dumps(record, indent=1))
    with options.out.open("a") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
