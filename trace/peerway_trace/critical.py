"""The critical path: the chain of calls that could not have been shorter without the job ending earlier; and
how much earlier the job would end if each part of it were a tenth shorter, found by replaying all steps.

A step is an outermost call. It ends when it has begun, everything that it needs has begun, and its own work
is done. Its own work is the time that it took from then on. Between two calls a thread computes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace import waits
from peerway_trace.busy_hosts import BusyHost, caution
from peerway_trace.collectives import match_collectives
from peerway_trace.lanes import OF_GPU, Cover, Lanes
from peerway_trace.messages import Pairs, of_kind
from peerway_trace.regions import Regions, call_text, places
from peerway_trace.rings import Kind
from peerway_trace.store import Trace
from peerway_trace.tables import LITTLE, MOST_ROWS, Analysis, Finding, Table, ns_text, percent

SHORTER = 0.9
REPLAYED = 12  # how many parts are replayed: those with the most time on the path


@dataclass(frozen=True)
class Part:
    """Something that takes time: an operation at a place, or computing in a region."""

    text: str
    on_path: int  # ns
    shorter: int | None  # ns by which the job ends earlier if it takes 10 % less; None: not replayed


@dataclass(frozen=True)
class Path:
    """The critical path from the beginning to the end of a job, and its parts by their time on it."""

    length: int  # the length of the job in ns
    event: NDArray[Any]  # for each stretch its call, or the call after a stretch between two calls
    within: NDArray[Any]  # whether the stretch is the call itself
    begin: NDArray[Any]
    end: NDArray[Any]
    rank: NDArray[Any]
    parts: list[Part]


def find(
    trace: Trace, matched: Pairs, signals: Pairs, outer: Lanes, regions: Regions | None = None
) -> Path | None:
    """The critical path; None if there are no calls."""
    from peerway._core import TraceReplay

    if not len(outer.event):
        return None
    regions = regions or Regions(trace)
    part, before, texts = _parts(trace, outer, regions)
    after, on, offset = _needs(trace, matched, signals, outer)
    meeting, awaits = _meetings(trace, outer)
    replay = TraceReplay(
        outer.begin, outer.duration, part, before, outer.first.astype(np.int64), after, on, offset, meeting,
        awaits, len(texts),
    )  # fmt: skip
    step, within, path_begin, path_end = replay.path()
    which = np.where(within == 1, part[step], before[step])
    on_path = np.bincount(which, path_end - path_begin, len(texts)).astype(np.int64)
    length = int((outer.begin + outer.duration).max())
    parts = []
    for number, index in enumerate(np.argsort(-on_path, kind="stable")):
        if not on_path[index]:
            break
        saved = None
        if number < REPLAYED:
            factors = [1.0] * len(texts)
            factors[int(index)] = SHORTER
            saved = length - replay.length(factors)
        parts.append(Part(texts[int(index)], int(on_path[index]), saved))
    lane = np.searchsorted(outer.first, step, "right") - 1
    return Path(length, outer.event[step], within == 1, path_begin, path_end, outer.rank[lane], parts)


def _parts(trace: Trace, outer: Lanes, regions: Regions) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """The part that each step belongs to, and the part of the time before it; and the names of the parts."""
    many = len(trace.names)
    keys = trace["name"][outer.event].astype(np.int64) * many + places(trace, outer.event, regions)
    ended = outer.before()
    around = regions.at(trace["thread"][outer.event], (ended + outer.begin) // 2)
    of_gpu = np.isin(trace["kind"][outer.event], OF_GPU)
    first = np.zeros(len(outer.event), bool)
    first[outer.first[:-1][np.diff(outer.first) > 0]] = True
    between = np.where(of_gpu, -many - 1, np.where(first & (around == 0), -many - 2, -around - 1))
    kernel = _kernels(trace, outer, ended, ~of_gpu)
    between = np.where(kernel > 0, -many - 2 - kernel, between)
    result, calls = np.unique(keys, return_inverse=True)
    gaps, times = np.unique(between, return_inverse=True)
    texts = [call_text(trace, int(key // many), int(key % many)) for key in result]
    for gap in gaps.tolist():
        name = trace.names[-gap - 1] if -gap - 1 < many else ""
        text = f"computing in {name}" if name else "computing between calls"
        if gap < -many - 2:
            text = f"computing on the GPU ({trace.names[-gap - many - 2]})"
        elif gap < -many:
            late = "the time in which streams wait for the host to launch more"
            text = late if gap == -many - 1 else "the time before the first call"
        texts.append(text)
    return calls.astype(np.int32), (times + len(result)).astype(np.int32), texts


def _kernels(trace: Trace, outer: Lanes, ended: NDArray[Any], of_host: NDArray[Any]) -> NDArray[Any]:
    """For each stretch between two calls during most of which the rank's GPU ran kernels, the name of the
    kernel that began last. Launches and waits for kernels are not recorded; such a stretch is a wait.
    """
    result = np.zeros(len(outer.event), np.int64)
    kernels = of_kind(trace, (Kind.KERNEL,))
    ranks = trace.rank[outer.event]
    for rank in np.unique(trace.rank[kernels]).tolist():
        own = kernels[trace.rank[kernels] == rank]
        own = own[np.argsort(trace["begin"][own], kind="stable")]
        cover = Cover(trace["begin"][own], trace["begin"][own] + trace["duration"][own])
        steps = np.flatnonzero(of_host & (ranks == rank) & (outer.begin > ended))
        busy = 2 * cover.between(ended[steps], outer.begin[steps]) > outer.begin[steps] - ended[steps]
        steps = steps[busy]
        last = np.searchsorted(trace["begin"][own], outer.begin[steps]) - 1
        result[steps] = trace["name"][own[np.maximum(last, 0)]]
    return result


def _needs(trace: Trace, matched: Pairs, signals: Pairs, outer: Lanes) -> tuple[NDArray[Any], ...]:
    """The dependencies as columns: the step, the step that it depends on, and the offset in ns from the
    beginning of that step.
    """
    held, _, there = waits.sends(trace, matched)
    of_collectives = match_collectives(trace)
    from_root = (of_collectives.needs == 1) & (of_collectives.culprit != of_collectives.event)
    from_root &= of_collectives.call >= 0
    pairs = [
        waits.receives(trace, matched), (held, there), (signals.second, signals.first),
        (of_collectives.call[from_root], of_collectives.culprit[from_root]),
    ]  # fmt: skip
    event, culprit = (np.concatenate([np.asarray(pair[i], np.int64) for pair in pairs]) for i in range(2))
    after, on = outer.step[event], outer.step[culprit]
    good = (after >= 0) & (on >= 0) & (after != on)
    after, on, culprit = after[good], on[good], culprit[good]
    offset = trace["begin"][culprit] - outer.begin[on]
    order = np.argsort(after, kind="stable")
    return after[order], on[order], offset[order]


def _meetings(trace: Trace, outer: Lanes) -> tuple[NDArray[Any], NDArray[Any]]:
    """For each step, the collective that it enters, and the collective that it waits for; -1: none. A step
    later than the start waits for a collective that does not block; if it waits for several, it waits for the
    last.
    """
    meeting = np.full(len(outer.event), -1, np.int32)
    awaits = np.full(len(outer.event), -1, np.int32)
    result = match_collectives(trace)
    among = (result.needs == 0) | (result.needs == 2)
    if not among.any():
        return meeting, awaits
    _, number = np.unique(result.instance[among], return_inverse=True)
    meeting[outer.step[result.event[among]]] = number
    needs_all = ((result.needs[among] == 0) | result.is_root[among]) & (result.call[among] >= 0)
    number, call, last = (part[needs_all] for part in (number, result.call[among], result.culprit[among]))
    step = outer.step[call]
    order = np.argsort(trace["begin"][last], kind="stable")
    order = order[step[order] >= 0]
    awaits[step[order]] = number[order]  # of several, the last assignment counts
    return meeting, awaits


def tell(path: Path, waited: int, result: Analysis, busy: Sequence[BusyHost] = ()) -> None:
    """The table, and a finding about what to shorten first, if ranks waited for each other for at least
    `waited` ns.
    """
    rows = [
        [part.text, ns_text(part.on_path), percent(part.on_path / path.length),
         ns_text(part.shorter) if part.shorter is not None else "",
         percent(part.shorter / path.length) if part.shorter is not None else ""]
        for part in path.parts[:MOST_ROWS]
    ]  # fmt: skip
    note = (
        f"The chain of work that decides when the job ends. The last columns, for the first {REPLAYED} "
        f"parts: how much earlier it would end with 10 % less of that part on all ranks, by replay."
    )
    columns = ["part", "on the path", "of the job", "10 % less saves", "of the job"]
    result.tables.append(Table("Critical path", columns, rows, note))
    owned = path.begin < path.end
    ranks, groups = np.unique(path.rank[owned], return_inverse=True)
    held = np.bincount(groups, (path.end - path.begin)[owned])
    rows = [
        [str(ranks[i]), ns_text(float(held[i])), percent(held[i] / path.length)]
        for i in np.argsort(-held, kind="stable")[:MOST_ROWS]
    ]
    result.tables.append(Table("Critical path by rank", ["rank", "on the path", "of the job"], rows))
    result.path = np.stack([path.event, path.begin, path.end], axis=1)
    replayed = [part for part in path.parts if part.shorter]
    if not replayed or (len(ranks) < 2 and waited <= LITTLE * path.length):
        return
    best = max(replayed, key=lambda part: part.shorter or 0)
    saved = best.shorter or 0
    if saved > LITTLE * path.length:
        longest = int(np.argmax(path.end - path.begin))
        first = path.parts[0]
        also = (
            f" Most of the critical path, {percent(first.on_path / path.length)}, is {first.text}."
            if first is not best
            else f" It is {percent(best.on_path / path.length)} of the critical path."
        )
        result.findings.append(
            Finding(
                f"To end earlier, shorten {best.text}: with 10 % less of it the job would end "
                f"{ns_text(saved)} ({percent(saved / path.length)}) earlier.{also}",
                f"Rank {ranks[held.argmax()]} holds {percent(held.max() / path.length)} of the path; its "
                f"longest stretch is {ns_text(float(path.end[longest] - path.begin[longest]))} on rank "
                f"{path.rank[longest]}.",
                caution(busy, int(ranks[held.argmax()]))
                or "Start with the longest stretches: the timeline marks them.",
                (int(path.begin[longest]), int(path.end[longest])),
                int(path.rank[longest]),
            )
        )
