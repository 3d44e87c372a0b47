"""How long requests take, by the part of the server and the kind of answer."""

from __future__ import annotations

from prometheus_client import Histogram

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# The first that the path begins with; everything else is a page.
_PARTS = {
    "/api/v1/agent/": "agents", "/api/": "api", "/static/": "files", "/plotly/": "files",
    "/metrics": "metrics", "/healthz": "metrics",
}  # fmt: skip


class RequestTimes:
    """A histogram of the times to answer. Paths are no labels, since anybody may ask for any path."""

    def __init__(self) -> None:
        self.histogram = Histogram(
            "peerway_jobs_request_seconds",
            "Time to answer a request.",
            ["part", "code"],
            registry=None,
            buckets=_BUCKETS,
        )

    def saw(self, path: str, status: int, seconds: float) -> None:
        """Count a request that was answered with this HTTP status."""
        part = next((part for begin, part in _PARTS.items() if path.startswith(begin)), "pages")
        self.histogram.labels(part, f"{status // 100}xx").observe(seconds)
