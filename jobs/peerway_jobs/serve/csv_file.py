"""Writes a list of jobs as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from datetime import UTC, datetime

from peerway_common.printable import printable
from peerway_jobs.store.runs import Run

COLUMNS = (
    "job", "array", "restart", "user", "account", "project", "name", "partition", "state", "exit_code",
    "reason", "submitted", "started", "ended", "time_limit", "nodes", "node_list", "cores", "gpus",
    "gpu_type", "memory", "verdict", "tag", "cpu_efficiency", "gpu_efficiency", "memory_efficiency",
    "idle_core_hours", "idle_gpu_hours",
)  # fmt: skip
_TIMES = ("submitted", "started", "ended")


def as_csv(runs: Iterable[Run]) -> str:
    """One row per run; times in UTC."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for run in runs:
        writer.writerow([cell(name, getattr(run, name)) for name in COLUMNS])
    return text.getvalue()


def cell(name: str, value: object) -> object:
    """A value as a cell; `name` is that of its column."""
    if value is None:
        return ""
    if name in _TIMES and isinstance(value, (int, float)):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, str):
        shown = printable(value)
        # A spreadsheet would evaluate a text that begins like this.
        return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
    return value
