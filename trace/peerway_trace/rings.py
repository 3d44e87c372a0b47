"""Reads the rings that `peerway/trace/recorder.h` writes: one file for each thread that recorded.

A file may end early, because its disk was full or its host went down, and it may be damaged. Everything that
can be read is read, and losses are reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES, OPEN, CELLS = 1024, 64, 4096
MAGIC = b"PWTRACE4"
LONGEST = 1 << 50  # the longest life of a program in ticks: four days with the fastest clock
LEVELS = {1: "counters", 2: "profile", 3: "full"}

EVENT = np.dtype([("begin", "<u8"), ("first", "<u8"), ("second", "<u8"), ("peer", "<i4"), ("tag", "<i4")])
CELL = np.dtype(
    [
        ("name", "<u4"), ("where", "<u2"), ("site", "<u2"), ("peer", "<i4"), ("size_class", "<i4"),
        ("count", "<u8"), ("bytes", "<u8"), ("ticks", "<u8"),
    ]
)  # fmt: skip
HEADER = np.dtype(
    [
        ("magic", "S8"), ("header_bytes", "<u4"), ("event_bytes", "<u4"), ("pid", "<u4"), ("tid", "<u4"),
        ("rank", "<i4"), ("level", "<u4"), ("capacity", "<u8"), ("written", "<u8"), ("unnamed", "<u8"),
        ("uncounted", "<u8"), ("names", "<u4"), ("depth", "<u4"),
        ("clock", "<u4"), ("clock_of", "<u4"), ("ticks", "<u8", 2), ("ns", "<u8", 2),
        ("host", "S64"), ("source", "S16"), ("thread", "S16"), ("at_start", "u1", NAMES // 8),
        ("unused", "V48"),
        ("open", EVENT, OPEN), ("cell", CELL, CELLS),
        ("name", "S160", NAMES),
    ]
)  # fmt: skip


class Kind(IntEnum):
    """The kind of an event, as in trace/format.h."""

    PUT = 1
    GET = 2
    NOTIFY = 3
    SIGNAL = 4
    FLUSH = 5
    PLAN_START = 6
    PLAN_FINISH = 7
    REGION = 8
    CALL = 9
    SEND = 10
    RECV = 11
    ISEND = 12
    IRECV = 13
    SENT = 14
    RECEIVED = 15
    WAIT = 16
    COLLECTIVE = 17
    RMA_PUT = 18
    RMA_GET = 19
    RMA_SYNC = 20
    REQUESTS = 21
    STEPS_START = 22
    STEPS_FINISH = 23
    STEPS_BOTH = 24
    PROXY = 25
    STAGED = 26
    NIC = 27
    KERNEL = 28
    COPY = 29
    FILL = 30
    MARK = 31
    RANGE = 32
    COLLECTIVE_DONE = 33
    PIECE = 34
    COMM_MADE = 35
    COMM_FREED = 36
    WINDOW_MADE = 37
    WINDOW_FREED = 38
    CANCELLED = 39


MADE_OR_FREED = (Kind.COMM_MADE, Kind.COMM_FREED, Kind.WINDOW_MADE, Kind.WINDOW_FREED)


class ClockKind(IntEnum):
    """The clock that the times of a ring come from."""

    HOST = 0
    NS = 1
    GPU = 2


class BadRing(Exception):
    """The file is not a ring of a recorder, or not even its header is complete; the message says so."""


@dataclass(frozen=True)
class Ring:
    """The events of one thread. Times are ticks of its clock."""

    file: Path
    host: str
    pid: int
    tid: int
    rank: int
    source: str
    thread: str
    level: str
    names: list[str]
    at_start: list[str]  # the paths whose puts and gets are complete when their call returns
    clock_kind: ClockKind
    clock_of: int  # the number of the GPU whose clock it is
    clock: list[tuple[int, int]]  # (ticks, nanoseconds of CLOCK_MONOTONIC) when the ring was opened, and last
    events: NDArray[Any]  # of type EVENT, in the order in which they ended
    open: NDArray[Any]  # operations that had begun but not ended
    cells: NDArray[Any]
    overwritten: int  # events that newer ones replaced in the ring
    cut: int  # events that did not fit into the file, or were lost with its end
    unnamed: int
    uncounted: int
    too_deep: int  # open events beyond OPEN
    stepped_back: int = 0  # the most ticks by which the clock went back at once


def fields(events: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Split the words of events into columns; times are ticks."""
    first, second = events["first"], events["second"]
    low, ten = np.uint64((1 << 44) - 1), np.uint64(1023)
    return {
        "begin": events["begin"],
        "duration": first & low,
        "name": (first >> np.uint64(44) & ten).astype(np.int32),
        "site": (first >> np.uint64(54)).astype(np.int32),
        "bytes": (second & low).astype(np.int64),
        "where": (second >> np.uint64(44) & ten).astype(np.int32),
        "kind": (second >> np.uint64(54)).astype(np.uint8),
        "peer": events["peer"],
        "tag": events["tag"],
    }


def read(file: Path) -> Ring:
    """Read a ring. Raises BadRing."""
    header = _header(file)
    capacity, written = int(header["capacity"]), int(header["written"])
    clock = _clock(file, header)
    opened = clock[0][0]
    order = _in_order(file, capacity, written)
    # If a file was cut, a part of it may exist but be empty.
    whole = order[_plausible(order, opened) & (order["second"] >> np.uint64(54) != 0)]
    back = max(0, opened - clock[1][0])
    if int(header["clock"]) == ClockKind.HOST and len(whole) > 1:
        # In the order in which they ended, as the thread wrote them.
        ends = whole["begin"] + (whole["first"] & np.uint64((1 << 44) - 1))
        back = max(back, int(-np.diff(ends.astype(np.int64)).min(initial=0)))
    cells = np.array(header["cell"])
    if capacity:
        _add_events(cells, whole)
    names = ["", *(text(name) for name in header["name"][1 : max(1, int(header["names"]))])]
    at_start = np.unpackbits(header["at_start"], bitorder="little")[: len(names)]
    unended = np.array(header["open"][: min(int(header["depth"]), OPEN)])
    return Ring(
        file=file,
        host=text(header["host"]),
        pid=int(header["pid"]),
        tid=int(header["tid"]),
        rank=int(header["rank"]),
        source=text(header["source"]),
        thread=text(header["thread"]),
        level=LEVELS[int(header["level"])],
        names=names,
        at_start=[name for name, set_ in zip(names, at_start, strict=True) if set_],
        clock_kind=ClockKind(int(header["clock"])),
        clock_of=int(header["clock_of"]),
        clock=clock if back == 0 else clock[:1],
        events=whole,
        open=unended[_plausible(unended, opened)],
        cells=cells[cells["count"] > 0],
        overwritten=max(0, written - capacity) if capacity else 0,
        cut=min(written, capacity) - len(whole),
        unnamed=int(header["unnamed"]),
        uncounted=int(header["uncounted"]),
        too_deep=max(0, int(header["depth"]) - OPEN),
        stepped_back=back,
    )


def _header(file: Path) -> Any:
    """The header of a ring, checked for its version and for possible values. Raises BadRing."""
    size = file.stat().st_size
    if size < HEADER.itemsize:
        raise BadRing(
            f"{file.name} has {size:,} bytes, less than a header ({HEADER.itemsize:,}): it cannot be read"
        )
    header = np.memmap(file, HEADER, "r", shape=(1,))[0]
    if (result := text(header["magic"])) != text(MAGIC) and result.startswith("PWTRACE"):
        raise BadRing(
            f"{file.name} is of another version of Peerway: it begins with {result}, and this one reads "
            f"{text(MAGIC)}. Collect it with the `peerway trace collect` of the version that recorded it"
        )
    if (
        header["magic"] != MAGIC
        or header["header_bytes"] != HEADER.itemsize
        or header["event_bytes"] != EVENT.itemsize
    ):
        raise BadRing(f"{file.name} does not begin like a ring of this Peerway: it is damaged, or no ring")
    capacity = int(header["capacity"])
    if (
        capacity & (capacity - 1)
        or header["names"] > NAMES
        or int(header["level"]) not in LEVELS
        or header["clock"] > 2
    ):
        raise BadRing(
            f"{file.name} is damaged: its header says {capacity:,} events and {header['names']:,} names"
        )
    return header


def _clock(file: Path, header: Any) -> list[tuple[int, int]]:
    """The readings of a clock, checked for plausibility. Raises BadRing."""
    clock = [(int(t), int(n)) for t, n in zip(header["ticks"], header["ns"], strict=True)]
    (opened, then), (last, now) = clock
    if (
        not -LONGEST < last - opened < LONGEST
        or not -LONGEST < now - then < LONGEST
        or (last >= opened and now - then > 100 * (last - opened) + 10**6)
    ):
        raise BadRing(f"{file.name} is damaged: its clock went from {opened} to {last} in {now - then} ns")
    return clock


def _in_order(file: Path, capacity: int, written: int) -> NDArray[Any]:
    """The complete events of the file, the oldest first."""
    room = min((file.stat().st_size - HEADER.itemsize) // EVENT.itemsize, capacity)
    if not room:
        return np.empty(0, EVENT)
    there = np.memmap(file, EVENT, "r", offset=HEADER.itemsize, shape=(room,))
    kept = min(written, capacity)
    at = written & (capacity - 1) if written > capacity else 0
    return np.concatenate([there[at:kept], there[:at]]) if at else np.asarray(there[:kept])


def _add_events(cells: NDArray[Any], events: NDArray[Any]) -> None:
    """Add the events in the ring to the sums of events that are no longer there; at level full, only by
    name.
    """
    of = fields(events)
    cells["name"][of["name"]] = of["name"]
    for column, values in (("count", 1), ("bytes", of["bytes"].astype(np.uint64)), ("ticks", of["duration"])):
        np.add.at(cells[column], of["name"], np.uint64(values) if column == "count" else values)


def _plausible(events: NDArray[Any], opened: int) -> NDArray[Any]:
    """Whether events are from the life of the program; an event that another thread began may be older than
    the ring in which it ended.
    """
    first = np.uint64(opened)
    begin = events["begin"]
    near = np.where(begin >= first, begin - first, first - begin) < LONGEST
    return np.asarray(near & (begin > 0))


def text(value: bytes) -> str:
    """Decode what a program wrote; it need not be UTF-8."""
    return value.decode("utf-8", "replace")
