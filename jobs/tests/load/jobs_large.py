"""Pages of a large centre: ten million finished jobs in PostgreSQL, and a day-long job whose samples are in
VictoriaMetrics.

    python jobs/tests/load/jobs_large.py --jobs 10000000 --out results/jobs/large.jsonl

Everything runs on this host: a private PostgreSQL with its defaults, and Debian's VictoriaMetrics.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from jobs_load import connected
from jobs_many import TIMED, timed
from jobs_node import CORES, GPUS, batch, value_of
from jobs_sustained import DATABASE, of_postgres, victoria_metrics
from postgres_server import PostgresServer, postgres

from peerway_jobs.batch import Facts, Gpu, Interval
from peerway_jobs.metrics import of_kind
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.app import create_app
from peerway_jobs.serve.people import People
from peerway_jobs.store.database import set_address
from peerway_jobs.store.promql import PromStore
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Filed

YEARS = 3
USERS = 1192
# Made in the database itself, in a minute or two. Each job has a script of 150 bytes; only their own page
# shows the verdict and the samples of a job, so these have none.
_FILL = """
INSERT INTO jobs (job, restart, "user", account, name, partition, state, submitted, started, ended, nodes,
  cores, gpus, node_list, node_type, script, verdict, tag, idle_core_hours, idle_gpu_hours, judged)
SELECT n::text, 0, 'user' || (random() * {users})::int, 'a' || n % 90, 'job-' || n, 'gpu', 'COMPLETED',
  began - 600, began, began + random() * 86400, 1, 8, n % 3, 'node' || n % 3000, 'h100',
  repeat('srun python train.py --data /lustre ', 4),
  CASE WHEN random() < 0.5 THEN 'efficient' ELSE 'inefficient' END, '', random() * 40, random() * 9,
  began + 90000
FROM (SELECT n, {now} - random() * {seconds} AS began FROM generate_series(1, {jobs}) AS n) AS times
"""


def many(server: PostgresServer, folder: Path, count: int) -> dict[str, Any]:
    """My jobs, statistics and the administrator's list with so many finished jobs."""
    from fastapi.testclient import TestClient

    now, url = time.time(), server.new()
    set_address(folder, url)
    monitor = Monitor(folder, clock=lambda: now)
    begun = time.monotonic()
    indexes = server.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'jobs' "
        "AND schemaname = current_schema() AND indexname != 'jobs_pkey'", url,
    )  # fmt: skip
    for name, _ in indexes:  # they are made at once afterwards, as a restored dump does
        server.execute(f"DROP INDEX {name}", url)
    server.execute(_FILL.format(users=USERS - 1, now=now, seconds=YEARS * 365 * 86_400, jobs=count), url)
    for _, definition in indexes:
        server.execute(definition, url)
    server.execute("VACUUM ANALYZE jobs", url)
    filled_s = time.monotonic() - begun
    size = server.execute("SELECT pg_total_relation_size('jobs')", url)[0][0]
    print(f"{count:,} jobs in {filled_s:.0f} s, {size >> 20:,} MiB", flush=True)
    people = People(monitor.jobs)
    people.put("admin", "admin")
    me = {"Authorization": f"Bearer {people.make_token('user7', ['jobs:read'], now)}"}
    admin = {"Authorization": f"Bearer {people.make_token('admin', ['jobs:read', 'admin'], now)}"}
    pages = {
        "my_jobs": ("/jobs", me),
        "my_inefficient_jobs": ("/jobs?verdict=inefficient", me),
        "all_jobs": ("/jobs?everyone=true", admin),
        "wasted_7_days": ("/admin/jobs?days=7", admin),
        "wasted_30_days": ("/admin/jobs?days=30", admin),
        "statistics_30_days": ("/statistics?days=30", admin),
    }
    with TestClient(create_app(monitor, work=False)) as client:
        begun = time.perf_counter()
        client.get("/jobs", headers=me)
        first_s = time.perf_counter() - begun
        times = {}
        for name, (path, headers) in pages.items():
            before = of_postgres(server.pid)["cpu_s"]
            times[name] = timed(lambda path=path, headers=headers: client.get(path, headers=headers))
            spent = of_postgres(server.pid)["cpu_s"] - before  # of all requests of `timed`
            times[name]["postgresql_cpu_s"] = round(spent / TIMED, 3)
    monitor.close()
    return {
        "test": "many jobs in PostgreSQL", "jobs": count, "users": USERS, "years": YEARS,
        "bytes_on_disk": size, "filled_s": filled_s, "my_jobs_first_s": first_s, **times,
    }  # fmt: skip


def imported(node: str, start: int) -> int:
    """Put 24 h of a node into VictoriaMetrics, all metrics every 10 s; returns the number of samples."""
    random_of, samples = np.random.default_rng(1), 0
    times = np.arange(start * 1000 + 10_000, (start + 86_400) * 1000 + 1, 10_000)
    lines = []
    for kind, part in batch(node, 1, start * 1000).samples.items():
        for device in part.devices:
            for metric in of_kind(kind):
                labels = {"__name__": metric.name, "node": node, "device": device}
                values = value_of(metric.name, times, random_of).tolist()
                lines.append(json.dumps({"metric": labels, "values": values, "timestamps": times.tolist()}))
                samples += times.size
    body = "\n".join(lines).encode()
    with urllib.request.urlopen(urllib.request.Request(f"http://{DATABASE}/api/v1/import", body)):
        return samples


def page(server: PostgresServer, folder: Path) -> dict[str, Any]:
    """The page and the graphs of a job of 24 h on 2 nodes with 8 GPUs and 64 cores each."""
    from fastapi.testclient import TestClient

    set_address(folder, server.new())
    start = int(time.time()) // 3600 * 3600 - 25 * 3600
    end = float(start + 86_400)
    monitor = Monitor(folder, samples=PromStore(f"http://{DATABASE}"), clock=lambda: end + 600)
    names, count = ["node0", "node1"], 0
    for node in names:
        count += imported(node, start)
        first = batch(node, 1, start * 1000)
        gpus = first.samples["gpu"].devices
        first.intervals = [
            Interval("a", 1, start * 1000, int(end * 1000), user="admin", cpus=CORES,
                     cores=list(range(CORES)), gpus=gpus, memory_bytes=1 << 39),
            Interval("s", 1, start * 1000, int(end * 1000), step="0", slot=0),
        ]  # fmt: skip
        first.facts = Facts(CORES, 1 << 39, 10_000, "v2", "1", gpus=[Gpu(uuid) for uuid in gpus])
        monitor.jobs.file([Filed(first, 0, b"", 10_000)])
    monitor.jobs.update([
        Run("1", user="admin", state="COMPLETED", started=float(start), ended=end, nodes=2, cores=2 * CORES,
            gpus=2 * GPUS, node_list="node0,node1", memory=float(1 << 40))
    ])  # fmt: skip
    monitor.jobs.newest = dict.fromkeys(names, int(end * 1000) + 1)  # nobody is waited for
    time.sleep(2)  # samples of the last second cannot be found yet
    before, begun = time.process_time(), time.perf_counter()
    monitor.judge_due()
    judged = {"cpu_s": time.process_time() - before, "wall_s": time.perf_counter() - begun}
    people = People(monitor.jobs)
    people.put("admin", "admin")
    admin = {"Authorization": f"Bearer {people.make_token('admin', ['jobs:read', 'admin'], end)}"}
    with TestClient(create_app(monitor, work=False)) as client:
        times = {
            name: timed(lambda path=path: client.get(path, headers=admin))
            for name, path in (("page", "/jobs/1"), ("graphs", "/api/v1/jobs/1/series"))
        }
    monitor.close()
    return {
        "test": "job page from PostgreSQL and VictoriaMetrics", "hours": 24, "gpus": 2 * GPUS,
        "cores": 2 * CORES, "samples": count, "verdict": judged, **times,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000_000)
    parser.add_argument("--only", choices=("jobs", "page"))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    where = {
        "cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine(),
        "command": " ".join(["python", *sys.argv]),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, postgres("maintenance_work_mem=512MB") as server:
        for name in ("page", "jobs"):
            if options.only not in (None, name):
                continue
            data = Path(folder, name)
            data.mkdir()
            if name == "jobs":
                record = many(server, data, options.jobs)
            else:
                with victoria_metrics(Path(folder) / "series"):
                    connected(int(DATABASE.rpartition(":")[2])).close()
                    record = page(server, data)
            record |= {**where, "load": os.getloadavg()[0], "time": time.time()}
            print(json.dumps(record, indent=1), flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
