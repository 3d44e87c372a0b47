"""The server of jobs under agents that send for minutes: its CPU time, memory and disk, minute by minute,
and how long agents and an administrator wait for its answers.

    nice -n 12 python jobs/tests/load/jobs_sustained.py --nodes 250 --minutes 12 \
        --out results/jobs/sustained.jsonl

Each node sends one batch each 10 s, spread over the 10 s, and runs a job with 8 GPUs, so the server judges
meanwhile. At the end every batch that was acknowledged must be in the database.

With --victoria-metrics the samples go there: its CPU time and memory are told too, and how many batches wait
for it on the server's disk. At the end it must have one sample of each batch. With --postgresql as well, jobs
are in a private PostgreSQL.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from jobs_load import SERVE, connected, peak_of, post
from jobs_node import CORES, GPUS, STEPS, batch, cpu_of
from postgres_server import postgres

from peerway_jobs.batch import Batch, Facts, Gpu, Interval, encode
from peerway_jobs.frames import frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.database import set_address

PERIOD_S = 10
PORT = 18741
DATABASE = "127.0.0.1:18742"
NODE_METRIC = "node_memory_total_bytes"  # one sample per batch
SENDERS = 50  # each waits for its acknowledgement, so this many may wait at once, like agents of 1,000 nodes


def first_of(node: str, number: int, pattern: Batch) -> Batch:
    """The first batch of a node: its facts, and the job that has all of it."""
    pattern.facts = Facts(
        CORES,
        1 << 39,
        PERIOD_S * 1000,
        "v2",
        "1",
        gpus=[Gpu(each) for each in pattern.samples["gpu"].devices],
    )
    start, job = pattern.wall_ms - 60_000, 1000 + number
    pattern.intervals = [
        Interval(
            "a", job, start, user=f"user{number % 50}", cpus=CORES, cores=list(range(CORES)),
            gpus=pattern.samples["gpu"].devices, memory_bytes=1 << 38,
        ),
        *(Interval(f"s{slot}", job, start, step=str(slot), slot=slot) for slot in range(STEPS)),
    ]  # fmt: skip
    return pattern


def send(names: list[str], tokens: list[str], first: int, minutes: float) -> list[float]:
    """Send as one sender's nodes, one after another within each 10 s;
    returns the seconds to each acknowledgement.
    """
    connection = connected(PORT)
    waits: list[float] = []
    begun, end = time.monotonic(), minutes * 60
    seq = 0
    while time.monotonic() - begun < end:
        seq += 1
        for place, (name, token) in enumerate(zip(names, tokens, strict=True)):
            due = begun + (seq - 1 + place / len(names)) * PERIOD_S
            time.sleep(max(0.0, due - time.monotonic()))
            now = int(time.time() * 1000)
            made = batch(name, seq, now)
            if seq == 1:
                made = first_of(name, first + place, made)
            body = frame(encode(made))
            asked = time.monotonic()
            post(connection, body, token, now, seq)
            waits.append(time.monotonic() - asked)
    return waits


def look(token: str, done: threading.Event, port: int = PORT) -> dict[str, list[float]]:
    """Look at three pages every 5 s as an administrator; returns the seconds to each answer."""
    connection = connected(port)
    waits: dict[str, list[float]] = {"cluster": [], "jobs": [], "jobs/1000/series": []}
    while not done.wait(5):
        for path, of in waits.items():
            asked = time.monotonic()
            connection.request("GET", f"/api/v1/{path}", headers={"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            told = answer.read()
            if answer.status == 404:  # the job's first batch has not come yet
                continue
            if answer.status != 200:
                raise SystemExit(f"{path}: {answer.status}: {told.decode()}")
            of.append(time.monotonic() - asked)
    return waits


def quantiles(waits: list[float]) -> dict[str, float]:
    found = np.quantile(waits, [0.5, 0.95, 0.99, 1]) * 1000
    return dict(
        zip(("p50_ms", "p95_ms", "p99_ms", "max_ms"), (round(float(q), 1) for q in found), strict=True)
    )


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def resident_of(pid: int) -> dict[str, int]:
    """The process's own resident memory, and that of files (mapped by SQLite), which the kernel can drop."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return {"own": int(kib["RssAnon"]) << 10, "of_files": int(kib["RssFile"]) << 10}


@contextlib.contextmanager
def victoria_metrics(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start Debian's VictoriaMetrics with its default settings."""
    options = [
        f"-storageDataPath={folder}",
        f"-httpListenAddr={DATABASE}",
        "-retentionPeriod=1",
        "-search.latencyOffset=0s",
    ]
    with (folder.parent / "victoria-metrics.log").open("ab") as log:
        database = subprocess.Popen(["victoria-metrics", *options], stdout=log, stderr=log)
    try:
        yield database
    finally:
        database.terminate()
        database.wait(60)


def waiting_in(folder: Path) -> int:
    """The number of batches on the server's disk that the database does not have yet."""
    with contextlib.closing(sqlite3.connect(folder / "samples" / "ahead.db")) as base:
        row = base.execute("SELECT count(*) FROM batches WHERE written IS NULL").fetchone()
    return int(row[0])


def counted(metric: str) -> int:
    """The number of samples of a metric in the database in the last day, over all nodes."""
    query = urllib.parse.urlencode({"query": f"sum(count_over_time({metric}[1d]))", "nocache": "1"})
    with urllib.request.urlopen(f"http://{DATABASE}/api/v1/query?{query}") as answer:
        (found,) = json.load(answer)["data"]["result"]
    return int(found["value"][1])


def of_postgres(pid: int) -> dict[str, float]:
    """CPU seconds of PostgreSQL's processes so far, and their memory; shared pages count once."""
    spent, memory = 0.0, 0
    for child in (pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())):
        with contextlib.suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            ticks = sum(int(each) for each in (fields[11:15] if child == pid else fields[11:13]))
            spent += ticks / os.sysconf("SC_CLK_TCK")
            lines = Path(f"/proc/{child}/smaps_rollup").read_text().splitlines()
            memory += next(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
    return {"cpu_s": round(spent, 2), "memory": memory}


def sustained(
    folder: Path,
    nodes: int,
    minutes: float,
    database: subprocess.Popen[bytes] | None = None,
    postgres_pid: int = 0,
) -> dict[str, Any]:
    monitor = Monitor(folder)
    people = People(monitor.jobs)
    names = [f"node{n:04}" for n in range(nodes)]
    tokens = [people.make_token("", ["agent"], time.time(), name) for name in names]
    people.put("root", "admin")
    person = people.make_token("root", ["jobs:read", "cluster:read", "admin"], time.time())
    monitor.close()
    samples = ["--samples", f"http://{DATABASE}"] if database else []
    server = subprocess.Popen([sys.executable, *SERVE, f"127.0.0.1:{PORT}", "--data", str(folder), *samples])
    try:
        connected(PORT).close()
        idle, begun = cpu_of(server.pid), time.time()
        series = []
        share = -(-nodes // SENDERS)
        done = threading.Event()
        with ThreadPoolExecutor(SENDERS + 1) as pool:
            looks = pool.submit(look, person, done)
            work = [
                pool.submit(send, names[at : at + share], tokens[at : at + share], at, minutes)
                for at in range(0, nodes, share)
            ]
            before = idle
            while not all(each.done() for each in work):
                time.sleep(60)
                now = cpu_of(server.pid)
                series.append(
                    {
                        "cpu_s": round(now - before, 2),
                        "resident": resident_of(server.pid),
                        "files": len(os.listdir(f"/proc/{server.pid}/fd")),
                        "disk": size_of(folder),
                    }
                )
                if database:
                    series[-1] |= {
                        "waiting": waiting_in(folder),
                        "ahead": (folder / "samples" / "ahead.db").stat().st_size,
                        "database": resident_of(database.pid),
                    }
                if postgres_pid:
                    series[-1]["postgresql"] = of_postgres(postgres_pid)
                before = now
                print(json.dumps(series[-1]), flush=True)
            done.set()
            waits = [wait for each in work for wait in each.result()]
            pages = {path: quantiles(of) for path, of in looks.result().items()}
        cpu, wall, peak = cpu_of(server.pid) - idle, time.time() - begun, peak_of(server.pid)
        behind: dict[str, Any] = {}
        if database:
            ended = time.monotonic()
            while waiting_in(folder):
                time.sleep(0.5)
            behind["written_after_s"] = round(time.monotonic() - ended, 1)
            behind["cpu_s"] = cpu_of(database.pid)
            behind["peak_bytes"] = peak_of(database.pid)
    finally:
        server.terminate()
        server.wait(60)
    if database:
        time.sleep(2)  # samples of the last second cannot be found yet
        if (found := counted(NODE_METRIC)) != len(waits):
            raise SystemExit(f"{len(waits)} batches were acknowledged, the database has samples of {found}")
    kept = kept_of(folder)
    if kept != len(waits):
        raise SystemExit(f"{len(waits)} batches were acknowledged and {kept} are kept")
    return {
        "test": "sustained ingest", "nodes": nodes, "gpus": nodes * GPUS, "wall_s": wall,
        "batches": len(waits), "acknowledged_in": quantiles(waits), "answered_in": pages,
        "cpu_s": cpu, "of_one_core": cpu / wall, "of_one_core_for_1000_nodes": cpu / wall / nodes * 1000,
        "peak_bytes": peak, "minutes": series, "victoria_metrics": behind or None,
        "postgresql": series[-1].get("postgresql"),
        "note": "values are random, the worst case for compression",
    }  # fmt: skip


def kept_of(folder: Path) -> int:
    monitor = Monitor(folder)
    rows = monitor.jobs.reader.execute("SELECT ranges FROM received").fetchall()
    judged = monitor.jobs.reader.execute("SELECT count(*) FROM verdicts").fetchone()[0]
    monitor.close()
    print(f"{judged} jobs were judged")
    return sum(last - first + 1 for row in rows for first, last in json.loads(row["ranges"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=250)
    parser.add_argument("--minutes", type=float, default=12)
    parser.add_argument("--victoria-metrics", action="store_true")
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        database = None
        if options.victoria_metrics:
            at = Path(folder, "database")
            at.mkdir()
            database = stack.enter_context(victoria_metrics(at))
        data = Path(folder, "data")
        data.mkdir()
        pid = 0
        if options.postgresql:
            server = stack.enter_context(postgres("shared_buffers=128MB", "fsync=on", "full_page_writes=on"))
            set_address(data, server.new())
            pid = server.pid
        record = sustained(data, options.nodes, options.minutes, database, pid)
    record |= {
        "cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine(),
        "load": os.getloadavg()[0], "command": " ".join(["python", *sys.argv]), "time": time.time(),
    }  # fmt: skip
    print(json.dumps(record, indent=1))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
