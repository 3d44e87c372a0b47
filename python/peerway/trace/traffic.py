"""Tables of messages: by size, path and pair, in bursts, and against the measured curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.trace import bursts
from peerway.trace.curve import Curve
from peerway.trace.messages import Messages
from peerway.trace.rings import Kind
from peerway.trace.store import Trace
from peerway.trace.tables import LITTLE, MOST_ROWS, Analysis, Scatter, Table, ns_text, percent
from peerway.units import about_text, bandwidth_text, size_text

GAP_NS = 10_000  # of the bursts that are listed
SLOW = 2.0  # a message that takes so many times the curve is below half of it


def _statistics(title: str, first: str, groups: NDArray[Any], labels: list[str], sent: Messages) -> Table:
    """Count, bytes, times and rate of groups of messages; `groups` has indices of `labels`."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(len(labels) + 1))
    rows = []
    for i, label in enumerate(labels):
        which = order[starts[i] : starts[i + 1]]
        if not len(which):
            continue
        p50, p99 = np.percentile(sent.moving[which], (50, 99))
        size, ns = int(sent.bytes[which].sum()), int(sent.moving[which].sum())
        rate = bandwidth_text(size / ns * 1e3) if ns else ""
        rows.append([label, f"{len(which):,}", about_text(size), ns_text(p50), ns_text(p99), rate])
    return Table(title, [first, "messages", "bytes", "p50", "p99", "rate"], rows)


def by_size(sent: Messages) -> Table:
    classes = np.ceil(np.log2(np.maximum(sent.bytes, 1))).astype(np.int64) + (sent.bytes > 0)
    labels = ["0 B", "1 B", *(f"to {size_text(1 << power)}" for power in range(1, 64))]
    table = _statistics("Messages by size", "size", classes, labels, sent)
    table.note = "Times are those of moving: without the wait of one side for the other."
    return table


def by_path(trace: Trace, sent: Messages) -> Table:
    where = trace["where"][sent.event].astype(np.int64)
    known, groups = np.unique(where, return_inverse=True)
    labels = [trace.names[index] or "unknown" for index in known]
    return _statistics("Messages by path or communicator", "path or communicator", groups, labels, sent)


def by_pair(trace: Trace, sent: Messages, result: Analysis) -> None:
    size = int(max(sent.source.max(), sent.target.max())) + 1
    known = (sent.source >= 0) & (sent.target >= 0)
    pair = sent.source[known].astype(np.int64) * size + sent.target[known]
    volume = np.bincount(pair, sent.bytes[known], size * size).reshape(size, size)
    result.matrix = volume
    keys, groups = np.unique(pair, return_inverse=True)
    order = np.argsort(-np.bincount(groups, sent.bytes[known]))[:MOST_ROWS]
    place = np.full(len(keys), -1)
    place[order] = np.arange(len(order))
    chosen = place[groups] >= 0
    labels = [f"{keys[i] // size} to {keys[i] % size}" for i in order]
    of_known = Messages(*(getattr(sent, name)[known][chosen] for name in Messages.__dataclass_fields__))
    result.tables.append(
        _statistics("Messages by pair of ranks", "ranks", place[groups][chosen], labels, of_known)
    )
    if len(keys) > 1 and volume.sum():
        sends = volume.sum(axis=1)
        busy = sends[sends > 0]
        if busy.max() > 2 * busy.mean():
            result.findings.append(
                f"Rank {int(sends.argmax())} sends {about_text(float(sends.max()))}, "
                f"{sends.max() / busy.mean():.1f} times the mean of those that send: the traffic is uneven."
            )


def against_curves(trace: Trace, sent: Messages, curves: Sequence[Curve], result: Analysis) -> None:
    """Against the curve of the path that carried them."""
    kinds = trace["kind"][sent.event]
    where = trace["where"][sent.event]
    rows, random = [], np.random.default_rng(1)
    for name in np.unique(where):
        for op, wanted in (("put", (Kind.PUT,)), ("get", (Kind.GET,)), ("send", (Kind.SEND, Kind.ISEND))):
            which = np.flatnonzero(
                (where == name) & np.isin(kinds, wanted) & (sent.moving > 0) & (sent.bytes > 0)
            )
            if not len(which):
                continue
            curve = next(
                (c for c in curves if c.op == op and (c.path == trace.names[name] or op == "send")), None
            )
            some = which if len(which) <= 2000 else np.sort(random.choice(which, 2000, replace=False))
            result.scatters.append(
                Scatter(f"{op}, {trace.names[name]}", sent.bytes[some], sent.moving[some], curve)
            )
            if curve is None:
                continue
            expected = curve.at(sent.bytes[which].astype(float))
            slow = sent.moving[which] > SLOW * expected
            beyond = int(np.maximum(sent.moving[which] - expected, 0)[slow].sum())
            rows.append(
                [f"{op}, {trace.names[name]}", f"{len(which):,}", percent(slow.mean()),
                 percent(sent.bytes[which][slow].sum() / sent.bytes[which].sum()), ns_text(beyond)]
            )  # fmt: skip
            if slow.mean() > LITTLE:
                result.findings.append(
                    f"{percent(slow.mean())} of the {len(which):,} messages by {op} over {trace.names[name]} "
                    f"took more than {SLOW:g} times what the measured curve says, together {ns_text(beyond)} "
                    "more: look for ranks that share cores or links at those times."
                )
    if rows:
        columns = ["path", "messages", "below half the curve", "of the bytes", "time beyond the curve"]
        result.tables.append(Table("Rates against the measured curve", columns, rows))


def in_bursts(trace: Trace, sent: Messages, result: Analysis) -> None:
    rows = []
    for gap in bursts.GAPS_NS:
        found = bursts.find(trace, sent, gap)
        middle = [
            np.median(part) if len(found) else 0 for part in (found.messages, found.bytes, found.length)
        ]
        rate = bandwidth_text(float(np.median(found.rate)) / 1e6) if len(found) else ""
        rows.append(
            [ns_text(gap), f"{len(found):,}", percent(found.share), f"{middle[0]:.0f}",
            about_text(float(middle[1])),  ns_text(float(middle[2])), rate]
        )  # fmt: skip
    columns = ["gap below", "bursts", "of the messages", "messages", "bytes", "length", "rate"]
    note = "A burst: messages of one rank with gaps below g between them; medians of the bursts."
    result.tables.append(Table("Bursts, and how they depend on the gap", columns, rows, note))
    found = bursts.find(trace, sent, GAP_NS)
    order = np.argsort(-found.bytes, kind="stable")[:MOST_ROWS]
    rows = [
        [str(found.rank[i]), ns_text(float(found.begin[i])), ns_text(float(found.length[i])),
         f"{found.messages[i]:,}", about_text(float(found.bytes[i])), str(found.peers[i]),
         str(found.in_flight[i]), bandwidth_text(float(found.rate[i]) / 1e6),
         ns_text(float(found.stall[i])) if found.stall[i] >= 0 else "end"]
        for i in order
    ]  # fmt: skip
    columns = [
        "rank",
        "begins at",
        "length",
        "messages",
        "bytes",
        "peers",
        "in flight",
        "rate",
        "stall after",
    ]
    result.tables.append(Table(f"The largest bursts (gap below {ns_text(GAP_NS)})", columns, rows))
