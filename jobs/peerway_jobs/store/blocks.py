"""Makes chunks: from the samples of batches, and means of sealed chunks."""

from __future__ import annotations

import logging
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from peerway_jobs.batch_check import decode
from peerway_jobs.store.chunk import Points, merged, packed, unpacked
from peerway_jobs.store.samples import Filed, columns, thinned, time_ms
from peerway_jobs.untrusted import BadBatch

LOG = logging.getLogger("peerway_jobs")


def thinned_block(bodies: Iterable[bytes], means: bytes | None, step_ms: int) -> bytes:
    """The chunks of a device as one block of means over `step_ms`.

    A mean that already exists is kept: it was made from the whole step, while `bodies` may have only a few
    late samples of it.
    """
    parts: defaultdict[str, list[Points]] = defaultdict(list)
    for body in bodies:
        for name, points in unpacked(body).items():
            parts[name].append(points)
    thin = {name: thinned(name, merged(several), step_ms) for name, several in parts.items()}
    for name, points in unpacked(means).items() if means else ():
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
    kind: str | None = None,
    only: frozenset[str] | None = None,
    wanted: frozenset[str] | None = None,
) -> dict[tuple[str, str, str], Points]:
    """The samples of unsealed batches, by (kind, device, metric)."""
    lists: defaultdict[tuple[str, str, str], tuple[list[int], list[float]]] = defaultdict(lambda: ([], []))
    period = max((row["period"] for row in rows), default=0)
    for row in rows:
        try:
            filed = Filed(decode(row["payload"]), row["shift"], b"", row["period"])
        except BadBatch as error:  # an older version stored it, or it is damaged; the others count
            LOG.error("a batch that was kept cannot be read, and is left out: %s", error)
            continue
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
