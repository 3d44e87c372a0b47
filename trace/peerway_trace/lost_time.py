"""Lost time by operation and call site: a table, and what to do about the worst."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace import waits
from peerway_trace.busy_hosts import BusyHost, caution
from peerway_trace.regions import Regions, call_text, places
from peerway_trace.store import Trace
from peerway_trace.tables import LITTLE, MOST_ROWS, Analysis, Finding, Table, count_text, ns_text, percent


def by_place(
    trace: Trace,
    lost: waits.Waits,
    result: Analysis,
    regions: Regions | None = None,
    busy: Sequence[BusyHost] = (),
) -> None:
    """The table of lost time, and a finding for each place that lost more than a little."""
    if not len(lost.event):
        return
    site = places(trace, lost.event, regions)
    many = len(trace.names)
    names = trace["name"][lost.event].astype(np.int64)
    keys, groups = np.unique((lost.state.astype(np.int64) * many + names) * many + site, return_inverse=True)
    ns = np.bincount(groups, lost.lost)
    order = np.argsort(-ns, kind="stable")[:MOST_ROWS]
    place = np.full(len(keys), -1)
    place[order] = np.arange(len(order))
    span = trace.length * max(1, len(trace.ranks))
    rows = []
    for number, i in enumerate(order):
        key = int(keys[i])
        state, name, at = waits.STATES[key // many // many], key // many % many, key % many
        loss = _Lost(trace, lost, np.flatnonzero(place[groups] == number))
        rows.append(
            [state, trace.names[name], trace.names[at], f"{len(loss.which):,}", ns_text(loss.ns),
             percent(loss.ns / span), ns_text(loss.longest_ns), str(loss.worst[0]), str(loss.late[0])]
        )  # fmt: skip
        if loss.ns > LITTLE * span:
            todo = caution(busy, loss.late[0]) or WHAT_TO_DO[state]
            result.findings.append(_finding(loss, state, call_text(trace, name, at), loss.ns / span, todo))
    columns = [
        "state", "operation", "call site", "times", "lost", "of all time", "longest", "waits most",
        "late most",
    ]  # fmt: skip
    note = (
        "Of all time: the share of the trace's length times the ranks. A call site is an address if the "
        "program was compiled without -g, and the enclosing region where the place is not known. The last "
        "two columns name ranks: the one that lost most of this time, and the one that caused most of it."
    )
    result.tables.append(Table("Lost time", columns, rows, note, texts=3))


class _Lost:
    """The time that calls of one operation at one place lost to one state."""

    def __init__(self, trace: Trace, lost: waits.Waits, which: NDArray[Any]) -> None:
        ns = lost.lost[which]
        longest = lost.event[which[ns.argmax()]]
        self.which = which
        self.ns, self.longest_ns = float(ns.sum()), float(ns.max())
        self.begin = int(trace["begin"][longest])
        self.end = self.begin + int(trace["duration"][longest])
        self.rank = int(trace.rank[longest])
        self.worst = _most(trace.rank[lost.event[which]], ns)
        self.late = _most(trace.rank[lost.culprit[which]], ns)


def _finding(lost: _Lost, state: str, call: str, share: float, todo: str) -> Finding:
    (late, of_late), (worst, of_worst) = lost.late, lost.worst
    return Finding(
        f"{_begun(call)} lost {ns_text(lost.ns)} ({percent(share)} of the ranks' time, "
        f"{count_text(len(lost.which), 'call', 'calls')}) to {STATE_TEXT[state]}. "
        f"Rank {late} caused {_part(of_late)} of it.",
        f"Rank {worst} lost {_part(of_worst)} of it; the longest wait was {ns_text(lost.longest_ns)}, at "
        f"{ns_text(lost.begin)} on rank {lost.rank}.",
        todo,
        (lost.begin, lost.end),
        lost.rank,
    )


STATE_TEXT = {
    "late sender": "a sender that came late",
    "late receiver": "a receiver that came late",
    "wait at a collective": "ranks that came late to a collective",
    "late notification": "a signal that was notified late",
    "imbalance": "ranks that computed longer before a collective",
    "rendezvous wait": "a receiver that had posted its receive and was in no call to take the message",
    "proxy stall": "a proxy that was busy or asleep",
    "staging back-pressure": "a receiver that emptied its bounce buffers slowly",
    "late wake-up": "waking late, after the signal had been notified",
}
WHAT_TO_DO = {
    "late sender": "Let the late rank do less before it sends, or receive later.",
    "late receiver": "Let the late rank post its receives earlier, or send without blocking.",
    "wait at a collective": "Find out what the late rank waited for itself, or use the non-blocking form.",
    "late notification": "Let the late rank do less before it notifies the signal, or wait later.",
    "imbalance": "Give the late rank less of the work before the collective.",
    "rendezvous wait": "Let the receiver wait, test or probe earlier, or give its MPI a thread for progress; "
    "smaller messages go without rendezvous.",
    "proxy stall": "Give the proxy a core of its own, or spread plans over more processes.",
    "late wake-up": "Check whether its host has more ranks and threads than cores, or runs other programs.",
    "staging back-pressure": "Let the receiver make progress more often (flush, wait), or give it more "
    "bounce buffers; memory that both can map needs none.",
}


def _begun(call: str) -> str:
    """The name as the beginning of a sentence; a name such as all_gather is not capitalised."""
    return call if "_" in call.partition(" ")[0] else call[:1].upper() + call[1:]


def _part(share: float) -> str:
    return percent(share) if share < 0.995 else "all"


def _most(ranks: NDArray[Any], ns: NDArray[Any]) -> tuple[int, float]:
    """The rank with the largest value, and its share."""
    result, groups = np.unique(ranks, return_inverse=True)
    sums = np.bincount(groups, ns)
    return int(result[sums.argmax()]), float(sums.max() / sums.sum())
