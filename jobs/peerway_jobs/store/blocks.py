"""Makes chunks: from the samples of batches, and means of sealed chunks."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from peerway_jobs.batch_check import decode
from peerway_jobs.store.chunk import Points, merged, packed
from peerway_jobs.store.sample_damage import BATCHES
from peerway_jobs.store.samples import Filed, columns, thinned, time_ms
from peerway_jobs.store.stored import LAST_MS, readable
from peerway_jobs.untrusted import BadBatch


def filed_of(row: sqlite3.Row) -> Filed:
    """A batch as it was kept: shift, period and payload. Raises BadBatch where it cannot be read, as one of
    an older version, or one that was damaged since.
    """
    values, unreadable = readable(BATCHES, row)
    if names := [name for name in unreadable if name in ("shift", "period", "payload")]:
        raise BadBatch(f"what the columns {', '.join(names)} hold is no batch")
    filed = Filed(decode(values["payload"]), int(values["shift"]), b"", int(values["period"]))
    if not 0 <= time_ms(filed) <= LAST_MS:
        raise BadBatch(f"its time, {time_ms(filed)} ms since 1970, is in no year that can be written")
    return filed


def thinned_block(blocks: Iterable[Mapping[str, Points]], means: Mapping[str, Points], step_ms: int) -> bytes:
    """The chunks of a device as one block of means. A mean that is there already stays: it is of the whole
    step, and what came late is a few samples of it.
    """
    parts: defaultdict[str, list[Points]] = defaultdict(list)
    for block in blocks:
        for name, points in block.items():
            parts[name].append(points)
    thin = {name: thinned(name, merged(several), step_ms) for name, several in parts.items()}
    for name, points in means.items():
        late = thin.get(name)
        # For a counter, both may have a value in the same step; the later one counts.
        thin[name] = points if late is None else thinned(name, merged([late, points]), step_ms)
    return packed(thin)


def chunk_rows(
    node: str, devices: dict[tuple[str, str], dict[str, Points]]
) -> Iterator[tuple[str, str, str, int, int, bytes]]:
    """One row per device, with its samples of a stretch."""
    for (kind, device), metrics in devices.items():
        start = min(int(points.times[0]) for points in metrics.values())
        end = max(int(points.times[-1]) for points in metrics.values())
        yield node, kind, device, start, end, packed(metrics)


def of_batches(
    rows: Sequence[sqlite3.Row],
    damaged: Callable[[sqlite3.Row, BadBatch], None],
    kind: str | None = None,
    only: frozenset[str] | None = None,
    wanted: frozenset[str] | None = None,
) -> dict[tuple[str, str, str], Points]:
    """The samples of unsealed batches, by (kind, device, metric)."""
    lists: defaultdict[tuple[str, str, str], tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    period = 0
    for row in rows:
        try:
            filed = filed_of(row)
        except BadBatch as error:
            damaged(row, error)
            continue
        period = max(period, filed.period_ms)
        at = time_ms(filed)
        for of, device, metric, value in columns(filed):
            if (
                (kind is None or of == kind)
                and (only is None or device in only)
                and (wanted is None or metric in wanted)
            ):
                times, values = lists[of, device, metric]
                times.append(at)
                values.append(value)
    return {
        key: merged([Points(np.array(times, np.int64), np.array(values), period)])
        for key, (times, values) in lists.items()
    }
