"""Sealed chunks: the samples of one device of a node over a stretch of time, as one compressed block.

    "PWC1" · zstd of: length of the header (u32) · header (JSON) · columns

The metrics of a device are mostly sampled together, so the times are kept once for all metrics that share
them. Times are whole milliseconds, kept as the differences of differences; values are XORed with the one
before. Both are cut into planes of bytes, which lets zstd find that most of them are zero. zstd's checksum
tells a block that was damaged since.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import zstandard

from peerway_jobs.store.stored import LAST_MS

Times = npt.NDArray[np.int64]  # milliseconds since 1970
Values = npt.NDArray[np.float64]

MAGIC = b"PWC1"
_MOST = 256 << 20  # bytes of an unpacked chunk


class BadChunk(ValueError):
    """The block was not written by `packed`, or was damaged since."""


_DAMAGED = (zstandard.ZstdError, ValueError, TypeError, LookupError, RecursionError, struct.error)


@dataclass(frozen=True)
class Points:
    """The samples of one metric of one device: strictly ascending times, about one per `period` (ms)."""

    times: Times
    values: Values
    period: int


def merged(parts: Iterable[Points]) -> Points:
    """Several parts as one, in order of time. Of two samples with the same time,
    the one of the later part counts.
    """
    several = [part for part in parts if part.times.size]
    if not several:
        return Points(np.empty(0, np.int64), np.empty(0), 0)
    if len(several) == 1 and (np.diff(several[0].times) > 0).all():
        return several[0]
    times = np.concatenate([part.times for part in several])
    values = np.concatenate([part.values for part in several])
    if (np.diff(times) > 0).all():
        return Points(times, values, max(part.period for part in several))
    # np.unique keeps the first of equal times, hence the reversed array to keep the last.
    unique, at = np.unique(times[::-1], return_index=True)
    return Points(unique, values[::-1][at], max(part.period for part in several))


def packed(metrics: Mapping[str, Points]) -> bytes:
    """Encode all metrics of a device as one block."""
    columns: list[bytes] = []
    clocks: dict[bytes, int] = {}
    rows = []
    for name, points in metrics.items():
        clock = _packed_times(points.times)
        if clock not in clocks:
            clocks[clock] = len(clocks)
        rows.append((name, clocks[clock], points.period))
        columns.append(_packed_values(points.values))
    head = json.dumps(
        {"clocks": [_count(clock) for clock in clocks], "metrics": rows}, separators=(",", ":")
    ).encode()
    body = b"".join((struct.pack("<I", len(head)), head, *clocks, *columns))
    return MAGIC + zstandard.ZstdCompressor(level=3, write_checksum=True).compress(body)


def unpacked(block: bytes, wanted: frozenset[str] | None = None) -> dict[str, Points]:
    """The metrics of a block, or those wanted. Raises BadChunk."""
    (metrics,) = unpacked_all([block], wanted)
    if isinstance(metrics, BadChunk):
        raise metrics
    return metrics


def unpacked_all(
    blocks: Iterable[bytes], wanted: frozenset[str] | None = None
) -> list[dict[str, Points] | BadChunk]:
    """The metrics of each block, or why it cannot be read: the others still count. Those of a kind that were
    measured at the same times, as the cores of a node are, are taken apart together, in a third of the time.
    """
    decompressor = zstandard.ZstdDecompressor()
    unpacked: list[dict[str, Points] | BadChunk] = []
    alike: defaultdict[bytes, list[tuple[int, bytes]]] = defaultdict(list)
    for place, block in enumerate(blocks):
        try:
            start, columns = _start_and_columns(block, decompressor)
        except _DAMAGED as error:
            unpacked.append(BadChunk(f"a damaged chunk: {error}"))
        else:
            unpacked.append({})
            alike[start].append((place, columns))
    for start, several in alike.items():
        try:
            metrics_of = _taken_apart(start, [columns for _, columns in several], wanted)
        except _DAMAGED as error:  # in the clocks, which all of them share
            for place, _ in several:
                unpacked[place] = BadChunk(f"a damaged chunk: {error}")
        else:
            for (place, _), metrics in zip(several, metrics_of, strict=True):
                unpacked[place] = metrics
    return unpacked


def _start_and_columns(block: object, decompressor: zstandard.ZstdDecompressor) -> tuple[bytes, bytes]:
    """A block's head with its clocks, and the values behind them. Raises one of _DAMAGED."""
    if not isinstance(block, bytes) or block[:4] != MAGIC:
        raise ValueError(f"it does not begin with {MAGIC!r}")
    if zstandard.frame_content_size(block[4:]) > _MOST:  # zstandard would ask for that much memory
        raise ValueError(f"it claims more than {_MOST:,} bytes")
    body = decompressor.decompress(block[4:], max_output_size=_MOST)
    head = 4 + struct.unpack_from("<I", body)[0]
    counts, metrics = _unpacked_head(body[4:head])
    columns = head + 8 * sum(counts)
    if len(body) != columns + 8 * sum(counts[clock] for _, clock, _ in metrics):
        raise ValueError("its length is not that of its columns")
    return body[:columns], body[columns:]


def _taken_apart(
    start: bytes, several: list[bytes], wanted: frozenset[str] | None
) -> list[dict[str, Points]]:
    """The metrics of blocks that have the same head and clocks, from the columns of each."""
    at = 4 + struct.unpack_from("<I", start)[0]
    counts, metrics = _unpacked_head(start[4:at])
    clocks = []
    for count in counts:
        clocks.append(_unpacked_times(start[at : at + 8 * count]))
        at += 8 * count
    unpacked: list[dict[str, Points]] = [{} for _ in several]
    rows = np.frombuffer(b"".join(several), np.uint8).reshape(len(several), -1)
    at = 0
    for name, which, period in metrics:
        times = clocks[which]
        if wanted is None or name in wanted:
            values = _unpacked_values(rows[:, at : at + 8 * times.size], times.size)
            for points_of, row in zip(unpacked, values, strict=True):
                points_of[name] = Points(times, row, period)
        at += 8 * times.size
    return unpacked


def _count(column: bytes) -> int:
    return len(column) // 8


def _planes(words: npt.NDArray[np.uint64]) -> bytes:
    return words.view(np.uint8).reshape(-1, 8).T.tobytes()


# The devices of a node are measured at the same time. So many chunks have the same times, and nearly all
# chunks of a kind the same header.
@lru_cache(64)
def _unpacked_head(head: bytes) -> tuple[list[int], list[tuple[str, int, int]]]:
    fields = json.loads(head)
    counts, metrics = fields["clocks"], fields["metrics"]
    if not all(_is_size(count) for count in counts):
        raise ValueError("its head has no lengths")
    for name, clock, period in metrics:
        if not isinstance(name, str) or not _is_size(clock) or not _is_size(period) or clock >= len(counts):
            raise ValueError("its head names no metrics")
    return counts, metrics


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST


@lru_cache(256)
def _unpacked_times(clock: bytes) -> Times:
    rows = np.frombuffer(clock, np.uint8).reshape(1, -1)
    times: Times = np.cumsum(np.cumsum(_words(rows, _count(clock))[0].view(np.int64)))
    if times.size and not (times[0] >= 0 and times[-1] <= LAST_MS and (np.diff(times) > 0).all()):
        raise ValueError("its times do not ascend")
    times.flags.writeable = False
    return times


def _words(rows: npt.NDArray[np.uint8], count: int) -> npt.NDArray[np.uint64]:
    """The 64-bit words of each row's byte planes."""
    planes = rows.reshape(len(rows), 8, count)
    return np.ascontiguousarray(planes.transpose(0, 2, 1)).view(np.uint64)[..., 0]


def _packed_times(times: Times) -> bytes:
    steps = np.diff(times, prepend=np.int64(0))
    return _planes(np.diff(steps, prepend=np.int64(0)).view(np.uint64))


def _packed_values(values: Values) -> bytes:
    words = np.ascontiguousarray(values, np.float64).view(np.uint64)
    changed = words.copy()
    changed[1:] ^= words[:-1]
    return _planes(changed)


def _unpacked_values(rows: npt.NDArray[np.uint8], count: int) -> Values:
    return np.bitwise_xor.accumulate(_words(rows, count), axis=1).view(np.float64)
