"""Goes through the jobs without measurements, a node and a day at a time, and stores what exporters
measured.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from peerway_jobs.batch import Batch, Samples, encode
from peerway_jobs.batch_check import is_node_name
from peerway_jobs.history.exporters import NodeHistory, ask, by_time, gpus_of, steps_of
from peerway_jobs.history.importing import file_batches
from peerway_jobs.history.prometheus import Prometheus
from peerway_jobs.history.totals import BOOT, LEAST_S, intervals
from peerway_jobs.hosts import expand_hosts
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.runs import Run, of_row
from peerway_jobs.store.samples import Filed

DAY_S = 86_400


@dataclass
class Replayed:
    """What came of it."""

    runs: list[Run] = field(default_factory=list)  # jobs without measurements before
    measured: set[tuple[str, int]] = field(default_factory=set)  # those of them that have some now
    days: int = 0  # of nodes that were asked for


def replay_exporters(
    monitor: Monitor,
    server: Prometheus,
    since: float,
    step: int,
    label: str,
    tell: Callable[[str, int], None],
) -> Replayed:
    """Import what exporters measured of the jobs that ended since a time. `tell` gets each day and its
    number of nodes. Raises PrometheusFailed.
    """
    replayed = Replayed(list(_without_measurements(monitor, since)))
    days = _days(replayed.runs)
    for day in sorted(days):
        tell(str(day), len(days[day]))
        for node, runs in sorted(days[day].items()):
            replayed.days += 1
            start, end = day * DAY_S, (day + 1) * DAY_S
            history = ask(server, node, label, start, end, step)
            file_batches(monitor, _batches(node, history, runs, server.url, start, end, step, replayed))
    return replayed


def _without_measurements(monitor: Monitor, since: float) -> Iterator[Run]:
    rows = monitor.jobs.reader.execute(
        "SELECT * FROM jobs WHERE ended >= ? AND started IS NOT NULL AND NOT provisional AND restart >= 0 "
        "ORDER BY ended",
        (since,),
    ).fetchall()
    for run in map(of_row, rows):
        if run.unreadable or run.elapsed(0.0) < LEAST_S or monitor.jobs.intervals(run):
            continue
        yield run


def _days(runs: Sequence[Run]) -> dict[int, dict[str, list[Run]]]:
    """The runs of each node on each day."""
    days: defaultdict[int, defaultdict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        assert run.started is not None
        assert run.ended is not None
        for node in filter(is_node_name, expand_hosts(run.node_list)):
            for day in range(int(run.started // DAY_S), int(run.ended // DAY_S) + 1):
                days[day][node].append(run)
    return {day: dict(nodes) for day, nodes in days.items()}


def _batches(
    node: str,
    history: NodeHistory,
    runs: Sequence[Run],
    url: str,
    start: float,
    end: float,
    step: int,
    replayed: Replayed,
) -> Iterator[Filed]:
    """The measurements of a node on a day, as if its agent had sent them."""
    times: defaultdict[int, dict[str, Samples]] = defaultdict(dict)
    for uuid, figures in history.gpus.items():
        for time, values in by_time(figures, start, end).items():
            times[time].setdefault("gpu", Samples()).add(uuid, values)
    allocations = []
    for run in runs:
        gpus = gpus_of(history, run)
        steps = steps_of(history, run, [each for each in runs if each is not run])
        rows = by_time(steps, max(start, (run.started or 0.0) - step), min(end, run.ended or 0.0))
        for time, values in rows.items():
            times[time].setdefault("step", Samples()).add(run.job, values)
        if gpus or rows:
            allocations += intervals(run, gpus, has_steps=bool(rows))
            replayed.measured.add((run.job, run.restart))
    jobs = " ".join(f"{run.job}.{run.restart}" for run in runs)
    stream = hashlib.sha256(f"{url} {node} {start} {step} {jobs}".encode()).hexdigest()[:32]
    for seq, time in enumerate(sorted(times), start=1):
        batch = Batch(node, stream, seq, BOOT, time * 1000, time * 1000, samples=times[time])
        batch.intervals = allocations if seq == 1 else []
        yield Filed(batch, 0, encode(batch), step * 1000)
