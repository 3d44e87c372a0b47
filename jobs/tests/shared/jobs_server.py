"""A jobs server with people and a cluster on loopback, for tests of its pages and its API."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jobs_scene import GIB, PERIOD, START, Job, filed, put

from peerway_jobs.batch import Batch, Samples
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve import connections
from peerway_jobs.serve.app import create_app
from peerway_jobs.serve.people import People
from peerway_jobs.store.runs import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW = START + 3 * 3600.0
PASSWORD = "correct horse"
EVIL = "<img src=x onerror=alert(1)>\x1b[31m\u202e"
EVIL_QUOTED = "\"'><script>document.title=1</script>{{7*7}}"


def wave(device: int, minute: int) -> float:
    return 0.75 + 0.2 * ((minute // 10 + device) % 2)


def scene(monitor: Monitor) -> None:
    """Add jobs of alice, bob and carol: good, bad, running, without data, with a hostile name."""
    cpu, gpu, memory = "step_cpu_user_seconds_total", "gpu_utilization_ratio", "step_memory_bytes"
    busy = {"core_busy_seconds_total": lambda d, m: (0.95 if d % 8 else 0.4) * 60 * m}
    gpus = {"gpu_memory_used_bytes": 40 * GIB, "gpu_memory_total_bytes": 80 * GIB, "gpu_power_watts": 400.0}
    put(
        monitor,
        Job(
            101,
            {cpu: 30.0, memory: 200 * GIB, gpu: wave, **gpus, **busy},
            cores=32,
            gpus=4,
            node_cores=64,
            node_gpus=8,
            memory=256 * GIB,
            node_memory=512 * GIB,
            slurm={"name": "train-resnet"},
        ),
        Job(
            102,
            {cpu: 1.0, memory: 3 * GIB, gpu: [0.9, 0.0, 0.0, 0.0], **gpus, **busy},
            cores=32,
            gpus=4,
            node_cores=64,
            node_gpus=8,
            memory=256 * GIB,
            slurm={"name": EVIL, "account": EVIL_QUOTED},
        ),
        Job(
            103,
            {cpu: 1.0, memory: 2 * GIB, **busy},
            cores=16,
            slurm={"name": "mesh", "user": "bob", "account": "chem"},
        ),
        Job(
            104,
            {cpu: 15.5, memory: 50 * GIB, **busy},
            cores=16,
            slurm={"name": "md", "user": "bob", "account": "chem"},
        ),
        Job(105, {cpu: 15.5}, cores=16, measured=0.1, slurm={"name": "dark", "user": "alice"}),
        Job(
            106,
            {cpu: 7.0, memory: 50 * GIB, gpu: 0.0, **gpus, **busy},
            minutes=170,
            gpus=1,
            node_gpus=4,
            slurm={"name": "notebook", "state": "RUNNING", "ended": None, "user": "carol", "account": "bio"},
        ),
        Job(107, {cpu: 1.0}, minutes=1, slurm={"name": "hello", "user": "alice"}),
    )
    monitor.judge_due()
    monitor.jobs.write("INSERT INTO cluster VALUES (1, ?, ?)", (NOW, json.dumps(cluster())))
    people = People(monitor.jobs)
    for name, role, accounts in (
        ("alice", "user", []),
        ("bob", "user", []),
        ("manager", "user", ["chem"]),
        ("admin", "admin", []),
    ):
        people.put(name, role, accounts)
        people.set_password(name, PASSWORD)


def cluster() -> dict[str, Any]:
    """The cluster's state as sync.py stores it."""
    states = (
        "busy",
        "partly busy",
        "free",
        "reserved",
        "blocked",
        "off",
        "partly busy",
        "busy",
        "free",
        "free",
    )
    nodes = []
    for number, state in enumerate(states):
        gpus = 8 if number % 2 == 0 else 0
        cores = {"busy": 64, "partly busy": 24}.get(state, 0)
        used = {"busy": gpus, "partly busy": gpus // 2}.get(state, 0)
        blocked = gpus - used if state in ("blocked", "off", "reserved") else 0
        nodes.append(
            {
                "name": f"node{number + 1:02}",
                "state": state,
                "cores": 64,
                "cores_busy": cores,
                "memory": 512 * GIB,
                "memory_busy": 100 * GIB,
                "gpus": gpus,
                "gpus_busy": used,
                "gpus_blocked": blocked,
                "gpu_type": "h100",
                "reason": EVIL if state == "blocked" else "",
                "partitions": ["gpu"],
            }
        )
    return {
        "nodes": nodes,
        "running": 5,
        "users": 3,
        "waiting": 12,
        "waiting_cores": 640,
        "waiting_gpus": 9,
        "reasons": [["Priority", 9], ["Resources", 3]],
    }


@dataclass
class Server:
    url: str
    monitor: Monitor
    app: Any

    def token(self, name: str, *scopes: str, node: str = "") -> str:
        people = People(self.monitor.jobs)
        return people.make_token(name, list(scopes or ("jobs:read", "cluster:read")), NOW, node)


@contextmanager
def served(folder: Path, **settings: Any) -> Iterator[Server]:
    """A server with the scene while the block runs."""
    monitor = Monitor(folder, clock=lambda: NOW)
    scene(monitor)
    with serving(monitor, **settings) as server:
        yield server


@contextmanager
def serving(monitor: Monitor, **settings: Any) -> Iterator[Server]:
    """A server of a monitor while the block runs; the monitor is closed with it."""
    import uvicorn

    app = create_app(monitor, work=False, **settings)
    server = uvicorn.Server(connections.settings(app, host="127.0.0.1", port=0))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.02)
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Server(f"http://127.0.0.1:{port}", monitor, app)
    finally:
        server.should_exit = True
        thread.join(60)
        monitor.close()


def node_batch(seq: int = 1, node: str = "node01", **changes: Any) -> Batch:
    """A current batch of a node of the cluster."""
    at = int(NOW * 1000)
    samples = {
        "node": Samples(
            ["node"], {"node_memory_total_bytes": [512 * GIB], "node_memory_available_bytes": [400 * GIB]}
        ),
        "gpu": Samples(
            [f"GPU-{n}" for n in range(8)], {"gpu_utilization_ratio": [0.9, 0.8, 0.95, 0, 0.7, 1, 0.6, 0]}
        ),
    }
    settings = {
        "stream": "ab" * 16,
        "boot": "00000000-0000-4000-8000-000000000000",
        "wall_ms": at,
        "mono_ms": 60_000,
        "samples": samples,
    }
    return Batch(node, seq=seq, **{**settings, **changes})


__all__ = ["EVIL", "NOW", "PASSWORD", "PERIOD", "Run", "Server", "filed", "node_batch", "scene", "served"]
