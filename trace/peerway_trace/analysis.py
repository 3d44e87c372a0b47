"""Analyses a trace. The result has tables of messages, bursts, lost time and rates compared with the measured
curve, and findings, each a sentence with its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from peerway_common.units import about_text
from peerway_trace import (
    burst_tables,
    busy_hosts,
    critical,
    idle_gpus,
    lost_time,
    mismatches,
    overlap,
    traffic,
    waits,
)
from peerway_trace.curve import Curve
from peerway_trace.lanes import lanes
from peerway_trace.messages import match, match_signals, messages
from peerway_trace.regions import Regions
from peerway_trace.rings import Kind
from peerway_trace.store import Trace
from peerway_trace.tables import MOST_ROWS, Analysis, Finding, Table, count_text, ns_text, percent

_WITH_A_RANK = (
    Kind.PUT, Kind.GET, Kind.NOTIFY, Kind.SEND, Kind.RECV, Kind.ISEND, Kind.IRECV, Kind.RMA_PUT, Kind.RMA_GET,
)  # fmt: skip


def analyse(trace: Trace, curves: Sequence[Curve]) -> Analysis:
    """Compute all tables and findings."""
    result = Analysis(_heading(trace))
    _losses(trace, result)
    busy = busy_hosts.find(trace)
    busy_hosts.tell(busy, result)
    result.tables.append(_operations(trace))
    if not len(trace):
        return result
    matched, signals = match(trace), match_signals(trace)
    outer, regions = lanes(trace), Regions(trace)
    path = critical.find(trace, matched, signals, outer, regions)
    lost = waits.find(trace, matched, signals, outer)
    lost_time.by_place(trace, lost, result, regions, busy)
    _important(trace, lost, result)
    waited = int(lost.lost.sum())
    del lost
    if path is not None:
        critical.tell(path, waited, result, busy)
        del path
    idle_gpus.tell(trace, result)
    sent = messages(trace, matched, signals)
    if len(sent):
        overlap.tell(trace, sent, outer, result, regions)
        del regions
        result.tables += [traffic.by_size(sent), traffic.by_path(trace, sent)]
        traffic.by_pair(sent, result)
        traffic.against_curves(trace, sent, curves, outer, result)
        burst_tables.tell(trace, sent, curves, result)
    mismatches.tell(trace, matched, result)
    return result


def _important(trace: Trace, lost: waits.Waits, result: Analysis) -> None:
    """The events that the timeline should show if it cannot show all: the waits."""
    begin = trace["begin"][lost.event]
    result.important = np.stack([begin, begin + trace["duration"][lost.event], lost.lost], axis=1)


def _heading(trace: Trace) -> list[str]:
    about = trace.about
    events = "no events"
    if len(trace):
        length = f" in {ns_text(trace.length)}" if trace.length else ""
        events = f"{count_text(len(trace), 'event', 'events')}{length}"
    processes = len({(thread.host, thread.pid) for thread in trace.threads})
    whole = (
        count_text(len(trace.ranks), "rank", "ranks")
        if trace.ranks
        else count_text(processes, "process", "processes")
    )
    lines = [" ".join(about.get("command", []))] if about.get("command") else []
    began = f", {about['began']}" if about.get("began") else ""
    lines.append(
        f"{whole}, {count_text(len(trace.threads), 'thread', 'threads')}, {events}; "
        f"level {about.get('level') or 'unknown'}{began}"
    )
    return lines


def _losses(trace: Trace, result: Analysis) -> None:
    """How the command ended, and what the trace lacks. These findings come first, because all others are
    without the missing data.
    """
    if status := trace.about.get("status"):
        result.findings.append(
            Finding(
                f"The command ended with status {status}.",
                "The trace ends there: what its ranks would have done afterwards is missing.",
            )
        )
    result.findings += [*_no_events(trace), *_absent(trace)]
    if trace.dropped:
        share = trace.dropped / (trace.dropped + len(trace))
        result.findings.append(
            Finding(
                f"{count_text(trace.dropped, 'event', 'events')} ({percent(share)}) are lost, the first of "
                "threads whose rings were full.",
                "Messages that lost one end count below as sends without a receive, or the reverse.",
                "Record with more --events, or a shorter time.",
            )
        )
    result.findings += [Finding(f"Not read: {line}.") for line in trace.about.get("lost", [])]
    for correction in trace.about.get("corrections", []):
        if not correction["messages"]:
            result.findings.append(
                Finding(
                    f"The clock of host {correction['host']} could not be aligned with the others: "
                    "do not compare its times with those of other hosts.",
                    "The trace has no messages to it and back from it.",
                    "Synchronise the hosts' clocks, or let the program begin with a message each way.",
                )
            )
    for operation in trace.open[:MOST_ROWS]:
        thread = trace.threads[operation.thread]
        peer = f" with rank {operation.peer}" if operation.peer >= 0 else ""
        result.findings.append(
            Finding(
                f"Rank {thread.rank} (process {thread.pid}) ended inside "
                f"{operation.name or 'an operation'}{peer}, "
                f"which it had begun at {ns_text(operation.begin)}.",
                span=(operation.begin, max(trace.length, operation.begin)),
                rank=thread.rank,
            )
        )


def _no_events(trace: Trace) -> Iterator[Finding]:
    """Say why there is nothing to analyse; without a finding it would look as if all were well."""
    if len(trace):
        return
    level = trace.about.get("level") or "full"
    if level != "full":
        yield Finding(
            f"The trace has no events: it was recorded with --level {level}, which keeps sums alone.",
            todo="Record with --level full to see waits, messages and the timeline.",
        )
    elif trace.threads:
        yield Finding(
            "The trace has no events: its processes began to record, and called nothing that is recorded.",
            todo="If recording was limited (--from, --for, --region, start and stop), check when that was.",
        )
    else:
        yield Finding(
            "The trace has no events: no process of the command made a Peerway context, called MPI or named "
            "a region.",
            todo="If it is an MPI program, name its compiler with --mpicc.",
        )


def _absent(trace: Trace) -> Iterator[Finding]:
    """Ranks with which others communicated but that did not record, without those that were left out on
    purpose.
    """
    if trace.about.get("ranks") or not trace.ranks:
        return
    named = np.unique(trace["peer"][np.isin(trace["kind"], _WITH_A_RANK)])
    if not len(absent := np.setdiff1d(named[named >= 0], trace.ranks)):
        return
    first = ", ".join(map(str, absent[:MOST_ROWS])) + (", ..." if len(absent) > MOST_ROWS else "")
    yield Finding(
        f"{count_text(len(absent), 'rank is', 'ranks are')} not in the trace, though others communicate "
        f"with {'it' if len(absent) == 1 else 'them'}: {first}.",
        "Of these messages only one side is known: their times are those of its call.",
        "See whether the rank ended before it recorded, or its host could not write the rings.",
    )


def _operations(trace: Trace) -> Table:
    """The table of operations, from the sums, which are complete even if events were lost."""
    sums = trace.sums
    groups: dict[str, list[int]] = {}
    for name, count, size, ns in zip(sums["name"], sums["count"], sums["bytes"], sums["ns"], strict=True):
        group = groups.setdefault(trace.names[name] or "unnamed", [0, 0, 0])
        for i, value in enumerate((count, size, ns)):
            group[i] += int(value)
    rows = [
        [
            name,
            f"{count:,}",
            about_text(size) if name not in ("wait",) else "",
            ns_text(ns),
            ns_text(ns / count),
        ]
        for name, (count, size, ns) in sorted(groups.items(), key=lambda item: -item[1][2])
    ]
    return Table(
        "Operations", ["operation", "calls", "bytes", "time", "mean"], rows[: 2 * MOST_ROWS],
        "Time is summed over all threads; a call inside a region counts for both. Requests overlap each "
        "other, so their sums until complete may be longer than the program.",
    )  # fmt: skip
