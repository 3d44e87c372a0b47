"""The measured curve that messages are judged by: the cost of a path at each size, from a route table or
from records of `peerway bench`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.report.routes import read_table

LATENCIES = ("put_latency", "get_latency", "pingpong", "send_latency")


@dataclass(frozen=True)
class Curve:
    """What one path costs: sizes in bytes, times in ns."""

    path: str
    op: str  # put, get, or send for a peer such as an MPI
    sizes: NDArray[Any]
    ns: NDArray[Any]

    def at(self, sizes: NDArray[Any]) -> NDArray[Any]:
        """The cost of sizes; beyond the last the rate stays."""
        inside = np.interp(sizes, self.sizes, self.ns)
        return np.asarray(np.where(sizes > self.sizes[-1], self.ns[-1] * sizes / self.sizes[-1], inside))


def of_table(file: Path) -> list[Curve]:
    """The curves of contiguous puts and gets. Where classes of pairs differ, the cheapest, which none should
    beat. Raises TableError and OSError.
    """
    found: dict[tuple[str, str], dict[float, float]] = {}
    for line in read_table(file).lines:
        if line.shape == "contiguous" and line.op in ("put", "get"):
            points = found.setdefault((line.path, line.op), {})
            for size, us in line.corners:
                points[size] = min(us, points.get(size, us))
    return [_curve(path, op, points) for (path, op), points in found.items()]


def of_records(file: Path) -> list[Curve]:
    """The curves of records of latency; a peer's records (openmpi) judge its messages. Raises OSError,
    ValueError.
    """
    found: dict[tuple[str, str], dict[float, float]] = {}
    for line in file.read_text().splitlines():
        record = json.loads(line)
        if record.get("test") in LATENCIES and record.get("shape") == "contiguous":
            points = found.setdefault((str(record["via"]), str(record["op"])), {})
            size, us = float(record["bytes"]), float(record["p50_us"])
            points[size] = min(us, points.get(size, us))
    return [_curve(path, op, points) for (path, op), points in found.items()]


def _curve(path: str, op: str, points: dict[float, float]) -> Curve:
    sizes = sorted(points)
    return Curve(path, op, np.array(sizes, float), np.array([points[size] * 1e3 for size in sizes]))
