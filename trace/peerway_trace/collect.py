"""Makes a trace from the rings that threads have left: with one clock, one list of names, and all events in
order.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace import memory, rings
from peerway_trace.clocks import correct, corrections
from peerway_trace.rings import BadRing, ClockKind, Ring
from peerway_trace.sites import resolve
from peerway_trace.store import SUM_COLUMNS, Open, Thread, Trace, Writer, load

SHORTEST_NS = 100_000  # the shortest recording from which a clock's rate can be determined


@dataclass(frozen=True)
class Clock:
    """Converts ticks of one host's clock into nanoseconds of its CLOCK_MONOTONIC."""

    ticks: int
    ns: int
    ns_a_tick: float

    def at(self, ticks: NDArray[Any]) -> NDArray[Any]:
        """These times in nanoseconds."""
        since = ticks.astype(np.int64) - np.int64(self.ticks)
        then: NDArray[Any] = np.rint(since * self.ns_a_tick).astype(np.int64) + self.ns
        return then

    def span(self, ticks: NDArray[Any]) -> NDArray[Any]:
        """These durations in nanoseconds."""
        # A damaged file may give numbers beyond 64 bits.
        return np.rint(np.minimum(ticks * self.ns_a_tick, 2.0**62)).astype(np.int64)


def clock_of(readings: Sequence[tuple[int, int]]) -> Clock | None:
    """The clock as a line through its first and its last reading, since both of its counters are steady. None
    if the two readings are too close to each other.
    """
    first, last = min(readings), max(readings)
    ticks, ns = last[0] - first[0], last[1] - first[1]
    return Clock(*first, ns / ticks) if ns > SHORTEST_NS else None


Name = tuple[str, ClockKind, int]  # the name of a clock: its host, its kind, and its GPU


def _name(ring: Ring) -> Name:
    return ring.host, ring.clock_kind, ring.clock_of


def _clocks(result: Sequence[Ring], readings: dict[str, list[tuple[int, int]]]) -> dict[Name, Clock]:
    """The clocks by name.

    A host that recorded too shortly to determine its rate gets the rate of another host, which is probably of
    the same kind. Without such a host, its ticks count as nanoseconds.
    """
    clocks: dict[Name, Clock | None] = {}
    own: dict[Name, list[tuple[int, int]]] = {}
    for ring in result:
        own.setdefault(_name(ring), []).extend(reading for reading in ring.clock if reading[0] > 0)
    for name, several in own.items():
        if name[1] != ClockKind.HOST:
            alone = Clock(*min(several, default=(0, 0)), 1.0)
            clocks[name] = alone if name[1] == ClockKind.NS or not several else clock_of(several) or alone
            continue
        # A reading from before a restart of the host would be smaller.
        later = [
            reading
            for reading in readings.get(name[0], [])
            if reading[0] > max(several)[0] or reading[0] < min(several)[0]
        ]
        clocks[name] = clock_of([*several, *(reading for reading in later if _agrees(reading, min(several)))])
    known = next((clock for clock in clocks.values() if clock is not None), Clock(0, 0, 1.0))
    known = next(
        (clock for name, clock in clocks.items() if clock is not None and name[1] == ClockKind.HOST), known
    )
    return {name: clock or Clock(*min(own[name]), known.ns_a_tick) for name, clock in clocks.items()}


def _facts(clocks: dict[Name, Clock]) -> dict[str, Any]:
    """The clocks for trace.json. For a GPU: how far its clock is ahead of its host's, and how this grows."""
    gpus = [
        {"host": host, "gpu": gpu, "offset_ns": clock.ticks - clock.ns, "drift": 1 / clock.ns_a_tick - 1}
        for (host, kind, gpu), clock in clocks.items()
        if kind == ClockKind.GPU
    ]
    hosts = {
        host: {"ns_a_tick": clock.ns_a_tick}
        for (host, kind, _), clock in clocks.items()
        if kind == ClockKind.HOST
    }
    return {"clocks": hosts, "gpu_clocks": gpus}


def _agrees(clock: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether both counters of a clock increase together."""
    return (clock[0] < other[0]) == (clock[1] < other[1])


def collect(folder: Path, about: dict[str, Any], readings: dict[str, list[tuple[int, int]]]) -> Trace:
    """Turn FOLDER/rings into a trace in FOLDER. `readings` are further readings of hosts' clocks, besides
    those in the rings.
    """
    result, lost = _read(folder / "rings")
    notes = _about_memory(folder / "rings", result, lost)
    # A thread may have recorded before its process knew its rank.
    ranks = {(ring.host, ring.pid): ring.rank for ring in result if ring.rank >= 0}
    result.sort(
        key=lambda ring: (ranks.get((ring.host, ring.pid), -1), ring.host, ring.pid, ring.tid, ring.source)
    )
    clocks = _clocks(result, readings)
    begins = [clocks[_name(ring)].at(ring.events["begin"]).min() for ring in result if len(ring.events)]
    origin = int(min(begins)) if begins else 0
    names: dict[str, int] = {"": 0}
    threads: list[Thread] = []
    unended: list[Open] = []
    sums: dict[str, list[NDArray[Any]]] = {name: [] for name in SUM_COLUMNS}
    writer = Writer(folder)
    for index, ring in enumerate(result):
        clock = clocks[_name(ring)]
        local = np.array([names.setdefault(name, len(names)) for name in ring.names], np.int32)
        columns = _global(rings.fields(ring.events), clock, local, origin)
        order = np.lexsort((-columns["duration"], columns["begin"]))
        columns = {name: column[order] for name, column in columns.items()}
        columns["thread"] = np.full(len(order), index, np.int32)
        writer.add(columns)
        _add_sums(sums, ring, clock, local, index)
        unended += _open(_global(rings.fields(ring.open), clock, local, origin), index, list(names))
        threads.append(
            Thread(
                ranks.get((ring.host, ring.pid), -1), ring.host, ring.pid, ring.tid, ring.source, ring.thread,
                len(order), ring.overwritten, ring.cut, ring.unnamed, ring.uncounted, ring.too_deep,
            )
        )  # fmt: skip
    texts = list(names)
    resolve(texts)
    at_start = sorted({name for ring in result for name in ring.at_start})
    text = {
        **about,
        "origin_ns": origin,
        "paths_complete_at_start": at_start,
        **_facts(clocks),
        "lost": lost,
        "notes": notes,
    }
    summed = {name: np.concatenate([np.empty(0, SUM_COLUMNS[name]), *parts]) for name, parts in sums.items()}
    writer.end(text, texts, threads, summed, unended)
    return _with_one_clock(folder)


def _read(folder: Path) -> tuple[list[Ring], list[str]]:
    """All rings that can be read, and what is lost."""
    result: list[Ring] = []
    lost: list[str] = []
    for file in memory.files(folder):
        try:
            ring = rings.read(file)
        except (BadRing, OSError) as error:
            lost.append(str(error))
            continue
        result.append(ring)
        if ring.stepped_back:
            lost.append(
                f"{file.name}: its clock stepped back by {ring.stepped_back:,} ticks: times of "
                f"thread {ring.tid} from then on are too early, and what lasted over the step has no "
                "duration"
            )
    return result, lost


def _open(begun: dict[str, NDArray[Any]], thread: int, names: list[str]) -> list[Open]:
    """The operations that a thread had begun but not ended, outermost first."""
    return [
        Open(thread, names[name], int(kind), int(begin), int(peer), int(size))
        for name, kind, begin, peer, size in zip(
            *(begun[column] for column in ("name", "kind", "begin", "peer", "bytes")), strict=True
        )
    ]


def _about_memory(folder: Path, result: Sequence[Ring], lost: list[str]) -> list[str]:
    """A message about rings that should be in memory but are missing."""
    there = memory.target(folder)
    if there is None:
        return []
    if not there.is_dir():
        lost.append(
            f"the rings of the host on which `peerway trace` ran were in its {there}, which is not here: "
            "they can be collected there, until it restarts"
        )
        return []
    here = [ring for ring in result if ring.host == socket.gethostname()]
    elsewhere = sum(ring.file.parent == folder for ring in here)
    if not elsewhere:
        return []
    return [
        f"{elsewhere} of {len(here)} threads of this host had no room in {there.parent}, part of which is "
        f"left to the program: they recorded in {folder.parent}, whose file system may have disturbed them. "
        "--events sets how much a thread takes"
    ]


def _with_one_clock(folder: Path) -> Trace:
    """Align the clocks of several hosts, and keep the corrections."""
    trace = load(folder)
    applied = corrections(trace)
    if not applied:
        return trace
    correct(trace, applied)
    writer = Writer(folder)
    for number in range(len(trace.threads)):
        own = trace["thread"] == number
        writer.add({name: column[own] for name, column in trace.columns.items()})
    about = {**trace.about, "corrections": [asdict(correction) for correction in applied]}
    writer.end(about, trace.names, trace.threads, trace.sums, trace.open)
    return load(folder)


def _global(
    columns: dict[str, NDArray[Any]], clock: Clock, names: NDArray[Any], origin: int
) -> dict[str, NDArray[Any]]:
    columns["begin"] = clock.at(columns["begin"]) - origin
    columns["duration"] = clock.span(columns["duration"])
    for column in ("name", "where", "site"):
        # A damaged file may have a number that is not in its list of names.
        columns[column] = names[np.where(columns[column] < len(names), columns[column], 0)]
    return columns


def _add_sums(
    sums: dict[str, list[NDArray[Any]]], ring: Ring, clock: Clock, names: NDArray[Any], thread: int
) -> None:
    cells = ring.cells
    sums["thread"].append(np.full(len(cells), thread, np.int32))
    for column in ("name", "where", "site"):
        sums[column].append(names[np.where(cells[column] < len(names), cells[column], 0)])
    for column in ("peer", "size_class", "count", "bytes"):
        sums[column].append(cells[column].astype(SUM_COLUMNS[column]))
    sums["ns"].append(clock.span(cells["ticks"]))
