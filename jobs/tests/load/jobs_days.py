"""Runs the jobs server over simulated days, to see whether its memory grows with time.

    nice -n 12 python jobs/tests/load/jobs_days.py --minutes 6 --out results/jobs/days.jsonl

Only the clock is simulated: nodes POST a batch for every 10 s over HTTP, jobs of half an hour follow one
another and are judged, samples are sealed, old days are thinned, and four people at a time look at pages.
After every 6 simulated hours, the process's memory, files, threads and objects are recorded.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from jobs_node import BOOT, batch
from jobs_sustained import resident_of

from peerway_jobs.batch import Facts, Gpu, Interval, encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.app import create_app
from peerway_jobs.serve.people import People
from peerway_jobs.store.samples import Thinning

START = 1_790_000_000.0
PERIOD_S, POST_S, JOB_S, ROW_S = 10, 300, 1800, 6 * 3600
NODES = ("n1",)


class Simulated:
    """A server in this process whose clock the test sets, and its agents."""

    def __init__(self, folder: Path) -> None:
        self.now = START
        self.monitor = Monitor(folder, thinning=Thinning(raw_days=1, thin_days=2), clock=lambda: self.now)
        people = People(self.monitor.jobs)
        people.put("root", "admin")
        self.person = people.make_token("root", ["jobs:read", "cluster:read", "admin"], START)
        self.agents = {node: people.make_token("", ["agent"], START, node) for node in NODES}
        config = uvicorn.Config(
            create_app(self.monitor, work=False), host="127.0.0.1", port=0, log_level="warning"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.02)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60)
        self.seq = 0

    def minutes(self) -> None:
        """Send what all agents send in the time of one POST; then judge and tidy, as the server does."""
        frames: dict[str, list[bytes]] = {node: [] for node in NODES}
        for _ in range(POST_S // PERIOD_S):
            self.now += PERIOD_S
            self.seq += 1
            for number, node in enumerate(NODES):
                frames[node].append(frame(encode(self._batch(node, number))))
        for node, each in frames.items():
            sent = Sent(int(self.now * 1000), self.seq * PERIOD_S * 1000, BOOT).header()
            head = {"Authorization": f"Bearer {self.agents[node]}", "Peerway-Sent": sent}
            answer = self.client.post("/api/v1/agent/batches", content=b"".join(each), headers=head)
            assert answer.status_code == 200, answer.text
        self.monitor.judge_due()
        self.monitor.tidy()

    def look(self) -> None:
        """Let four people look at once; their threads end before the next four come."""
        head = {"Authorization": f"Bearer {self.person}"}
        job = 1000 + int(self.now - START) // JOB_S * len(NODES)
        paths = ("jobs", "cluster", "sums/user", f"jobs/{job - 2}", f"jobs/{job - 2}/series")
        with ThreadPoolExecutor(4) as pool:
            for answer in pool.map(lambda path: self.client.get(f"/api/v1/{path}", headers=head), paths):
                assert answer.status_code == 200, answer.text

    def _batch(self, node: str, number: int) -> Any:
        made = batch(node, self.seq, int(self.now * 1000))
        made.mono_ms = self.seq * PERIOD_S * 1000
        gpus = made.samples["gpu"].devices
        cores = len(made.samples["core"].devices)
        past, turn = int(self.now - START) % JOB_S, int(self.now - START) // JOB_S
        if self.seq == 1 or past == 0:
            made.facts = Facts(cores, 1 << 39, PERIOD_S * 1000, "v2", "1", gpus=[Gpu(each) for each in gpus])
            made.intervals = [self._job(number, each, cores, gpus) for each in (turn - 1, turn) if each >= 0]
        return made

    def _job(self, number: int, turn: int, cores: int, gpus: list[str]) -> Interval:
        start = int((START + turn * JOB_S) * 1000)
        end = start + JOB_S * 1000
        return Interval(
            f"{turn}", 1000 + turn * len(NODES) + number, start, end if end <= self.now * 1000 else None,
            user=f"user{turn % 7}", cpus=cores, cores=list(range(cores)), gpus=gpus, memory_bytes=1 << 38,
        )  # fmt: skip

    def row(self) -> dict[str, Any]:
        gc.collect()
        return {
            "hours": round((self.now - START) / 3600), "resident": resident_of(os.getpid()),
            "files": len(os.listdir("/proc/self/fd")), "threads": threading.active_count(),
            "objects": len(gc.get_objects()),
        }  # fmt: skip

    def close(self) -> int:
        self.client.close()
        self.server.should_exit = True
        self.thread.join(60)
        judged = self.monitor.jobs.reader.execute("SELECT count(*) FROM verdicts").fetchone()[0]
        self.monitor.close()
        return int(judged)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=6, help="of real time")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = []
    until = time.monotonic() + options.minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        simulated = Simulated(Path(folder))
        while time.monotonic() < until:
            simulated.minutes()
            if (simulated.now - START) % 1800 == 0 and simulated.now - START > 2 * JOB_S:
                simulated.look()
            if (simulated.now - START) % ROW_S == 0:
                rows.append(simulated.row())
                print(json.dumps(rows[-1]), flush=True)
        judged = simulated.close()
    record = {
        "test": "simulated days", "nodes": len(NODES), "batches": simulated.seq * len(NODES),
        "judged": judged, "rows": rows, "python": platform.python_version(),
        "command": " ".join(["python", *sys.argv]), "time": time.time(),
    }  # fmt: skip
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a") as file:
        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
