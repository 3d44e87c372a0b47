"""Tables of messages: by size, path and pair, and compared with the measured curve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.units import about_text, bandwidth_text, size_text
from peerway_trace.causes import CAUSES, WHAT_TO_DO, Causes
from peerway_trace.curve import OPS, Curve, ambiguous, curve_of, stack_of
from peerway_trace.lanes import Lanes
from peerway_trace.messages import Messages, size_classes
from peerway_trace.store import Trace
from peerway_trace.tables import (
    LITTLE,
    MOST_ROWS,
    Analysis,
    Finding,
    Matrix,
    Scatter,
    Table,
    ns_text,
    percent,
)

SLOW = 2.0  # a message is slow if it takes this many times as long as the curve says


def _statistics(title: str, first: str, groups: NDArray[Any], labels: list[str], sent: Messages) -> Table:
    """Number, bytes, times and rate of groups of messages; `groups` has indices into `labels`."""
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
    labels = ["0 B", "1 B", *(f"to {size_text(1 << power)}" for power in range(1, 64))]
    table = _statistics("Messages by size", "size", size_classes(sent.bytes), labels, sent)
    table.note = "Times are those of the transfer, without the wait of one side for the other."
    return table


def by_path(trace: Trace, sent: Messages) -> Table:
    where = trace["where"][sent.event].astype(np.int64)
    known, groups = np.unique(where, return_inverse=True)
    labels = [trace.names[index] or "unknown" for index in known]
    return _statistics("Messages by path or communicator", "path or communicator", groups, labels, sent)


def _matrix(sent: Messages) -> Matrix | None:
    """The matrix of messages whose both ends are known; None if there are none."""
    known = (sent.source >= 0) & (sent.target >= 0)
    if not known.any():
        return None
    size = int(max(sent.source[known].max(), sent.target[known].max())) + 1
    pair = sent.source[known].astype(np.int64) * size + sent.target[known]
    least = np.full(size * size, np.iinfo(np.int64).max)
    most = np.zeros(size * size, np.int64)
    np.minimum.at(least, pair, sent.bytes[known])
    np.maximum.at(most, pair, sent.bytes[known])
    count = np.bincount(pair, minlength=size * size)
    least[count == 0] = 0
    sums = (np.bincount(pair, values[known], size * size) for values in (sent.bytes, sent.moving))
    volume, ns = sums
    return Matrix(*(part.reshape(size, size) for part in (count, volume, least, most, ns)))


def by_pair(sent: Messages, result: Analysis) -> None:
    matrix = result.matrix = _matrix(sent)
    if matrix is None:
        return
    volume, keys = matrix.bytes, np.flatnonzero(matrix.messages)
    rows = []
    for key in keys[np.argsort(-volume.ravel()[keys], kind="stable")[:MOST_ROWS]].tolist():
        at = divmod(key, len(volume))
        rate = float(matrix.rate[at])
        rows.append(
            [f"{at[0]} to {at[1]}", f"{matrix.messages[at]:,}", about_text(float(volume[at])),
             about_text(float(matrix.smallest[at])), about_text(float(matrix.mean[at])),
             about_text(float(matrix.largest[at])), ns_text(float(matrix.ns[at])),
             bandwidth_text(rate) if rate else ""]
        )  # fmt: skip
    columns = ["ranks", "messages", "bytes", "smallest", "mean", "largest", "time", "rate"]
    note = "Time and rate are those of the transfers, summed over the messages."
    result.tables.append(Table("Messages by pair of ranks", columns, rows, note))
    if len(keys) > 1 and volume.sum():
        sends = volume.sum(axis=1)
        busy = sends[sends > 0]
        if busy.max() > 2 * busy.mean():
            result.findings.append(
                Finding(
                    f"Rank {int(sends.argmax())} sends {about_text(float(sends.max()))}, "
                    f"{sends.max() / busy.mean():.1f} times the mean of those that send.",
                    f"The {len(busy)} ranks that send have {about_text(float(busy.mean()))} on average; the "
                    "matrix shows to whom.",
                    "Distribute this rank's data over more ranks, or send along a tree.",
                )
            )


def against_curves(
    trace: Trace, sent: Messages, curves: Sequence[Curve], outer: Lanes, result: Analysis
) -> None:
    """Compare messages with the curve of the path that carried them, and say why slow ones were slow."""
    kinds = trace["kind"][sent.event]
    where = trace["where"][sent.event]
    causes = Causes(trace, sent, outer) if curves else None
    whole = causes.whole if causes else sent.moving
    rows, random = [], np.random.default_rng(1)
    reasons: list[list[str]] = []
    for name in np.unique(where):
        for op, wanted in OPS.items():
            which = np.flatnonzero((where == name) & np.isin(kinds, wanted) & (whole > 0) & (sent.bytes > 0))
            if not len(which):
                continue
            curve = curve_of(trace, curves, op, trace.names[name])
            some = which if len(which) <= 2000 else np.sort(random.choice(which, 2000, replace=False))
            label = f"{op}, {trace.names[name]}"
            result.scatters.append(Scatter(label, sent.bytes[some], whole[some], curve))
            if curve is None or causes is None:
                continue
            expected = curve.at(sent.bytes[which].astype(float))
            slow = whole[which] > SLOW * expected
            beyond = np.maximum(whole[which] - expected, 0)[slow]
            rows.append(
                [label, f"{len(which):,}", percent(slow.mean()),
                 percent(sent.bytes[which][slow].sum() / sent.bytes[which].sum()),
                 ns_text(float(beyond.sum()))]
            )  # fmt: skip
            if not slow.any():
                continue
            cause = causes.of(which[slow], expected[slow])
            _record(sent, result, which[slow], beyond)
            worst = _by_cause(sent, which, slow, cause, beyond, label, reasons)
            if slow.mean() > LITTLE:
                result.findings.append(
                    _slow(trace, sent, which, slow, cause, beyond, worst, f"by {op} over {trace.names[name]}")
                )
    _say_ambiguous(trace, curves, result)
    if rows:
        columns = ["path", "messages", "below half the curve", "of the bytes", "time beyond the curve"]
        result.tables.append(Table("Rates against the measured curve", columns, rows))
    if reasons:
        columns = ["path", "cause", "messages", "of all messages", "of the bytes", "time beyond the curve"]
        note = f"Messages that took more than {SLOW:g} times the curve's time, by what took most of it."
        result.tables.append(Table("Slow messages by cause", columns, reasons, note, texts=2))


def _say_ambiguous(trace: Trace, curves: Sequence[Curve], result: Analysis) -> None:
    """Add a finding if the curve of MPI's messages is one of several."""
    if paths := ambiguous(trace, curves):
        result.findings.append(
            Finding(
                f"MPI messages are not compared with a curve: the records are of several paths of "
                f"{stack_of(trace)} ({', '.join(paths)}), and the trace does not say which the program used.",
                todo="Give --bench records of that path alone.",
            )
        )


def _record(sent: Messages, result: Analysis, which: NDArray[Any], ns: NDArray[Any]) -> None:
    """Remember messages that the timeline should show."""
    rows = np.stack([sent.begin[which], sent.end[which], ns.astype(np.int64)], axis=1)
    result.important = rows if result.important is None else np.concatenate([result.important, rows])


def _by_cause(
    sent: Messages, which: NDArray[Any], slow: NDArray[Any], cause: NDArray[Any], beyond: NDArray[Any],
    label: str, rows: list[list[str]],
) -> int:  # fmt: skip
    """Add a row for each cause; return the cause of most messages."""
    count = np.bincount(cause, minlength=len(CAUSES))
    bytes_, ns = (np.bincount(cause, v, len(CAUSES)) for v in (sent.bytes[which][slow], beyond))
    for i in np.argsort(-count, kind="stable"):
        if count[i]:
            rows.append(
                [label, CAUSES[i], f"{count[i]:,}", percent(count[i] / len(which)),
                 percent(bytes_[i] / sent.bytes[which].sum()), ns_text(float(ns[i]))]
            )  # fmt: skip
    return int(count.argmax())


def _slow(
    trace: Trace, sent: Messages, which: NDArray[Any], slow: NDArray[Any], cause: NDArray[Any],
    beyond: NDArray[Any], worst: int, operation: str,
) -> Finding:  # fmt: skip
    longest = int(np.flatnonzero(cause == worst)[beyond[cause == worst].argmax()])
    message = which[slow][longest]
    begin, end = int(sent.begin[message]), int(sent.end[message])
    return Finding(
        f"{percent(slow.mean())} of the {len(which):,} messages {operation} took more than {SLOW:g} times "
        f"the time of the measured curve, together {ns_text(float(beyond.sum()))} more; the cause of "
        f"{percent(float((cause == worst).mean()))} of these is: {CAUSES[worst]}.",
        f"The worst of them has {about_text(float(sent.bytes[message]))} from rank {sent.source[message]} to "
        f"rank {sent.target[message]}, at {ns_text(begin)}, and lost {ns_text(float(beyond[longest]))}.",
        WHAT_TO_DO[CAUSES[worst]],
        (begin, end),
        int(trace.rank[sent.event[message]]),
    )
