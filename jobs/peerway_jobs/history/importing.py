"""Stores what was read of the past, and judges it. A job that is known already is not changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from peerway_jobs.history.jobstats import BadJobstats, totals_of
from peerway_jobs.history.sacct import Past, PastJob
from peerway_jobs.history.totals import NodeTotals, batches
from peerway_jobs.hosts import expand_hosts
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Filed
from peerway_jobs.verdicts import keep

T = TypeVar("T")
SAME_S = 30.0  # by which two records of one start may differ
_AT_ONCE = 500  # runs or batches in one transaction


@dataclass
class Imported:
    """What an import did."""

    runs: list[Run] = field(default_factory=list)
    known: int = 0
    with_totals: int = 0  # of Jobstats
    with_cpu_time: int = 0  # of TotalCPU
    unreadable: list[str] = field(default_factory=list)


def import_past(monitor: Monitor, past: Past) -> Imported:
    """Store the jobs of a file, and the measurements that follow from their totals."""
    imported = Imported(unreadable=list(past.unreadable))
    new = list(_new(monitor, past.jobs, imported))
    for several in _in_parts(new, _AT_ONCE):
        monitor.jobs.update(job.run for job in several)
        file_batches(monitor, _measurements(several, imported))
    imported.runs = [job.run for job in new]
    return imported


def _new(monitor: Monitor, jobs: Iterable[PastJob], imported: Imported) -> Iterator[PastJob]:
    """The jobs that are not known yet. Runs of a requeued job are numbered in the order of their starts."""
    of_job: defaultdict[str, list[PastJob]] = defaultdict(list)
    for job in jobs:
        of_job[job.run.job].append(job)
    for number, several in of_job.items():
        starts = monitor.jobs.starts(number)
        restart = max(monitor.jobs.restarts(number), default=-1)
        for job in sorted(several, key=lambda each: each.run.started or 0.0):
            start = job.run.started or 0.0
            if any(abs(start - each) <= SAME_S for each in starts):
                imported.known += 1
                continue
            starts.append(start)
            restart = max(restart, -1) + 1
            yield replace(job, run=replace(job.run, restart=restart))


def _measurements(jobs: Sequence[PastJob], imported: Imported) -> Iterator[Filed]:
    for job in jobs:
        totals: dict[str, NodeTotals] = {}
        try:
            totals = totals_of(job.admin_comment)
        except BadJobstats as error:
            imported.unreadable.append(f"job {job.run.job}: its totals of Jobstats: {error}")
        imported.with_totals += bool(totals)
        hosts = expand_hosts(job.run.node_list)
        if not totals and job.cpu_seconds is not None and len(hosts) == 1:
            totals = {next(iter(hosts)): NodeTotals(job.cpu_seconds)}
            imported.with_cpu_time += 1
        yield from batches(job.run, totals)


def file_batches(monitor: Monitor, several: Iterable[Filed]) -> None:
    """Store batches: first their samples, as the server does."""
    for part in _in_parts(several, _AT_ONCE):
        monitor.samples.put(part)
        monitor.jobs.file(part)


def judge_all(monitor: Monitor, runs: Iterable[Run]) -> int:
    """Judge runs by the rules in force; returns their number."""
    count, now = 0, monitor.clock()
    for run in runs:
        stored = monitor.jobs.run(run.job, run.restart)
        if stored is not None:
            keep(monitor.jobs, stored, monitor.judge(stored), now)
            count += 1
    return count


def _in_parts(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part
