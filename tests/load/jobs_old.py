"""What a server of jobs bears once it is old, and of jobs that are long: steps of jobs_load.py."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from jobs_node import CORES, GPUS, batch, fill

from peerway.jobs.batch import encode
from peerway.jobs.monitor import Monitor
from peerway.jobs.store.pending import EVERY, LONGER
from peerway.jobs.store.runs import Run
from peerway.jobs.store.samples import DAY_MS, Filed, Policy

DAY = 1_790_000_000 // 86_400 * 86_400
NODES = 8


def thinning(folder: Path) -> dict[str, Any]:
    """The CPU time to thin a day of one node, which all nodes need once a day; and how long a batch of
    another node waits meanwhile.
    """
    monitor = Monitor(folder)
    for number in range(NODES):
        fill(monitor, f"node{number}", DAY)
    end, waits = threading.Event(), list[float]()

    def put() -> None:
        seq = 0
        while not end.is_set():
            seq += 1
            late = batch("other", seq, (DAY + 40 * 86_400) * 1000 + seq)
            filed = [Filed(late, 0, encode(late), 10_000)]
            begun = time.perf_counter()
            monitor.samples.put(filed)
            waits.append(time.perf_counter() - begun)
            end.wait(0.05)

    other = threading.Thread(target=put)
    before, begun = time.process_time(), time.perf_counter()
    monitor.samples.tidy(DAY * 1000 + 2 * DAY_MS, Policy(raw_days=1))
    spent, passed = time.process_time() - before, time.perf_counter() - begun
    # A second day, now with batches that come in between.
    for number in range(NODES):
        fill(monitor, f"node{number}", DAY + 86_400)
    other.start()
    monitor.samples.tidy(DAY * 1000 + 3 * DAY_MS, Policy(raw_days=1))
    end.set()
    other.join()
    monitor.close()
    return {
        "test": "thin",
        "cpu_s_a_node_and_day": spent / NODES,
        "wall_s_a_node_and_day": passed / NODES,
        "of_one_core_for_1000_nodes": spent / NODES * 1000 / 86_400,
        "batches_meanwhile": len(waits),
        "longest_wait_of_a_batch_s": max(waits),
    }


def judging(folder: Path) -> dict[str, Any]:
    """The CPU time of a verdict on a job that has a whole node since a day and runs on."""
    now = DAY + 86_400.0
    monitor = Monitor(folder, clock=lambda: now)
    fill(monitor, "a", DAY, ended=False)
    run = Run(
        "1", user="admin", started=float(DAY), nodes=1, cores=CORES, gpus=GPUS, memory=5e11, node_list="a"
    )
    monitor.jobs.update([run])
    before = time.process_time()
    count = monitor.judge_due()
    spent = time.process_time() - before
    again = max(EVERY * monitor.jobs.period(), 86_400 * LONGER)
    monitor.close()
    return {
        "test": "judging",
        "hours": 24,
        "verdicts": count,
        "cpu_s_a_verdict": spent,
        "again_after_s": again,
        "of_one_core_for_1000_such_jobs": 1000 * spent / again,
    }
