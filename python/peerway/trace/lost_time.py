"""Lost time by the operation and the place that called: a table, and what to do about the worst."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.trace import waits
from peerway.trace.regions import enclosing
from peerway.trace.store import Trace
from peerway.trace.tables import LITTLE, MOST_ROWS, Analysis, Table, ns_text, percent


def by_place(trace: Trace, lost: waits.Waits, result: Analysis) -> None:
    if not len(lost.event):
        return
    site = trace["site"][lost.event].astype(np.int64)
    # What has no place that called has the region around it.
    site = np.where(site > 0, site, enclosing(trace, lost.event))
    many = len(trace.names)
    names = trace["name"][lost.event].astype(np.int64)
    keys, groups = np.unique((lost.state.astype(np.int64) * many + names) * many + site, return_inverse=True)
    ns = np.bincount(groups, lost.lost)
    rank, guilty = trace.rank[lost.event], trace.rank[lost.culprit]
    order = np.argsort(-ns, kind="stable")[:MOST_ROWS]
    place = np.full(len(keys), -1)
    place[order] = np.arange(len(order))
    span = int((trace["begin"] + trace["duration"]).max()) * max(1, len([r for r in trace.ranks if r >= 0]))
    rows = []
    for number, i in enumerate(order):
        which = np.flatnonzero(place[groups] == number)
        state = waits.STATES[keys[i] // many // many]
        name = trace.names[keys[i] // many % many]
        at = trace.names[keys[i] % many] or "no place known"
        late, share_of_late = _most(guilty[which], lost.lost[which])
        worst, _ = _most(rank[which], lost.lost[which])
        rows.append(
            [state, name, at, f"{len(which):,}", ns_text(float(ns[i])), percent(ns[i] / span),
             ns_text(float(lost.lost[which].max())), str(worst), str(late)]
        )  # fmt: skip
        if ns[i] > LITTLE * span:
            result.findings.append(
                f"{name} at {at} lost {ns_text(float(ns[i]))} ({percent(ns[i] / span)} of the ranks' time) "
                f"to a {state} in {_calls(len(which))}, most of it of rank {worst}; rank {late} was "
                f"the late one for {percent(share_of_late)} of that: {WHAT_TO_DO[state]}."
            )
    columns = [
        "state",
        "operation",
        "place",
        "times",
        "lost",
        "of all time",
        "longest",
        "waits most",
        "late most",
    ]
    note = "of all time: of the trace's length times the ranks."
    result.tables.append(Table("Lost time", columns, rows, note, texts=3))


WHAT_TO_DO = {
    "late sender": "give it less to do before it sends, or receive later",
    "late receiver": "post its receives earlier, or send without blocking",
    "wait at a collective": "balance the work before it, or use the non-blocking form",
    "late raise": "give it less to do before it raises, or wait later",
}


def _calls(count: int) -> str:
    return "1 call" if count == 1 else f"{count:,} calls"


def _most(ranks: NDArray[Any], ns: NDArray[Any]) -> tuple[int, float]:
    """The rank with the most, and its share."""
    found, groups = np.unique(ranks, return_inverse=True)
    sums = np.bincount(groups, ns)
    return int(found[sums.argmax()]), float(sums.max() / sums.sum())
