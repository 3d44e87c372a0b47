"""Sealed chunks: the samples of one device of a node over a stretch of time, as one compressed block.

    "PWC1" · zstd of: length of the header (u32) · header (JSON) · columns

Most metrics of a device are sampled together, so times are stored once for all metrics that share them. Times
are integers in milliseconds, stored as differences of differences; each value is XORed with the value before.
Both are split into byte planes, so that zstd finds that most bytes are zero.
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

Times = npt.NDArray[np.int64]  # milliseconds since 1970
Values = npt.NDArray[np.float64]

MAGIC = b"PWC1"
_MOST = 256 << 20  # bytes of an unpacked chunk


class BadChunk(ValueError):
    """The block was not written by `packed`, or was damaged since."""


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
    return MAGIC + zstandard.ZstdCompressor(level=3).compress(body)


def unpacked(block: bytes, wanted: frozenset[str] | None = None) -> dict[str, Points]:
    """Decode the metrics of a block, or only the `wanted` ones. Raises BadChunk."""
    return unpacked_all([block], wanted)[0]


def unpacked_all(blocks: Iterable[bytes], wanted: frozenset[str] | None = None) -> list[dict[str, Points]]:
    """Decode the metrics of each block. Raises BadChunk.

    Blocks with the same times, such as those of a node's cores, are decoded together, in a third of the time.
    """
    decompress = zstandard.ZstdDecompressor().decompress
    unpacked: list[dict[str, Points]] = []
    alike: defaultdict[bytes, list[tuple[dict[str, Points], bytes]]] = defaultdict(list)
    try:
        for block in blocks:
            if block[:4] != MAGIC:
                raise BadChunk(f"a chunk begins with {MAGIC!r}, not {block[:4]!r}")
            body = decompress(block[4:], max_output_size=_MOST)
            head = 4 + struct.unpack_from("<I", body)[0]
            columns = head + 8 * sum(_unpacked_head(body[4:head])[0])
            unpacked.append({})
            alike[body[:columns]].append((unpacked[-1], body[columns:]))
        for start, several in alike.items():
            _decode_columns(start, several, wanted)
    except (zstandard.ZstdError, ValueError, KeyError, IndexError, struct.error) as error:
        raise BadChunk(f"a damaged chunk: {error}") from None
    return unpacked


def _decode_columns(
    start: bytes, several: list[tuple[dict[str, Points], bytes]], wanted: frozenset[str] | None
) -> None:
    """Decode the columns into each dictionary; all blocks have the same header and times."""
    at = 4 + struct.unpack_from("<I", start)[0]
    counts, metrics = _unpacked_head(start[4:at])
    clocks = []
    for count in counts:
        if len(clock := start[at : at + 8 * count]) != 8 * count:
            raise ValueError("it breaks off")
        clocks.append(_unpacked_times(clock))
        at += 8 * count
    rows = np.frombuffer(b"".join(columns for _, columns in several), np.uint8).reshape(len(several), -1)
    at = 0
    for name, which, period in metrics:
        times = clocks[which]
        if wanted is None or name in wanted:
            values = _unpacked_values(rows[:, at : at + 8 * times.size], times.size)
            for (unpacked, _), row in zip(several, values, strict=True):
                unpacked[name] = Points(times, row, period)
        at += 8 * times.size


def _count(column: bytes) -> int:
    return len(column) // 8


def _planes(words: npt.NDArray[np.uint64]) -> bytes:
    return words.view(np.uint8).reshape(-1, 8).T.tobytes()


# The devices of a node are measured at the same time. So many chunks have the same times, and nearly all
# chunks of a kind the same header.
@lru_cache(64)
def _unpacked_head(head: bytes) -> tuple[list[int], list[tuple[str, int, int]]]:
    fields = json.loads(head)
    return fields["clocks"], fields["metrics"]


@lru_cache(256)
def _unpacked_times(clock: bytes) -> Times:
    rows = np.frombuffer(clock, np.uint8).reshape(1, -1)
    times: Times = np.cumsum(np.cumsum(_words(rows, _count(clock))[0].view(np.int64)))
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
