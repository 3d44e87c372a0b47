"""Metrics of the server itself: what it took, how it keeps up, and the space on its disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peerway_jobs.serve.cached import Cached
from peerway_jobs.serve.state import State
from peerway_jobs.store.deliveries import outcomes

DAY_S = 86_400


class ServerMetrics(Collector):
    """Read on each scrape; figures of the database and the disk at most every few seconds."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._slow = Cached(self._of_disk)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        ingest, monitor = self._state.ingest, self._state.monitor
        for name, text, value in (
            ("batches_taken", "Batches of agents that were written.", ingest.taken),
            ("batches_refused", "POSTs of agents that were refused.", ingest.refused),
            ("verdicts", "Verdicts since the server started.", monitor.verdicts),
            ("judging_seconds", "Time that these verdicts took.", monitor.judging_s),
        ):
            yield CounterMetricFamily(f"peerway_jobs_{name}", text, value)
        yield GaugeMetricFamily(
            "peerway_jobs_posts_waiting", "POSTs that wait to be written.", ingest.waiting
        )
        for name, text, answered in (
            ("slurm", "Since squeue last answered.", monitor.jobs.slurm_answered),
            ("accounts", "Since sacct last answered.", monitor.jobs.accounts_answered),
        ):
            if answered:
                age = monitor.clock() - answered
                yield GaugeMetricFamily(f"peerway_jobs_{name}_age_seconds", text, age)
        yield from self._slow.value()
        yield from self._state.requests.histogram.collect()

    def _of_disk(self) -> list[Metric]:
        monitor = self._state.monitor
        free = GaugeMetricFamily("peerway_jobs_disk_free_bytes", "Free space on the disk of the folder.")
        with suppress(OSError):
            free.add_metric([], shutil.disk_usage(monitor.folder).free)
        size = GaugeMetricFamily(
            "peerway_jobs_folder_bytes", "What the server's files take.", labels=["part"]
        )
        for part, files in (("jobs", "jobs.db*"), ("samples", "samples/*")):
            size.add_metric([part], sum(map(_bytes, monitor.folder.glob(files))))
        messages = GaugeMetricFamily(
            "peerway_jobs_messages_last_day",
            "Mails and messages to webhooks in 24 hours.",
            labels=["channel", "outcome"],
        )
        counts = outcomes(monitor.jobs.reader, monitor.clock() - DAY_S)
        for labels, count in counts.items():
            messages.add_metric(labels, count)
        return [free, size, messages]


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it was deleted at this moment
        return 0
