"""The OpenMetrics page with the samples of the last round, for a Prometheus that scrapes this node.

No label contains a job id: a step is identified by its slot, as in the batches for the server.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peerway_jobs.batch import Samples
from peerway_jobs.metrics import METRICS


class Page(Collector):
    """An HTTP server with an address of its own; prometheus_client runs its threads."""

    def __init__(self, host: str, port: int) -> None:
        """Start serving. Raises OSError if the address cannot be used."""
        self._samples: dict[str, Samples] = {}
        self._lock = threading.Lock()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        self._server, self._thread = start_http_server(port, host, registry)

    def show(self, samples: dict[str, Samples]) -> None:
        """Replace the samples that the page shows."""
        with self._lock:
            self._samples = samples

    def collect(self) -> Iterator[Metric]:
        """Every metric that has a sample, in the order of the table METRICS."""
        with self._lock:
            samples = self._samples
        for metric in METRICS.values():
            part = samples.get(metric.kind)
            if part is None or metric.name not in part.values:
                continue
            family = CounterMetricFamily if metric.type == "counter" else GaugeMetricFamily
            name = f"peerway_{metric.name.removesuffix('_total')}"
            exported = family(name, metric.help, labels=[] if metric.kind == "node" else [metric.kind])
            for device, value in zip(part.devices, part.values[metric.name], strict=True):
                if value is not None:
                    exported.add_metric([] if metric.kind == "node" else [device], value)
            yield exported

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
