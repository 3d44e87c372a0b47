"""The data of the page's timeline: rows of events that do not overlap, arrows, and the critical path.

They are packed as columns of numbers (bytes of the same significance together, deflated, in base64). If a
trace has more events than fit, only its most important windows have events; for the rest, the page shows how
busy each thread was.
"""

from __future__ import annotations

import base64
import heapq
import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.printable import printable
from peerway_trace.export.timeline import BESIDE
from peerway_trace.lanes import OF_GPU, Cover
from peerway_trace.messages import match, match_signals, messages
from peerway_trace.regions import system_threads
from peerway_trace.rings import MADE_OR_FREED, Kind
from peerway_trace.store import FIRST_STREAM, Trace

MOST_EVENTS = 1_000_000
MOST_STRETCHES = 20_000  # the most stretches of the critical path, the longest ones
DEEPEST, WIDEST = 8, 6  # the most rows of nested calls, and of events beside them
BINS, WINDOWS, SMOOTH = 1024, 256, 17
CLASSES = ("region", "data", "send", "receive", "collective", "other", "GPU", "under way")
CLASS_OF = {
    0: (Kind.REGION, Kind.RANGE, Kind.MARK, *MADE_OR_FREED),
    1: (Kind.PUT, Kind.GET, Kind.NOTIFY, Kind.PLAN_START, Kind.RMA_PUT, Kind.RMA_GET, Kind.STAGED),
    2: (Kind.SEND, Kind.ISEND),
    3: (Kind.SIGNAL, Kind.RECV, Kind.IRECV, Kind.WAIT, Kind.REQUESTS, Kind.FLUSH, Kind.PLAN_FINISH),
    4: (Kind.COLLECTIVE, Kind.RMA_SYNC),
    6: OF_GPU,
    7: (Kind.SENT, Kind.CANCELLED, Kind.RECEIVED, Kind.COLLECTIVE_DONE, Kind.PROXY, Kind.NIC),
}


@dataclass(frozen=True)
class Timeline:
    """What the page needs to draw a trace."""

    head: str  # JSON
    data: str  # the columns that it names
    events: int
    shown: int
    rows: int
    windows: list[tuple[int, int]]  # the parts of the trace that are embedded, in ns


def build(
    trace: Trace, path: NDArray[Any] | None, important: NDArray[Any] | None, most: int = MOST_EVENTS
) -> Timeline:
    """Make the timeline of a trace that has events."""
    span = trace.length or 1
    windows = _windows(trace, important, span, most)
    inside = np.zeros(len(trace), bool)
    for begin, end in windows:
        inside |= (trace["begin"] <= end) & (trace["begin"] + trace["duration"] >= begin)
    chosen = np.flatnonzero(inside) if len(windows) > 1 or not inside.all() else np.arange(len(trace))
    system = system_threads(trace)
    lane = system[trace["thread"][chosen]]
    order, row, rows = _rows(trace, chosen, lane)
    event = chosen[order]
    lanes = _lanes(trace, system)
    number = np.zeros(int(system.max()) + 1, np.int64)
    for place, line in enumerate(lanes):
        number[line["system"]] = place
    starts = np.flatnonzero(np.diff(row, prepend=-1))
    names, columns = _events(trace, event, starts)
    columns |= _arrows(trace, event, number)
    if path is not None:
        columns |= _path(trace, path, number[system])
    whole = len(event) == len(trace)
    if not whole:
        columns["summary"] = _busy(trace, system, [line["system"] for line in lanes], span)
    head = {
        "span": span, "events": len(trace), "shown": len(event), "whole": whole, "bins": BINS,
        "deepest": DEEPEST,
        "windows": [list(window) for window in windows], "names": [printable(name) for name in names],
        "kinds": {int(kind): kind.name.lower().replace("_", " ") for kind in Kind}, "classes": CLASSES,
        "of_kind": _class_of_kind(),
        "lanes": [{k: v for k, v in line.items() if k != "system"} for line in lanes],
        "rows": [
            [int(number[of]), depth, int(start)] for (of, depth), start in zip(rows, starts, strict=True)
        ],
        "columns": [[name, column.dtype.name, len(column)] for name, column in columns.items()],
    }  # fmt: skip
    packed = zlib.compress(b"".join(_shuffled(column) for column in columns.values()), 6)
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return Timeline(text, base64.b64encode(packed).decode(), len(trace), len(event), len(rows), windows)


def _events(
    trace: Trace, event: NDArray[Any], starts: NDArray[Any]
) -> tuple[list[str], dict[str, NDArray[Any]]]:
    """The names that occur, and the fields of the events. A beginning is the difference from the one before
    in its row; `starts` has the first of each row.
    """
    columns: dict[str, NDArray[Any]] = {}
    begin = trace["begin"][event]
    delta = np.diff(begin, prepend=0)
    delta[starts] = begin[starts]
    for name, values in (
        ("begin", delta),
        ("duration", trace["duration"][event]),
        ("bytes", trace["bytes"][event]),
    ):
        columns[f"{name}_low"] = (values & 0xFFFFFFFF).astype(np.uint32)
        columns[f"{name}_high"] = (values >> 32).astype(np.uint32)
    names, (columns["name"], columns["where"], columns["site"]) = _names(trace, event)
    columns["kind"] = trace["kind"][event].astype(np.uint8)
    columns["peer"], columns["tag"] = trace["peer"][event], trace["tag"][event]
    return names, columns


def _shuffled(column: NDArray[Any]) -> bytes:
    """The lowest bytes of all values, then the next ones, because most of these are equal."""
    kept = column.astype(column.dtype.newbyteorder("<"))
    return np.ascontiguousarray(kept.view(np.uint8).reshape(len(column), column.itemsize).T).tobytes()


def _class_of_kind() -> list[int]:
    classes = [5] * 256
    for number, kinds in CLASS_OF.items():
        for kind in kinds:
            classes[kind] = number
    return classes[:64]


def _windows(trace: Trace, important: NDArray[Any] | None, span: int, most: int) -> list[tuple[int, int]]:
    """The whole trace, or the windows with the most lost time that fit together, joined where they touch."""
    if len(trace) <= most:
        return [(0, span)]
    width = span / WINDOWS
    first = (trace["begin"] / width).astype(np.int64)
    last = np.minimum(((trace["begin"] + trace["duration"]) / width).astype(np.int64), WINDOWS - 1)
    opened, closed = (np.bincount(edge, minlength=WINDOWS + 1) for edge in (first, last + 1))
    count = np.cumsum(opened - closed)[:WINDOWS]
    value: NDArray[Any] = np.zeros(WINDOWS)
    if important is not None and len(important):
        middle = np.minimum(((important[:, 0] + important[:, 1]) / 2 / width).astype(np.int64), WINDOWS - 1)
        value = np.bincount(middle, important[:, 2], WINDOWS)
        value = np.convolve(value, np.ones(SMOOTH), "same")  # so that neighbours are chosen together
    chosen = np.zeros(WINDOWS, bool)
    room = most
    ranked = np.lexsort((np.arange(WINDOWS), count == 0, -value))
    for edge in ranked if count[ranked[0]] <= most else ():
        if 0 < count[edge] <= room:
            chosen[edge] = True
            room -= int(count[edge])
    if not chosen.any():  # even the best window has more events than the page may have: use its beginning
        begin = int(ranked[0] * width)
        already = int(((trace["begin"] < begin) & (trace["begin"] + trace["duration"] >= begin)).sum())
        later = np.sort(trace["begin"][trace["begin"] >= begin])
        return [(begin, int(later[min(max(0, most - already), len(later)) - 1]) - 1)]
    edges = np.flatnonzero(np.diff(np.concatenate([[False], chosen, [False]]).astype(np.int8)))
    return [(int(a * width), int(b * width)) for a, b in edges.reshape(-1, 2)]


def _lanes(trace: Trace, system: NDArray[Any]) -> list[dict[str, Any]]:
    """The threads and streams, by rank; streams of GPUs come after the threads."""
    seen: dict[int, dict[str, Any]] = {}
    for number, thread in zip(system.tolist(), trace.threads, strict=False):
        of_gpu = thread.tid >= FIRST_STREAM
        label = thread.thread or f"thread {thread.tid}"
        seen.setdefault(
            number, {"system": number, "rank": thread.rank, "label": printable(label), "gpu": of_gpu}
        )
    return sorted(seen.values(), key=lambda thread: (thread["rank"], thread["gpu"], thread["system"]))


def _rows(
    trace: Trace, chosen: NDArray[Any], lane: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], list[tuple[int, int]]]:
    """The order of the events by row and time, the row of each event, and the thread and place of each row.

    Calls are in rows by their depth. Below them are events that go on beside calls.
    """
    begin, duration = trace["begin"][chosen], trace["duration"][chosen]
    beside = np.isin(trace["kind"][chosen], BESIDE)
    place = np.zeros(len(chosen), np.int64)
    for number in np.unique(lane):
        own = np.flatnonzero((lane == number) & ~beside)
        own = own[np.lexsort((-duration[own], begin[own]))]
        # The depth: the number of calls that began before and have not ended.
        ended = np.searchsorted(np.sort(begin[own] + np.maximum(duration[own], 1)), begin[own], "right")
        place[own] = np.clip(np.arange(len(own)) - ended, 0, DEEPEST - 1)
        own = np.flatnonzero((lane == number) & beside)
        own = own[np.argsort(begin[own], kind="stable")]
        place[own] = DEEPEST + _packed(begin[own].tolist(), (begin[own] + duration[own]).tolist())
    key = lane * (DEEPEST + WIDEST) + place
    order = np.lexsort((begin, key))
    keys = key[order]
    rows, row = np.unique(keys, return_inverse=True)
    return order, row, [(int(k) // (DEEPEST + WIDEST), int(k) % (DEEPEST + WIDEST)) for k in rows]


def _packed(begins: list[int], ends: list[int]) -> NDArray[Any]:
    """The first row in which each interval overlaps no other; if there is none, the last row."""
    free = list(range(WIDEST))
    busy: list[tuple[int, int]] = []
    rows = []
    for begin, end in zip(begins, ends, strict=True):
        while busy and busy[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            row = heapq.heappop(free)
            heapq.heappush(busy, (end, row))
        else:
            row = WIDEST - 1
        rows.append(row)
    return np.array(rows, np.int64)


def _names(trace: Trace, event: NDArray[Any]) -> tuple[list[str], list[NDArray[Any]]]:
    """The names that occur, and columns of indices into them."""
    columns = [trace[name][event] for name in ("name", "where", "site")]
    used, result = np.unique(np.concatenate(columns), return_inverse=True)
    kind = np.uint16 if len(used) < 1 << 16 else np.uint32
    return [trace.names[i] for i in used], np.split(result.astype(kind), 3)


def _arrows(trace: Trace, event: NDArray[Any], lane: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """From each message, and each notification of a signal, to what it ended: events as they are in the rows.
    A put that nobody waited for goes to the lane of its target.
    """
    place = np.full(len(trace), -1, np.int64)
    place[event] = np.arange(len(event))
    matched, signals = match(trace), match_signals(trace)
    first = np.concatenate([matched.first, signals.first])
    second = np.concatenate([matched.second, signals.second])
    both = (place[first] >= 0) & (place[second] >= 0)
    first, second = first[both], second[both]
    sent = messages(trace, matched, signals)
    alone = (sent.received < 0) & (place[sent.event] >= 0) & (trace["peer"][sent.event] >= 0)
    of_rank = {
        thread.rank: int(lane[number])
        for number, thread in reversed(list(zip(system_threads(trace).tolist(), trace.threads, strict=False)))
        if thread.tid < FIRST_STREAM
    }
    peers = trace["peer"][sent.event[alone]]
    table = np.full(int(peers.max(initial=0)) + 1, -1, np.int64)
    for rank, number in of_rank.items():
        if 0 <= rank < len(table):
            table[rank] = number
    target = table[peers]
    ends = -2 - target  # values below -1 stand for a lane instead of an event
    from_ = np.concatenate([place[first], place[sent.event[alone]][target >= 0]])
    to = np.concatenate([place[second], ends[target >= 0]])
    # By time, the order in which they are drawn.
    order = np.argsort(trace["begin"][event][from_], kind="stable")
    return {"arrow_from": from_[order].astype(np.uint32), "arrow_to": to[order].astype(np.int32)}


def _path(trace: Trace, path: NDArray[Any], lane: NDArray[Any]) -> dict[str, NDArray[Any]]:
    longest = path
    if len(path) > MOST_STRETCHES:
        longest = path[np.argpartition(path[:, 1] - path[:, 2], MOST_STRETCHES)[:MOST_STRETCHES]]
    longest = longest[np.argsort(longest[:, 1], kind="stable")]
    return {
        "path_lane": lane[trace["thread"][longest[:, 0]]].astype(np.uint32),
        "path_begin": longest[:, 1].astype(np.float64),
        "path_end": longest[:, 2].astype(np.float64),
    }


def _busy(trace: Trace, system: NDArray[Any], lanes: list[int], span: int) -> NDArray[Any]:
    """How much of each bin of time each lane was in calls, in 1/255."""
    calls = ~np.isin(trace["kind"], (*BESIDE, Kind.REGION))
    edges = np.linspace(0, span, BINS + 1)
    of = system[trace["thread"]]
    rows = []
    for lane in lanes:
        own = np.flatnonzero(calls & (of == lane))
        cover = Cover(trace["begin"][own], trace["begin"][own] + trace["duration"][own])
        rows.append(np.clip(np.diff(cover.until(edges)) / (span / BINS) * 255, 0, 255).astype(np.uint8))
    return np.concatenate(rows)
