"""Which share of a run's time its transfers take, by operation, path and size, for `peerway worth`.

A rank's time counts if the thread that has most of its messages is in a call while one to or from that rank
moves. What moves while the thread computes costs nothing, and does not count. If several move at once, the
time is divided among them in proportion to how long each moves during calls.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peerway_trace.curve import path_of, stack_of
from peerway_trace.lanes import Cover, Lanes, lanes
from peerway_trace.messages import SENDS, Messages, match, match_signals, messages, size_classes
from peerway_trace.regions import system_threads
from peerway_trace.rings import Kind
from peerway_trace.store import BadTrace, Trace

COLUMNS = ("application", "node_type", "trace", "test", "path", "bytes", "share", "waiting")
OTHER = "other"
_GETS = (Kind.GET, Kind.RMA_GET)
_RMA = (Kind.RMA_PUT, Kind.RMA_GET)


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the ranks' time in transfers of one kind while they move, and while a rank waits in a call
    because the other side is not ready. `bytes` is the mean size.
    """

    test: str
    path: str
    bytes: int
    share: float
    waiting: float


def shares(trace: Trace) -> list[Share]:
    """The shares of a trace, the largest first. Raises BadTrace if events are missing."""
    _check(trace)
    outer = lanes(trace)
    sent = messages(trace, match(trace), match_signals(trace))
    keys = _keys(trace, sent)
    names = sorted(set(keys))
    number = {key: i for i, key in enumerate(names)}
    of_message = np.array([number[key] for key in keys], np.int64)
    moving, waiting = np.zeros(len(names)), np.zeros(len(names))
    for rank in trace.ranks:
        for at, times in zip((moving, waiting), _of_rank(trace, sent, outer, rank), strict=True):
            np.add.at(at, of_message, times)
    whole = trace.length * len(trace.ranks)
    several = []
    for i, (test, path, _) in enumerate(names):
        size = round(float(sent.bytes[of_message == i].mean()))
        several.append(Share(test, path, size, float(moving[i]) / whole, float(waiting[i]) / whole))
    return sorted((s for s in several if s.share or s.waiting), key=lambda s: -s.share)


def _check(trace: Trace) -> None:
    """Refuse a trace from which shares would be wrong."""
    level = trace.about.get("level") or "full"
    if level != "full":
        raise BadTrace(
            f"it was recorded at the level {level}, which has no times of single messages; record it with "
            "--level full"
        )
    if trace.dropped:
        raise BadTrace(
            f"{trace.dropped:,} of its events are lost, so shares of its time would be wrong; record with "
            "more --events, or a shorter time (--from, --for)"
        )
    if not trace.ranks or not trace.length:
        raise BadTrace("it has no events of a rank; was the program run without Peerway and without MPI?")


def _keys(trace: Trace, sent: Messages) -> list[tuple[str, str, int]]:
    """The operation, path and class of size of each message."""
    stack = stack_of(trace) or "mpi"
    kinds, where = trace["kind"][sent.event], trace["where"][sent.event]
    classes = size_classes(sent.bytes)
    tests = {int(kind): "send" if kind in SENDS else "get" if kind in _GETS else "put" for kind in Kind}
    paths = {int(name): path_of(trace.names[name]) for name in np.unique(where)}
    # As `peerway bench --peers` calls them.
    of_mpi = {int(kind): f"{stack}/rma" if kind in _RMA else stack for kind in (*SENDS, *_RMA)}
    return [
        (tests[kind], of_mpi.get(kind) or paths[name], size)
        for kind, name, size in zip(kinds.tolist(), where.tolist(), classes.tolist(), strict=True)
    ]


def _of_rank(
    trace: Trace, sent: Messages, outer: Lanes, rank: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each message how much of this rank's time it takes while it moves, and while the rank waits."""
    times = np.zeros(len(sent)), np.zeros(len(sent))
    own = np.flatnonzero((sent.source == rank) | (sent.target == rank))
    calls = _calls(trace, sent, outer, rank, own)
    if calls is None:
        return times
    start, end = sent.end[own] - sent.moving[own], sent.end[own]
    posted = np.where(sent.received[own] >= 0, trace["begin"][sent.received[own]], start)
    issues = trace.rank[sent.event[own]] == rank
    waits = np.minimum(np.where(issues, sent.begin[own], posted), start)
    moves, both = Cover(start, end).shared(calls), Cover(waits, end).shared(calls)
    for at, whole, begin, until in ((0, moves, start, end), (1, both - moves, waits, start)):
        parts = calls.between(begin, until).astype(float)
        if parts.sum():
            times[at][own] = parts * (whole / parts.sum())
    return times


def _calls(trace: Trace, sent: Messages, outer: Lanes, rank: int, own: NDArray[np.int64]) -> Cover | None:
    """When the thread of a rank that has most of its messages is in a call; None if it has none."""
    system = system_threads(trace)
    events = np.concatenate([sent.event[own], sent.received[own][sent.received[own] >= 0]])
    events = events[trace.rank[events] == rank]
    if not len(events):
        return None
    lane = int(np.bincount(system[trace["thread"][events]]).argmax())
    steps = slice(int(outer.first[lane]), int(outer.first[lane + 1]))
    return Cover(outer.begin[steps], outer.begin[steps] + outer.duration[steps])


def as_csv(traces: Mapping[str, Iterable[Share]], application: str, node_type: str) -> str:
    """The file that `peerway worth --shares` reads. The rest of each trace's time is `other`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, several in traces.items():
        writer.writerows((application, node_type, name, *cells) for cells in _cells(several))
    return text.getvalue()


def _cells(several: Iterable[Share]) -> Iterator[tuple[str, str, int | str, str, str]]:
    rest = 1.0
    for s in several:
        rest -= s.share + s.waiting
        yield s.test, s.path, s.bytes, f"{s.share:.6g}", f"{s.waiting:.6g}"
    yield OTHER, "", "", f"{max(0.0, rest):.6g}", "0"
