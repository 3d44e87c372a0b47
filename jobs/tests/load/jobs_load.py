"""How much the server of jobs bears: agents of many nodes, a long job's page, a million finished jobs.

    python jobs/tests/load/jobs_load.py --out results/jobs/load.jsonl

CPU seconds are the measure: the machine may be shared. Everything runs on loopback and in a temporary folder.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "shared"))  # the tests' scenes
sys.path.append(str(Path(__file__).resolve().parents[3] / "tests" / "shared"))

from jobs_many import million, timed
from jobs_node import BOOT, GPUS, batch, cpu_of
from jobs_old import DAY, beside, big_job, judging, thinning
from jobs_page import drawn

from peerway_jobs.batch import encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.incoming import STRETCH_MS

SERVE = ["-m", "peerway", "jobs", "serve", "--no-slurm", "--listen"]


def peak_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def ingest(folder: Path, nodes: int, rounds: int) -> dict[str, Any]:
    """Let nodes POST one batch each, in several rounds; returns the server's CPU time for one round of 10
    s.
    """
    monitor = Monitor(folder)
    people = People(monitor.jobs)
    names = [f"node{n:04}" for n in range(nodes)]
    tokens = [people.make_token("", ["agent"], time.time(), name) for name in names]
    monitor.close()
    port = 18740
    server = subprocess.Popen([sys.executable, *SERVE, f"127.0.0.1:{port}", "--data", str(folder)])
    try:
        connections = [connected(port) for _ in range(20)]
        begun = time.time()
        texts = 0
        spent = 0.0
        for seq in range(1, rounds + 1):
            now = int(time.time() * 1000)
            bodies = [frame(encode(batch(name, seq, now))) for name in names]
            texts += sum(len(body) for body in bodies)
            before = cpu_of(server.pid)
            work = [
                [*zip(bodies, tokens, strict=True)][n :: len(connections)] for n in range(len(connections))
            ]
            with ThreadPoolExecutor(len(connections)) as pool:
                for done in [
                    pool.submit(share, *each, now, seq) for each in zip(connections, work, strict=True)
                ]:
                    done.result()
            spent += cpu_of(server.pid) - before
        return {
            "test": "ingest",
            "nodes": nodes,
            "gpus": nodes * GPUS,
            "rounds": rounds,
            "cpu_s_a_round": spent / rounds,
            "of_one_core": spent / rounds / 10,
            "bytes_a_batch": texts / rounds / nodes,
            "samples_a_round": nodes
            * sum(
                1
                for kind in batch("x", 1, 0).samples.values()
                for column in kind.values.values()
                for _ in column
            ),
            "peak_bytes": peak_of(server.pid),
            "wall_s": time.time() - begun,
        }
    finally:
        server.terminate()
        server.wait(60)


def connected(port: int) -> http.client.HTTPConnection:
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
            return connection
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def share(connection: http.client.HTTPConnection, work: list[tuple[bytes, str]], now: int, seq: int) -> None:
    for body, token in work:
        post(connection, body, token, now, seq)


def post(connection: http.client.HTTPConnection, body: bytes, token: str, now: int, seq: int) -> None:
    headers = {"Authorization": f"Bearer {token}", "Peerway-Sent": Sent(now, seq * 10_000, BOOT).header()}
    connection.request("POST", "/api/v1/agent/batches", body, headers)
    answer = connection.getresponse()
    told = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{answer.status}: {told.decode()}")


def sealing(folder: Path) -> dict[str, Any]:
    """The CPU time to seal half an hour of one node; every node needs this once per half hour."""
    from peerway_jobs.store.chunks import ChunkStore
    from peerway_jobs.store.samples import Filed

    store, start = ChunkStore(folder), 1_790_000_000_000 // STRETCH_MS * STRETCH_MS
    batches = [batch("n", seq, start + (seq - 1) * 10_000) for seq in range(1, STRETCH_MS // 10_000 + 1)]
    encoded = [Filed(each, 0, encode(each), 10_000) for each in batches]
    store.put(encoded)
    before = time.process_time()
    store.seal(start + 2 * STRETCH_MS)
    spent = time.process_time() - before
    store.close()
    size = sum(path.stat().st_size for path in folder.glob("day-*.db"))
    return {
        "test": "seal",
        "cpu_s_a_node": spent,
        "of_one_core_for_1000_nodes": spent * 1000 / (STRETCH_MS / 1000),
        "bytes_on_disk": size,
        "bytes_as_sent": sum(len(each.payload) for each in encoded),
        "note": "values are random, the worst case for compression",
    }


def page(folder: Path) -> dict[str, Any]:
    """The page and graphs of a job of 24 h on 2 nodes with 8 GPUs and 64 cores each, sampled every 10 s."""
    from fastapi.testclient import TestClient

    from peerway_jobs.serve.app import create_app

    start = DAY
    monitor = Monitor(folder, clock=lambda: start + 86_500.0)
    run = big_job(monitor, start)
    before = time.process_time()
    verdict = monitor.judge(run)
    judged = time.process_time() - before
    people = People(monitor.jobs)
    people.put("admin", "admin")
    head = {"Authorization": f"Bearer {people.make_token('admin', ['jobs:read', 'admin'], start + 86_500)}"}
    with TestClient(create_app(monitor, work=False)) as client:
        client.get("/jobs/1", headers=head)
        html = timed(lambda: client.get("/jobs/1", headers=head))
        series = timed(lambda: client.get("/api/v1/jobs/1/series", headers=head))
        size = len(client.get("/api/v1/jobs/1/series", headers=head).content)
    monitor.close()
    return {
        "test": "job page",
        "hours": 24,
        "gpus": 16,
        "cores": 128,
        "page": html,
        "graphs": series,
        "graphs_bytes": size,
        "judge_cpu_s": judged,
        "verdict": verdict.state,
    }


STEPS = ("ingest", "seal", "thin", "judging", "beside", "page", "browser", "jobs")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--only", nargs="*", choices=STEPS)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    where = {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "load": os.getloadavg()[0],
        "command": " ".join(["python", *sys.argv]),
    }
    steps = {
        "ingest": lambda folder: ingest(folder, options.nodes, options.rounds),
        "seal": sealing,
        "thin": thinning,
        "judging": judging,
        "beside": lambda folder: beside(folder, options.nodes),
        "page": page,
        "browser": drawn,
        "jobs": lambda folder: million(folder, options.jobs),
    }
    for name in options.only or steps:
        step = steps[name]
        with tempfile.TemporaryDirectory() as folder:
            record = {**step(Path(folder)), **where, "time": time.time()}
        print(json.dumps(record, indent=1), flush=True)
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
