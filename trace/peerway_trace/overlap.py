"""Overlap: how much a rank or its GPU computed while messages were under way, by rank and by the place that
started the messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.calls import waiting_call
from peerway_trace.lanes import Cover, Lanes
from peerway_trace.messages import Messages, of_kind
from peerway_trace.regions import Regions, call_text, places, system_threads
from peerway_trace.rings import Kind
from peerway_trace.store import Trace
from peerway_trace.tables import LITTLE, MOST_ROWS, Analysis, Finding, Table, ns_text, percent


@dataclass(frozen=True)
class Spans:
    """What was under way while the program ran: non-blocking messages from their start to their completion,
    and puts from their call to their arrival.
    """

    event: NDArray[Any]
    begin: NDArray[Any]
    end: NDArray[Any]
    computing: NDArray[Any]  # ns in which the thread that started it was in no call
    waiting: NDArray[Any]  # ns in the call that waited for it; for a put, in its own call
    kernels: NDArray[Any]  # ns in which a kernel of its rank ran


@dataclass(frozen=True)
class OfRank:
    """The overlap of one rank: the time in ns in which at least one message was under way, and what happened
    meanwhile.
    """

    rank: int
    under_way: int
    computing: int
    kernels: int


def find(trace: Trace, sent: Messages, outer: Lanes) -> tuple[Spans, list[OfRank]]:
    """All spans, and the sums for each rank."""
    requests = of_kind(trace, (Kind.SENT, Kind.RECEIVED))
    requests = requests[trace["duration"][requests] > 0]
    puts = np.flatnonzero(np.isin(trace["kind"][sent.event], (Kind.PUT, Kind.RMA_PUT)))
    event = np.concatenate([requests, sent.event[puts]])
    begin = trace["begin"][event]
    end = np.concatenate([begin[: len(requests)] + trace["duration"][requests], sent.end[puts]])
    computing, waiting = np.zeros(len(event), np.int64), np.zeros(len(event), np.int64)
    kernels = np.zeros(len(event), np.int64)
    lane = system_threads(trace)[trace["thread"][event]]
    rank = trace.rank[event]
    call = waiting_call(trace, event)
    call[len(requests) :] = event[len(requests) :]
    known = call >= 0
    call_end = trace["begin"][call] + trace["duration"][call]
    waiting[known] = np.maximum(
        0, np.minimum(end, call_end)[known] - np.maximum(begin, trace["begin"][call])[known]
    )
    calls: dict[int, Cover] = {}
    for thread in np.unique(lane).tolist():
        own = lane == thread
        steps = slice(int(outer.first[thread]), int(outer.first[thread + 1]))
        calls[thread] = Cover(outer.begin[steps], outer.begin[steps] + outer.duration[steps])
        computing[own] = end[own] - begin[own] - calls[thread].between(begin[own], end[own])
    kinds = trace["kind"]
    result = []
    for thread in np.unique(rank).tolist():
        own = rank == thread
        running = np.flatnonzero((kinds == Kind.KERNEL) & (trace.rank == thread))
        gpu = Cover(trace["begin"][running], trace["begin"][running] + trace["duration"][running])
        kernels[own] = gpu.between(begin[own], end[own])
        under_way = Cover(begin[own], end[own])
        # Of the time under way, the part in which the rank's thread with most of it was in no call.
        main = np.bincount(lane[own]).argmax()
        exposed = under_way.shared(calls[int(main)])
        result.append(OfRank(thread, under_way.total, under_way.total - exposed, under_way.shared(gpu)))
    return Spans(event, begin, end, computing, waiting, kernels), result


def tell(trace: Trace, sent: Messages, outer: Lanes, result: Analysis, regions: Regions) -> None:
    """Tables by rank and by place, and a finding if waiting took most of the time."""
    spans, ranks = find(trace, sent, outer)
    if not len(spans.event):
        return
    with_gpu = any(entry.kernels for entry in ranks)
    columns = ["rank", "messages under way", "computing meanwhile", "share", "in calls"]
    rows = [
        [str(entry.rank), ns_text(entry.under_way), ns_text(entry.computing),
         percent(entry.computing / max(1, entry.under_way)), ns_text(entry.under_way - entry.computing),
         *([ns_text(entry.kernels), percent(entry.kernels / max(1, entry.under_way))] if with_gpu else [])]
        for entry in ranks[:MOST_ROWS]
    ]  # fmt: skip
    note = "Time in which at least one non-blocking message or put was under way."
    if with_gpu:
        columns += ["kernels meanwhile", "share"]
    result.tables.append(Table("Overlap by rank", columns, rows, note))
    _by_place(trace, spans, result, regions, with_gpu, outer)


@dataclass(frozen=True)
class OfPlace:
    """The messages of one name and place, summed over ranks: the time in ns in which at least one was under
    way, and what happened meanwhile.
    """

    under_way: int
    computing: int  # ns in which the thread with most of the messages was in no call
    waiting: int  # ns in which a call waited for one of them
    kernels: int


def of_place(trace: Trace, spans: Spans, which: NDArray[Any], outer: Lanes) -> OfPlace:
    """The overlap of some spans. Time counts once, however many messages were under way. Otherwise the sum
    could be longer than the program.
    """
    event = spans.event[which]
    rank, lane = trace.rank[event], system_threads(trace)[trace["thread"][event]]
    begin, end = spans.begin[which], spans.end[which]
    call = waiting_call(trace, event)
    call = np.where((call < 0) & (spans.waiting[which] > 0), event, call)  # for a put, its own call
    sums = [0, 0, 0, 0]
    for number in np.unique(rank).tolist():
        own = rank == number
        under_way = Cover(begin[own], end[own])
        main = int(np.bincount(lane[own]).argmax())
        steps = slice(int(outer.first[main]), int(outer.first[main + 1]))
        calls = Cover(outer.begin[steps], outer.begin[steps] + outer.duration[steps])
        waited = own & (call >= 0)
        starts = np.maximum(begin[waited], trace["begin"][call[waited]])
        ends = np.minimum(end[waited], (trace["begin"] + trace["duration"])[call[waited]])
        real = ends > starts
        running = np.flatnonzero((trace["kind"] == Kind.KERNEL) & (trace.rank == number))
        gpu = Cover(trace["begin"][running], trace["begin"][running] + trace["duration"][running])
        for at, ns in enumerate(
            (under_way.total, under_way.total - under_way.shared(calls),
             Cover(starts[real], ends[real]).total, under_way.shared(gpu))
        ):  # fmt: skip
            sums[at] += ns
    return OfPlace(*sums)


def _by_place(
    trace: Trace, spans: Spans, result: Analysis, regions: Regions, with_gpu: bool, outer: Lanes
) -> None:
    many = len(trace.names)
    site = places(trace, spans.event, regions)
    keys, groups = np.unique(trace["name"][spans.event].astype(np.int64) * many + site, return_inverse=True)
    whole, count = np.bincount(groups, spans.end - spans.begin), np.bincount(groups)
    all_time = trace.length * max(1, len(trace.ranks))
    rows = []
    for i in np.argsort(-whole, kind="stable")[:MOST_ROWS]:
        name, place = int(keys[i] // many), int(keys[i] % many)
        own = np.flatnonzero(groups == i)
        of = of_place(trace, spans, own, outer)
        total = max(1, of.under_way)
        rows.append(
            [trace.names[name], trace.names[place], f"{count[i]:,}", ns_text(of.under_way),
             percent(of.computing / total), percent(of.waiting / total),
             *([percent(of.kernels / total)] if with_gpu else [])]
        )  # fmt: skip
        requests = np.isin(trace["kind"][spans.event[own[0]]], (Kind.SENT, Kind.RECEIVED))
        if requests and of.waiting > LITTLE * all_time and of.computing < 0.25 * total:
            longest = own[spans.waiting[own].argmax()]
            result.findings.append(
                Finding(
                    f"Non-blocking messages ({call_text(trace, name, place)}) were under way in "
                    f"{percent(total / all_time)} of the ranks' time, and only "
                    f"{percent(of.computing / total)} of that was hidden behind computing; in "
                    f"{percent(of.waiting / total)} of it a call waited for them.",
                    f"The longest wait of the {count[i]:,} was {ns_text(float(spans.waiting[longest]))}.",
                    "Start them earlier, or compute between their start and the wait for them.",
                    (int(spans.begin[longest]), int(spans.end[longest])),
                    int(trace.rank[spans.event[longest]]),
                )
            )
    columns = ["messages", "call site", "count", "under way", "computing", "in the call that waited"]
    note = (
        "Time in which at least one of these messages was under way, summed over ranks. The rest of the time "
        "was in other calls."
    )
    if with_gpu:
        columns.append("kernels")
    result.tables.append(Table("Overlap by call site", columns, rows, note, texts=2))
