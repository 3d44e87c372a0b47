"""Measures a server that is old, or has long jobs: steps of jobs_load.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jobs_node import CORES, GPUS, batch, fill

from peerway_jobs.batch import encode
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.pending import EVERY, LONGER
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import DAY_MS, Filed, Thinning

DAY = 1_790_000_000 // 86_400 * 86_400
NODES = 8


def thinning(folder: Path) -> dict[str, Any]:
    """The CPU time to thin a day of one node, which every node needs once a day.

    Also how long a batch of another node waits meanwhile.
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
    monitor.samples.tidy(DAY * 1000 + 2 * DAY_MS, Thinning(raw_days=1))
    spent, passed = time.process_time() - before, time.perf_counter() - begun
    # A second day, now with batches that arrive meanwhile.
    for number in range(NODES):
        fill(monitor, f"node{number}", DAY + 86_400)
    other.start()
    monitor.samples.tidy(DAY * 1000 + 3 * DAY_MS, Thinning(raw_days=1))
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


def big_job(monitor: Monitor, start: int) -> Run:
    """A job of 24 h on 2 nodes with 8 GPUs and 64 cores each, sampled every 10 s, all sealed."""
    for node in ("a", "b"):
        fill(monitor, node, start)
    run = Run(
        "1", user="admin", name="big", state="COMPLETED", started=float(start), ended=start + 86_400.0,
        nodes=2, cores=2 * CORES, gpus=2 * GPUS, memory=1e12, node_list="a,b",
    )  # fmt: skip
    monitor.jobs.update([run])
    return run


def beside(folder: Path, nodes: int) -> dict[str, Any]:
    """Write batches of `nodes` nodes, one per 10 s each, while nothing else happens, jobs are judged, or a
    day is thinned.

    Returns the CPU time in each case, and how late a batch is on disk.
    """
    now = [DAY + 86_400.0]
    monitor = Monitor(folder, clock=lambda: now[0])
    for number in range(NODES):
        fill(monitor, f"node{number}", DAY)
    monitor.jobs.update(
        Run(
            str(number + 1), user="admin", started=float(DAY), nodes=1, cores=CORES, gpus=GPUS, memory=5e11,
            node_list=f"node{number}",
        )
        for number in range(NODES)
    )  # fmt: skip
    feed = Feed(monitor, nodes)
    feed.start()
    found = {
        "alone": feed.during(lambda: time.sleep(20)),
        "judging": feed.during(monitor.judge_due),
        "thinning": feed.during(lambda: monitor.samples.tidy(DAY * 1000 + 2 * DAY_MS, Thinning(raw_days=1))),
    }
    feed.stop()
    verdicts = monitor.jobs.reader.execute("SELECT count(*) FROM verdicts").fetchone()[0]
    monitor.close()
    return {"test": "beside ingest", "nodes": nodes, "verdicts": verdicts, "days_thinned": NODES, **found}


class Feed(threading.Thread):
    """The server's writing thread, fed by agents that send evenly over the 10 s."""

    def __init__(self, monitor: Monitor, nodes: int) -> None:
        super().__init__(daemon=True)
        self._monitor, self._nodes = monitor, nodes
        self._made = [batch(f"other{number}", 1, 0) for number in range(50)]
        self._late: list[float] = []
        self._ended = threading.Event()

    def run(self) -> None:
        begun, written = time.perf_counter(), 0
        while not self._ended.wait(0.005):
            come = int((time.perf_counter() - begun) * self._nodes / 10)
            if come == written:
                continue
            filed = [self._filed(seq) for seq in range(written + 1, come + 1)]
            self._monitor.samples.put(filed)
            self._monitor.jobs.file(filed)
            done = time.perf_counter() - begun
            self._late += [done - seq * 10 / self._nodes for seq in range(written + 1, come + 1)]
            written = come

    def _filed(self, seq: int) -> Filed:
        made = self._made[seq % len(self._made)]
        made.seq, made.wall_ms = seq, (DAY + 40 * 86_400) * 1000 + seq
        return Filed(replace(made), 0, encode(made), 10_000)

    def during(self, action: Callable[[], object]) -> dict[str, float]:
        """Run an action; returns the CPU time of all threads meanwhile, and how late batches were."""
        first, before, begun = len(self._late), time.process_time(), time.perf_counter()
        action()
        spent, passed = time.process_time() - before, time.perf_counter() - begun
        late = sorted(self._late[first:])
        return {
            "cpu_s": spent,
            "wall_s": passed,
            "batches": len(late),
            "p50_ms": late[len(late) // 2] * 1000,
            "p99_ms": late[len(late) * 99 // 100] * 1000,
            "max_ms": late[-1] * 1000,
        }

    def stop(self) -> None:
        """Stop writing."""
        self._ended.set()
        self.join()


def judging(folder: Path) -> dict[str, Any]:
    """The CPU time of a verdict on a job that has held a whole node for a day and is still running."""
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
