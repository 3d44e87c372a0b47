"""Tables, figures and findings about bursts: how they depend on the gap, which are the largest, and how fast
each was compared with the measured curve. It also writes a file with all bursts for other tools.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.units import about_text, bandwidth_text, size_text
from peerway_trace import bursts
from peerway_trace.bursts import Bursts
from peerway_trace.curve import Curve, streamed_ns
from peerway_trace.messages import Messages, match, match_signals, messages, size_classes
from peerway_trace.store import Trace
from peerway_trace.tables import (
    LITTLE,
    MOST_ROWS,
    Analysis,
    Bars,
    Distribution,
    Finding,
    Table,
    ns_text,
    percent,
)  # fmt: skip

if TYPE_CHECKING:
    import pyarrow as pa

GAP_NS = 10_000  # the gap of the bursts that are listed and judged
SLOW = 0.5  # a burst below this share of the curve's rate is slow


def tell(trace: Trace, sent: Messages, curves: Sequence[Curve], result: Analysis) -> None:
    """Everything that a report says about bursts."""
    expected = streamed_ns(trace, sent, curves)
    # In a large trace, the bursts of one gap need much memory, so they are dropped before those of the next.
    rows = [_of_gap(bursts.find(trace, sent, gap, expected)) for gap in bursts.GAPS_NS]
    columns = [
        "gap below", "bursts", "of the messages", "messages", "bytes", "length", "rate", "of the curve",
    ]  # fmt: skip
    note = "A burst: messages of one rank with gaps below g between them; medians of the bursts."
    if any(row[1] != "0" for row in rows):
        result.tables.append(Table("Bursts, and how they depend on the gap", columns, rows, note))
    grouped = bursts.find(trace, sent, GAP_NS, expected)
    result.tables.append(_largest(grouped))
    if not len(grouped):
        return
    _against_curves(grouped, result)
    gap = f"gap below {ns_text(GAP_NS)}"
    result.distributions += [
        Distribution(f"Bursts by rate ({gap})", "rate", grouped.rate[grouped.bytes > 0] / 1e6, "rate"),
        Distribution(f"Bursts by length ({gap})", "length", grouped.length, "time"),
        Distribution(f"Bursts by bytes ({gap})", "bytes", grouped.bytes[grouped.bytes > 0], "size"),
    ]
    if np.isfinite(grouped.of_curve).any():
        known = grouped.of_curve[np.isfinite(grouped.of_curve)]
        result.distributions.append(
            Distribution(f"Bursts by their share of the curve's rate ({gap})", "share", known, "share")
        )
    labels, count = _sizes(sent.bytes[grouped.inside])
    result.bars.append(Bars(f"Messages of bursts by size ({gap})", "messages", labels, count))


def _of_gap(grouped: Bursts) -> list[str]:
    """One row of the first table."""
    middle = [
        np.median(part) if len(grouped) else 0 for part in (grouped.messages, grouped.bytes, grouped.length)
    ]
    rate = bandwidth_text(float(np.median(grouped.rate)) / 1e6) if len(grouped) else ""
    known = grouped.of_curve[np.isfinite(grouped.of_curve)]
    return [
        ns_text(grouped.gap_ns), f"{len(grouped):,}", percent(grouped.share), f"{middle[0]:.0f}",
        about_text(float(middle[1])), ns_text(float(middle[2])), rate,
        percent(float(np.median(known))) if len(known) else "",
    ]  # fmt: skip


def _largest(grouped: Bursts) -> Table:
    rows = [
        [str(grouped.rank[i]), ns_text(float(grouped.begin[i])), ns_text(float(grouped.length[i])),
         f"{grouped.messages[i]:,}", about_text(float(grouped.bytes[i])), str(grouped.peers[i]),
         str(grouped.in_flight[i]), bandwidth_text(float(grouped.rate[i]) / 1e6),
         percent(float(grouped.of_curve[i])) if np.isfinite(grouped.of_curve[i]) else "",
         ns_text(float(grouped.stall[i])) if grouped.stall[i] >= 0 else "end"]
        for i in np.argsort(-grouped.bytes, kind="stable")[:MOST_ROWS]
    ]  # fmt: skip
    columns = [
        "rank", "begins at", "length", "messages", "bytes", "peers", "in flight", "rate", "of the curve",
        "stall after",
    ]  # fmt: skip
    note = (
        "In flight: the most messages at one time. Of the curve: the rate, as a share of the measured rate "
        "of the same messages in a stream. Stall after: the time until this rank sends again."
    )
    return Table(f"The largest bursts (gap below {ns_text(GAP_NS)})", columns, rows, note)


def _against_curves(grouped: Bursts, result: Analysis) -> None:
    """The table by rank, and a finding if bursts of many bytes were slow."""
    known = np.flatnonzero(np.isfinite(grouped.of_curve) & (grouped.bytes > 0))
    if not len(known):
        return
    slow = known[grouped.of_curve[known] < SLOW]
    rows = []
    for rank in np.unique(grouped.rank[known]).tolist():
        own, late = known[grouped.rank[known] == rank], slow[grouped.rank[slow] == rank]
        p5, p50 = np.percentile(grouped.of_curve[own], (5, 50))
        rows.append(
            [str(rank), f"{len(own):,}", percent(float(p50)), percent(float(p5)), f"{len(late):,}",
             percent(grouped.bytes[late].sum() / grouped.bytes[own].sum()), ns_text(_beyond(grouped, late))]
        )  # fmt: skip
    columns = [
        "rank", "bursts", "median of the curve", "p5", "below half", "of the bytes", "time beyond the curve",
    ]  # fmt: skip
    note = "Only bursts in which every message has a measured curve."
    result.tables.append(Table("Bursts against the measured curve", columns, rows[:MOST_ROWS], note))
    share = grouped.bytes[slow].sum() / grouped.bytes[known].sum()
    if share <= LITTLE:
        return
    worst = int(slow[(grouped.length - grouped.expected)[slow].argmax()])
    begin, length = int(grouped.begin[worst]), int(grouped.length[worst])
    result.findings.append(
        Finding(
            f"{percent(float(share))} of the bytes in bursts moved at less than half of the measured "
            f"curve's rate: {len(slow):,} of {len(known):,} bursts, which together took "
            f"{ns_text(_beyond(grouped, slow))} longer than the curve's time.",
            f"The worst of them has {grouped.messages[worst]:,} messages with "
            f"{about_text(float(grouped.bytes[worst]))} of rank {grouped.rank[worst]}, at {ns_text(begin)}: "
            f"{bandwidth_text(float(grouped.rate[worst]) / 1e6)}, {percent(float(grouped.of_curve[worst]))} "
            "of the curve.",
            "See what its messages waited for (slow messages by cause), and how many were in flight.",
            (begin, begin + length),
            int(grouped.rank[worst]),
        )
    )


def _beyond(grouped: Bursts, which: NDArray[Any]) -> float:
    return float(np.maximum(0, grouped.length - grouped.expected)[which].sum())


def _sizes(sizes: NDArray[Any]) -> tuple[list[str], list[int]]:
    """The number of messages up to each power of two, from the smallest."""
    count = np.bincount(size_classes(sizes))
    first = int(np.flatnonzero(count)[0]) if count.any() else 0
    labels = ["0 B", *(f"to {size_text(1 << power)}" for power in range(len(count) - 1))]
    return labels[first : len(count)], count[first:].tolist()


def export(trace: Trace, curves: Sequence[Curve], file: Path) -> int:
    """Write all bursts of all gaps, one row each, and return their number. The name of the file decides the
    format: Parquet, CSV, or lines of JSON. Raises OSError.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    sent = messages(trace, match(trace), match_signals(trace))
    expected = streamed_ns(trace, sent, curves)
    table = pa.concat_tables([_rows(bursts.find(trace, sent, gap, expected), sent) for gap in bursts.GAPS_NS])
    if file.suffix == ".parquet":
        pq.write_table(table, file, compression="zstd")
    elif file.suffix == ".csv":
        pa.csv.write_csv(table, file)
    else:
        file.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return len(table)


def _rows(grouped: Bursts, sent: Messages) -> pa.Table:
    import pyarrow as pa

    histograms: list[dict[int, int]] = [{} for _ in range(len(grouped))]
    classes = size_classes(sent.bytes[grouped.inside])
    keys, counts = np.unique(grouped.of_message << 8 | classes, return_counts=True)
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        power = (key & 255) - 1
        histograms[key >> 8][1 << power if power >= 0 else 0] = count
    columns = {
        "gap_ns": np.full(len(grouped), grouped.gap_ns), "rank": grouped.rank, "begin_ns": grouped.begin,
        "length_ns": grouped.length, "messages": grouped.messages, "bytes": grouped.bytes,
        "peers": grouped.peers,
        "in_flight": grouped.in_flight, "bytes_per_s": grouped.rate,
    }  # fmt: skip
    arrays: dict[str, Any] = {name: pa.array(values) for name, values in columns.items()}
    arrays["of_curve"] = pa.array(grouped.of_curve, mask=~np.isfinite(grouped.of_curve))
    arrays["stall_ns"] = pa.array(grouped.stall, mask=grouped.stall < 0)
    # The number of messages up to so many bytes.
    texts = [" ".join(f"{size}:{count}" for size, count in number.items()) for number in histograms]
    arrays["sizes"] = pa.array(texts, pa.string())
    return pa.table(arrays)
