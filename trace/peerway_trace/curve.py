"""The measured curve by which messages are judged: the cost of a path at each size, from a route table or
from records of `peerway bench`.

A single message is judged by a test of latency, a burst by a test of bandwidth if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common import atomic_file
from peerway_measure.records import MOST_BYTES
from peerway_measure.report.routes import read_table
from peerway_trace.messages import Messages
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

LATENCIES = ("put_latency", "get_latency", "pingpong", "mpi_latency")
BANDWIDTHS = ("put_bw", "get_bw", "mpi_bw")
# MPIs: their names as the source of a trace, and the names of their launchers in records.
STACKS = {"openmpi": ("openmpi", "open mpi", "openrte"), "mpich": ("mpich", "hydra")}
PARTS = ("plan", "plan slots", "plan straight", "split")
OPS = {"put": (Kind.PUT,), "get": (Kind.GET,), "send": (Kind.SEND, Kind.ISEND)}


@dataclass(frozen=True)
class Curve:
    """The cost of one path: sizes in bytes, and times of a message in ns."""

    path: str
    op: str  # put, get, or send for messages of an MPI
    sizes: NDArray[Any]
    ns: NDArray[Any]
    stack: str = ""  # for sends: the MPI, one of STACKS
    streamed: bool = False  # the cost is that of one of many messages in a row

    def at(self, sizes: NDArray[Any]) -> NDArray[Any]:
        """The cost at these sizes; beyond the last size the rate stays the same."""
        inside = np.interp(sizes, self.sizes, self.ns)
        return np.asarray(np.where(sizes > self.sizes[-1], self.ns[-1] * sizes / self.sizes[-1], inside))


def of_table(file: Path) -> list[Curve]:
    """The curves of contiguous puts and gets. If pair classes differ, the cheapest one counts, because no
    message should be faster. Raises TableError and OSError.
    """
    result: dict[tuple[str, str], dict[float, float]] = {}
    for line in read_table(file).lines:
        if line.shape == "contiguous" and line.op in ("put", "get"):
            points = result.setdefault((line.path, line.op), {})
            for size, us in line.corners:
                points[size] = min(us, points.get(size, us))
    return [_curve(path, op, points) for (path, op), points in result.items()]


def of_records(file: Path) -> list[Curve]:
    """The curves of records of latency and bandwidth. Records of an MPI (the peer openmpi, apps/mpi) give
    curves for its messages. Raises OSError, and ValueError with the line that is not a record.
    """
    result: dict[tuple[str, str, str, bool], dict[float, float]] = {}
    for number, line in enumerate(atomic_file.text(file, MOST_BYTES).splitlines(), start=1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("it is no JSON object")
            _add(result, record)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise ValueError(f"{file}:{number}: not a record of `peerway bench`: {error}") from error
        except KeyError as error:
            raise ValueError(
                f"{file}:{number}: not a record of `peerway bench`: {error} is missing"
            ) from error
    return [
        _curve(path, op, points, stack, streamed) for (path, op, stack, streamed), points in result.items()
    ]


def _add(result: dict[tuple[str, str, str, bool], dict[float, float]], record: dict[str, Any]) -> None:
    """Add a point to a curve, if the record is of a test that gives one."""
    streamed = record["test"] in BANDWIDTHS
    if not (streamed or record["test"] in LATENCIES) or record["shape"] != "contiguous":
        return
    stack = _stack(record)
    op = "send" if stack else str(record["op"])
    points = result.setdefault((str(record["via"]), op, stack, streamed), {})
    size = float(record["bytes"])
    us = size / float(record["bandwidth_MBps"]) if streamed else float(record["p50_us"])
    points[size] = min(us, points.get(size, us))


def _stack(record: dict[str, Any]) -> str:
    """The MPI whose messages a record measures; empty if it measures none."""
    if record["via"] in STACKS:
        return str(record["via"])
    text = str(record.get("extra", {}).get("mpi", "")).lower()
    if not str(record["test"]).startswith("mpi_"):
        return ""
    return next((name for name, words in STACKS.items() if any(word in text for word in words)), "unknown")


def _curve(path: str, op: str, points: dict[float, float], stack: str = "", streamed: bool = False) -> Curve:
    sizes = sorted(points)
    ns = np.array([points[size] * 1e3 for size in sizes])
    return Curve(path, op, np.array(sizes, float), ns, stack, streamed)


def path_of(where: str) -> str:
    """The path or paths in the text `where`, which may also say that the message was part of something
    ("plan, peer/shm").
    """
    method, comma, path = where.partition(", ")
    return path if comma and method in PARTS else where


def stack_of(trace: Trace) -> str:
    """The MPI whose calls a trace has; empty if it has none, or one that is not known."""
    return next((thread.source for thread in trace.threads if thread.source in STACKS), "")


def ambiguous(trace: Trace, curves: Sequence[Curve]) -> list[str]:
    """The paths of this trace's MPI that have curves, if there are several, because the trace does not say
    which of them the program used.
    """
    stack = stack_of(trace)
    paths = sorted({curve.path for curve in curves if curve.op == "send" and stack and curve.stack == stack})
    return paths if len(paths) > 1 else []


def curve_of(
    trace: Trace, curves: Sequence[Curve], op: str, path: str, streamed: bool = False
) -> Curve | None:
    """The curve for the messages of a path or communicator. If no test of bandwidth was measured, the curve
    for a burst is that of single messages.
    """
    if op == "send":
        stack = "" if ambiguous(trace, curves) else stack_of(trace)
        fit = [curve for curve in curves if curve.op == "send" and stack and curve.stack == stack]
    else:
        fit = [curve for curve in curves if curve.op == op and curve.path == path_of(path)]
    exact = next((curve for curve in fit if curve.streamed == streamed), None)
    return exact or next((curve for curve in fit if streamed), None)


def streamed_ns(trace: Trace, sent: Messages, curves: Sequence[Curve]) -> NDArray[Any]:
    """The time of each message in a stream of similar ones; NaN if no curve has it."""
    expected = np.full(len(sent), np.nan)
    where, kinds = trace["where"][sent.event], trace["kind"][sent.event]
    for name in np.unique(where):
        for op, wanted in OPS.items():
            which = (where == name) & np.isin(kinds, wanted)
            curve = curve_of(trace, curves, op, trace.names[name], streamed=True) if which.any() else None
            if curve is not None:
                expected[which] = curve.at(sent.bytes[which].astype(float))
    return expected
