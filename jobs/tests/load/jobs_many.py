"""Lists and sums over a million finished jobs: a step of jobs_load.py."""

from __future__ import annotations

import random
import tempfile
import time
from pathlib import Path
from typing import Any

from jobs_server import NOW, scene

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.runs import Run, row_of

SCRIPT = "#!/bin/bash\n#SBATCH --gres=gpu:1\n" + "srun python train.py --data /lustre/data --epochs 90\n" * 20
TIMED = 5  # requests


def million(folder: Path, count: int) -> dict[str, Any]:
    """My jobs, statistics and the administrator's list with so many finished jobs of 1,192 users."""
    from fastapi.testclient import TestClient

    from peerway_jobs.serve.app import create_app

    start = 1_790_000_000.0
    monitor = Monitor(folder, clock=lambda: start)
    random.seed(1)
    first = row_of(Run("0"))
    names = list(first)
    base = monitor.jobs.writer
    base.execute("BEGIN")
    base.executemany(
        f"INSERT INTO jobs ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
        (list(row.values()) for row in jobs(first, count, start)),
    )
    good, bad = bodies()
    base.execute(
        "INSERT INTO verdicts "
        "SELECT job, restart, 'abc', judged, iif(verdict = 'inefficient', ?, ?) FROM jobs",
        (bad, good),
    )
    base.execute("COMMIT")
    people = People(monitor.jobs)
    people.put("admin", "admin")
    me = {"Authorization": f"Bearer {people.make_token('user7', ['jobs:read'], start)}"}
    admin = {"Authorization": f"Bearer {people.make_token('admin', ['jobs:read', 'admin'], start)}"}
    with TestClient(create_app(monitor, work=False)) as client:
        client.get("/jobs", headers=me)
        found = {
            "my_jobs": timed(lambda: client.get("/jobs", headers=me)),
            "my_inefficient_jobs": timed(lambda: client.get("/jobs?verdict=inefficient", headers=me)),
            "all_jobs": timed(lambda: client.get("/jobs?everyone=true", headers=admin)),
            "wasted_7_days": timed(lambda: client.get("/admin/jobs?days=7", headers=admin)),
            "statistics_30_days": timed(lambda: client.get("/statistics?days=30", headers=admin)),
        }
    monitor.close()
    size = (folder / "jobs.db").stat().st_size
    return {
        "test": "many jobs",
        "jobs": count,
        "users": 1192,
        "script_bytes": len(SCRIPT),
        "verdict_bytes": [len(good), len(bad)],
        "bytes_on_disk": size,
        **found,
    }


def bodies() -> tuple[str, str]:
    """The verdicts on an efficient and on an inefficient job, as they are kept: of jobs of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        monitor = Monitor(Path(folder), clock=lambda: NOW)
        scene(monitor)
        monitor.judge_due()
        rows = monitor.jobs.reader.execute(
            "SELECT v.body FROM verdicts v JOIN jobs j USING (job, restart) "
            "WHERE j.verdict IN ('efficient', 'inefficient') ORDER BY j.verdict, length(v.body)"
        ).fetchall()
        monitor.close()
    return rows[0][0], rows[-1][0]


def jobs(like: dict[str, Any], count: int, now: float) -> Any:
    for number in range(count):
        started = now - random.random() * 3 * 365 * 86_400
        yield {
            **like,
            "job": str(number + 1),
            "user": f"user{random.randrange(1192)}",
            "account": f"a{number % 90}",
            "name": f"job-{number}",
            "script": SCRIPT,
            "state": "COMPLETED",
            "started": started,
            "ended": started + random.random() * 86_400,
            "verdict": random.choice(["efficient", "inefficient"]),
            "cores": 8,
            "gpus": number % 3,
            "nodes": 1,
            "idle_gpu_hours": random.random() * 9,
            "idle_core_hours": random.random() * 40,
            "judged": started + 90_000,
        }


def timed(action: Any) -> dict[str, float]:
    """The least of TIMED: CPU seconds of this process, server and client together, and seconds passed."""
    cpu, wall = [], []
    for _ in range(TIMED):
        before, begun = time.process_time(), time.perf_counter()
        answer = action()
        cpu.append(time.process_time() - before)
        wall.append(time.perf_counter() - begun)
        if answer.status_code != 200:
            raise SystemExit(f"{answer.status_code}: {answer.text[:300]}")
    return {"cpu_s": min(cpu), "wall_s": min(wall)}
