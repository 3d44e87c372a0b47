"""What a trace says: tables of messages, bursts, lost time and rates against the measured curve, and
findings, each a sentence with its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peerway.trace import lost_time, traffic, waits
from peerway.trace.curve import Curve
from peerway.trace.messages import Pairs, match, match_signals, messages
from peerway.trace.store import Trace
from peerway.trace.tables import MOST_ROWS, Analysis, Table, ns_text, percent
from peerway.units import about_text


def analyse(trace: Trace, curves: Sequence[Curve]) -> Analysis:
    """Compute everything."""
    result = Analysis(_heading(trace))
    _losses(trace, result)
    result.tables.append(_operations(trace))
    if not len(trace):
        return result
    matched, signals = match(trace), match_signals(trace)
    sent = messages(trace, matched, signals)
    lost = waits.find(trace, matched, signals)
    lost_time.by_place(trace, lost, result)
    if len(sent):
        result.tables += [traffic.by_size(sent), traffic.by_path(trace, sent)]
        traffic.by_pair(trace, sent, result)
        traffic.against_curves(trace, sent, curves, result)
        traffic.in_bursts(trace, sent, result)
    _unmatched(trace, matched, result)
    return result


def _heading(trace: Trace) -> list[str]:
    about = trace.about
    end = int((trace["begin"] + trace["duration"]).max()) if len(trace) else 0
    ranks = [rank for rank in trace.ranks if rank >= 0]
    lines = [" ".join(about.get("command", []))] if about.get("command") else []
    lines.append(
        f"{len(ranks)} ranks, {len(trace.threads)} threads, {len(trace):,} events in {ns_text(end)}; "
        f"level {about.get('level') or 'unknown'}, {about.get('began', '')}"
    )
    return lines


def _losses(trace: Trace, result: Analysis) -> None:
    """What the trace lacks comes first: everything below is without it."""
    if trace.dropped:
        share = trace.dropped / (trace.dropped + len(trace))
        result.findings.append(
            f"{trace.dropped:,} events ({percent(share)}) are lost, the first of threads whose "
            "rings were full: messages whose other end is among them count as unmatched. Record with more "
            "--events, or less time."
        )
    result.findings += [f"Not read: {line}." for line in trace.about.get("lost", [])]
    for one in trace.about.get("corrections", []):
        if not one["messages"]:
            result.findings.append(
                f"The clock of host {one['host']} could not be brought together with the others: "
                "no message goes there and back. Times of different hosts do not compare."
            )
    for one in trace.open[:MOST_ROWS]:
        thread = trace.threads[one.thread]
        peer = f" with rank {one.peer}" if one.peer >= 0 else ""
        result.findings.append(
            f"Rank {thread.rank} (process {thread.pid}) ended inside {one.name or 'an operation'}{peer}, "
            f"which it had begun at {ns_text(one.begin)}."
        )


def _operations(trace: Trace) -> Table:
    """Of the sums, which are complete also where events are not."""
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
        "Time is summed over all threads; a call inside a region counts for both.",
    )  # fmt: skip


def _unmatched(trace: Trace, matched: Pairs, result: Analysis) -> None:
    for alone, what, other in (
        (matched.alone_first, "sends", "no receive"), (matched.alone_second, "receives", "no send"),
    ):  # fmt: skip
        # The other end of those that are left out is at a rank that did not record.
        which = alone[np.isin(trace["peer"][alone], trace.ranks)]
        if len(which):
            first = which[0]
            result.findings.append(
                f"{len(which):,} {what} have {other} in the trace; the first: rank {trace.rank[first]} "
                f"with rank {trace['peer'][first]}, tag {trace['tag'][first]}, "
                f"in {trace.names[trace['where'][first]]}."
            )
