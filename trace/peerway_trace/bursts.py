"""Bursts: messages that one rank sends with gaps below g between the end of a call and the next. Which
messages form a burst depends on g, so results are given for several values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.messages import Messages
from peerway_trace.store import Trace

GAPS_NS = (1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000)


@dataclass(frozen=True)
class Bursts:
    """One entry for each burst, by rank and time. A single message is not a burst."""

    gap_ns: int
    rank: NDArray[Any]
    begin: NDArray[Any]
    length: NDArray[Any]  # ns from the beginning of the first message to the end of the last
    messages: NDArray[Any]
    bytes: NDArray[Any]
    peers: NDArray[Any]
    in_flight: NDArray[Any]  # the most messages at one time
    stall: NDArray[Any]  # ns until the next message of this rank; -1 if there is none
    expected: NDArray[Any]  # ns of its messages one after the other by the curves; NaN if one is missing
    inside: NDArray[Any]  # the messages of all bursts
    of_message: NDArray[Any]  # for each entry of `inside`, its burst
    share: float  # the share of all messages that are in bursts

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def rate(self) -> NDArray[Any]:
        """Bytes a second."""
        return np.asarray(self.bytes / np.maximum(self.length, 1) * 1e9)

    @property
    def of_curve(self) -> NDArray[Any]:
        """The rate relative to that of the curves for the same messages; NaN if it is not known."""
        return np.asarray(self.expected / np.maximum(self.length, 1))


def find(trace: Trace, messages: Messages, gap_ns: int, expected: NDArray[Any] | None = None) -> Bursts:
    """The bursts of all ranks. `expected` is the time of each message by the curves, in ns."""
    if expected is None:
        expected = np.full(len(messages), np.nan)
    sender = trace.rank[messages.event]
    order = np.lexsort((messages.begin, sender))
    sender, begin = sender[order].astype(np.int64), messages.begin[order]
    returned = begin + trace["duration"][messages.event[order]]
    end, size = np.maximum(messages.end[order], returned), messages.bytes[order]
    if len(order) == 0:
        none = np.empty(0, np.int64)
        return Bursts(
            gap_ns, none, none, none, none, none, none, none, none, none.astype(float), none, none, 0.0
        )  # fmt: skip
    # The latest end of each rank up to each message, by one running maximum over all ranks.
    far = int(returned.max()) + 1
    latest = np.maximum.accumulate(returned + sender * far) - sender * far
    fresh = np.ones(len(order), bool)
    fresh[1:] = (sender[1:] != sender[:-1]) | (begin[1:] - latest[:-1] >= gap_ns)
    burst = np.cumsum(fresh) - 1
    first = np.flatnonzero(fresh)
    count = np.diff(np.append(first, len(order)))
    last = first + count - 1
    stall = np.full(len(first), -1, np.int64)
    same = np.flatnonzero(sender[first[1:]] == sender[first[:-1]])
    stall[same] = begin[first[same + 1]] - latest[last[same]]
    several = count > 1
    columns = {
        "rank": sender[first], "begin": begin[first], "length": np.maximum.reduceat(end, first) -
        begin[first], "messages": count, "bytes": np.add.reduceat(size, first),
        "peers": _distinct(burst, messages.target[order], len(first)),
        "in_flight": _in_flight(burst, begin, end, first), "stall": stall,
        "expected": np.add.reduceat(expected[order], first),
    }  # fmt: skip
    kept = {name: column[several] for name, column in columns.items()}
    inside = several[burst]
    number = np.cumsum(several) - 1
    return Bursts(
        gap_ns=gap_ns, share=float(count[several].sum() / len(order)), inside=order[inside],
        of_message=number[burst[inside]].astype(np.int64), **kept,
    )  # fmt: skip


def _distinct(burst: NDArray[Any], peer: NDArray[Any], bursts: int) -> NDArray[Any]:
    keys = np.unique(burst.astype(np.int64) << 32 | peer.astype(np.int64) & 0xFFFFFFFF) >> 32
    return np.bincount(keys, minlength=bursts)


def _in_flight(
    burst: NDArray[Any], begin: NDArray[Any], end: NDArray[Any], first: NDArray[Any]
) -> NDArray[Any]:
    """For each burst, the most messages at one time: count up at each beginning and down at each end. Over a
    whole burst the sum is 0.
    """
    both = np.concatenate([burst, burst])
    step = np.concatenate([np.ones(len(begin), np.int32), -np.ones(len(end), np.int32)])
    order = np.lexsort((-step, np.concatenate([begin, end]), both))
    level = np.cumsum(step[order], dtype=np.int32)
    return np.maximum.reduceat(level, 2 * first)
