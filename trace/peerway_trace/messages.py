"""Messages of a trace: which receive belongs to which send, and which notification ended which wait.

MPI's messages do not overtake: the k-th send from a rank to another with one tag in one communicator belongs
to the k-th such receive, in the order in which the receives were posted. A signal is a counter: a wait for a
value ends with the notification that brought the sum there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace.rings import Kind
from peerway_trace.store import Trace

SENDS = (Kind.SEND, Kind.ISEND)
RECEIVES = (Kind.RECV, Kind.RECEIVED)
MOVES = (Kind.PUT, Kind.GET, Kind.RMA_PUT, Kind.RMA_GET)


@dataclass(frozen=True)
class Pairs:
    """Events that belong together, as indices into the trace's columns; and events without a partner."""

    first: NDArray[Any]
    second: NDArray[Any]
    alone_first: NDArray[Any]
    alone_second: NDArray[Any]


@dataclass(frozen=True)
class Messages:
    """One entry for each message that was sent, in the order of their beginnings."""

    event: NDArray[Any]  # the put, get or send, as an index into the trace's columns
    received: NDArray[Any]  # the receive, or the wait that its notification ended; -1: not known
    source: NDArray[Any]
    target: NDArray[Any]
    bytes: NDArray[Any]
    begin: NDArray[Any]
    end: NDArray[Any]  # when it had arrived, if that is known; otherwise when its call returned
    moving: NDArray[Any]  # ns of moving data, without the time in which one side waited for the other

    def __len__(self) -> int:
        return len(self.event)


def size_classes(sizes: NDArray[Any]) -> NDArray[Any]:
    """The classes of sizes: 0 has no bytes, n has up to 2^(n - 1) bytes."""
    return np.asarray(np.ceil(np.log2(np.maximum(sizes, 1))).astype(np.int64) + (sizes > 0))


def of_kind(trace: Trace, kinds: tuple[Kind, ...]) -> NDArray[Any]:
    """The indices of events of some kinds."""
    wanted = np.zeros(256, bool)
    wanted[list(kinds)] = True
    return np.flatnonzero(wanted[trace["kind"]])


def _not_cancelled(trace: Trace, sends: NDArray[Any]) -> NDArray[Any]:
    """The events without cancelled sends, which nobody receives. Both events of a request begin at the same
    time in the same process.
    """
    cancelled = of_kind(trace, (Kind.CANCELLED,))
    if not len(cancelled):
        return sends

    def key(event: int) -> tuple[str, int, int]:
        thread = trace.threads[trace["thread"][event]]
        return thread.host, thread.pid, int(trace["begin"][event])

    gone = {key(event) for event in cancelled.tolist()}
    return np.array([event for event in sends.tolist() if key(event) not in gone], sends.dtype)


def match(trace: Trace) -> Pairs:
    """Match the sends and receives of MPI."""
    rank = trace.rank
    sends, receives = _not_cancelled(trace, of_kind(trace, SENDS)), of_kind(trace, RECEIVES)
    sends, receives = sends[trace["peer"][sends] >= 0], receives[trace["peer"][receives] >= 0]
    size = int(max(rank.max(initial=0), trace["peer"].max(initial=0))) + 1
    tags = trace["tag"]
    _, tag = np.unique(np.concatenate([tags[sends], tags[receives]]), return_inverse=True)
    pair_s = rank[sends].astype(np.int64) * size + trace["peer"][sends]
    pair_r = trace["peer"][receives].astype(np.int64) * size + rank[receives]
    where_s, where_r = (trace["where"][which].astype(np.int64) * size * size for which in (sends, receives))
    few = int(tag.max(initial=0)) + 1
    key_s = (where_s + pair_s) * few + tag[: len(sends)]
    key_r = (where_r + pair_r) * few + tag[len(sends) :]
    order_s = np.lexsort((trace["begin"][sends], key_s))
    order_r = np.lexsort((trace["begin"][receives], key_r))
    sends, key_s = sends[order_s], key_s[order_s]
    receives, key_r = receives[order_r], key_r[order_r]
    # The k-th send of a key belongs to the k-th receive of the same key.
    place = np.arange(len(key_s)) - np.searchsorted(key_s, key_s)
    at = np.searchsorted(key_r, key_s) + place
    result = at < np.searchsorted(key_r, key_s, "right")
    taken = np.zeros(len(receives), bool)
    taken[at[result]] = True
    return Pairs(sends[result], receives[at[result]], sends[~result], receives[~taken])


def match_signals(trace: Trace) -> Pairs:
    """Match each wait for a signal with the notification that ended it."""
    rank = trace.rank
    kind, peer, tag = trace["kind"], trace["peer"], trace["tag"]
    notifications = np.flatnonzero(((kind == Kind.PUT) | (kind == Kind.NOTIFY)) & (tag >= 0) & (peer >= 0))
    waits = of_kind(trace, (Kind.SIGNAL,))
    owners = np.concatenate([peer[notifications], rank[waits]]).astype(np.int64) << 32 | np.concatenate(
        [tag[notifications], tag[waits]]
    )
    _, signal = np.unique(owners, return_inverse=True)
    of_notification, of_wait = signal[: len(notifications)], signal[len(notifications) :]
    ends = (trace["begin"] + trace["duration"])[notifications]
    order = np.lexsort((ends, of_notification))
    notifications, of_notification = notifications[order], of_notification[order]
    by = np.where(kind[notifications] == Kind.PUT, 1, trace["bytes"][notifications])
    total = np.cumsum(by)
    before = np.concatenate([[0], total])[np.searchsorted(of_notification, of_notification)]
    reached = of_notification.astype(np.int64) * (1 << 40) + total - before
    wanted = of_wait.astype(np.int64) * (1 << 40) + trace["bytes"][waits]
    at = np.searchsorted(reached, wanted)
    result = at < len(notifications)
    result[result] = of_notification[at[result]] == of_wait[result]
    alone = np.ones(len(notifications), bool)
    alone[at[result]] = False
    return Pairs(notifications[at[result]], waits[result], notifications[alone], waits[~result])


def messages(trace: Trace, matched: Pairs, signals: Pairs) -> Messages:
    """All messages: operations that carried bytes, and messages of MPI even without bytes."""
    begin, duration = trace["begin"], trace["duration"]
    event = np.concatenate([of_kind(trace, MOVES), matched.first, matched.alone_first])
    received = np.full(len(trace), -1, np.int64)
    received[matched.first] = matched.second
    notified_with_data = trace["kind"][signals.first] == Kind.PUT
    received[signals.first[notified_with_data]] = signals.second[notified_with_data]
    event = event[np.argsort(begin[event], kind="stable")]
    other = received[event]
    rank, peer = trace.rank[event], trace["peer"][event]
    is_get = np.isin(trace["kind"][event], (Kind.GET, Kind.RMA_GET))
    own_end = begin[event] + duration[event]
    known = other >= 0
    # A wait that began after the data had arrived does not show when it arrived.
    arrived = np.where(known, begin[other] + duration[other], own_end)
    late = known & (begin[other] > own_end) & (trace["kind"][event] == Kind.PUT)
    end = np.where(late, own_end, np.maximum(arrived, begin[event]))
    started = np.where(known & ~late & (trace["kind"][event] != Kind.PUT), begin[other], begin[event])
    # A put's time is only its own; the wait for its signal is the program's.
    moving = np.where(
        trace["kind"][event] == Kind.PUT, duration[event], end - np.maximum(begin[event], started)
    )
    return Messages(
        event, other, np.where(is_get, peer, rank), np.where(is_get, rank, peer), trace["bytes"][event],
        begin[event], end, np.maximum(moving, 0),
    )  # fmt: skip
