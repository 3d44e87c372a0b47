"""Finds why messages took more than twice as long as the measured curve says. The cause of a message is the
one with the largest part of the excess time.

    late receiver          the message was sent before its receive was posted (or, if the message lay in a
                           buffer, before a probe looked for it)
    rendezvous wait        the receive was posted, but the send had to wait until the receiver was in a call
    proxy stall            a proxy began late with the plan's start to which the put belongs
    staging back-pressure  a put waited until the receiver had emptied a bounce buffer
    first use              the first message of this pair of ranks by this path: memory is mapped, connections
                           are made
    contention             for at least half of the time, other messages of this sender or to this receiver
                           were under way on the same path
    preempted or unknown   none of these
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_trace import stalls
from peerway_trace.calls import completed, waiting_call
from peerway_trace.lanes import Cover, Lanes
from peerway_trace.messages import Messages
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

CAUSES = (
    "late receiver", "rendezvous wait", "proxy stall", "staging back-pressure", "first use", "contention",
    "preempted or unknown",
)  # fmt: skip
WHAT_TO_DO = {
    "late receiver": "Let receivers post earlier: the network did not slow these down.",
    "rendezvous wait": "Let receivers wait, test or probe earlier, or give the MPI a thread for progress.",
    "proxy stall": "Give the proxy a core of its own.",
    "staging back-pressure": "Let receivers make progress more often, or give them more bounce buffers.",
    "first use": "Send one message to each peer before you measure.",
    "contention": "Spread the messages over time or over more paths; look at the bursts.",
    "preempted or unknown": "Check whether other programs, or more threads than cores, ran on these hosts.",
}


class Causes:
    """What explains the times of messages; each column has one entry for each message."""

    def __init__(self, trace: Trace, sent: Messages, outer: Lanes) -> None:
        self._trace, self._sent = trace, sent
        self._outer = outer
        self.late, self.rendezvous = self._receivers()
        self.whole = np.where(self._is_mpi(), sent.end - sent.begin, sent.moving)
        self._proxies = self._of_outer_or_lane(stalls.of_proxies(trace), proxies=True)
        self._staging = self._of_outer_or_lane(stalls.of_staging(trace, outer), proxies=False)
        # A proxy is late before the put begins, and all else within the message's time.
        self.network = np.maximum(0, self.whole - self.late - self.rendezvous - self._staging)

    def _is_mpi(self) -> NDArray[Any]:
        return np.asarray(np.isin(self._trace["kind"][self._sent.event], (Kind.SEND, Kind.ISEND)))

    def _receivers(self) -> tuple[NDArray[Any], NDArray[Any]]:
        trace, sent = self._trace, self._sent
        begin = trace["begin"]
        late, rendezvous = np.zeros(len(sent), np.int64), np.zeros(len(sent), np.int64)
        which = np.flatnonzero((sent.received >= 0) & self._is_mpi())
        if not len(which):
            return late, rendezvous
        receive = sent.received[which]
        call = waiting_call(trace, receive)
        posted = begin[receive]
        there = np.maximum(posted, np.where(call >= 0, begin[call], posted))
        done = self._done(which)
        whole = sent.end[which] - sent.begin[which]
        until_posted = np.clip(posted - sent.begin[which], 0, whole)
        until_there = np.clip(there - sent.begin[which], 0, whole)
        held = done >= there
        late[which] = np.where(held, until_posted, until_there)
        rendezvous[which] = np.where(held, until_there - until_posted, 0)
        return late, rendezvous

    def _done(self, which: NDArray[Any]) -> NDArray[Any]:
        """When the send was complete: the end of a blocking send, otherwise the end of its request."""
        trace, event = self._trace, self._sent.event[which]
        request = completed(trace, event)
        # The call that found it complete may have come long after: until then nothing is known.
        known = (request != event) & (waiting_call(trace, request) >= 0)
        event = np.where(known, request, event)
        return np.asarray(trace["begin"][event] + trace["duration"][event])

    def _of_outer_or_lane(self, stalled: stalls.Part, proxies: bool) -> NDArray[Any]:
        """How long each message was stalled, in its own call or in a start that a proxy served for it."""
        trace, outer = self._trace, self._outer
        event, _, lost = stalled
        if not len(event):
            return np.zeros(len(self._sent), np.int64)
        step = outer.step[self._sent.event]
        if not proxies:
            by_step = np.zeros(len(outer.event) + 1, np.int64)
            by_step[outer.step[event]] = lost
            return np.asarray(by_step[step])
        # The start that began last before the message, of those of its rank.
        far = trace.length + 1
        keys = (trace.rank[event].astype(np.int64) + 1) * far + trace["begin"][event]
        order = np.argsort(keys, kind="stable")
        of = self._sent.event
        wanted = (trace.rank[of].astype(np.int64) + 1) * far + self._sent.begin
        at = np.searchsorted(keys[order], wanted, "right") - 1
        served = event[order[np.maximum(at, 0)]]
        inside = (at >= 0) & (trace["begin"][of] <= trace["begin"][served] + trace["duration"][served])
        inside &= trace.rank[served] == trace.rank[of]
        return np.where(inside, lost[order[np.maximum(at, 0)]], 0)

    def of(self, which: NDArray[Any], expected: NDArray[Any]) -> NDArray[Any]:
        """The causes of some slow messages, as indices into CAUSES."""
        beyond = self.network[which] - expected
        parts = np.stack([
            self.late[which], self.rendezvous[which], self._proxies[which], self._staging[which],
        ])  # fmt: skip
        cause: NDArray[Any] = parts.argmax(axis=0)
        network = np.maximum(0, beyond) > parts.max(axis=0)
        cause[network] = CAUSES.index("preempted or unknown")
        if network.any():
            rest = np.flatnonzero(network)
            cause[rest[self._contended(which[rest])]] = CAUSES.index("contention")
            cause[rest[np.isin(which[rest], self._first())]] = CAUSES.index("first use")
        return cause

    def _first(self) -> NDArray[Any]:
        """Whether it is the first message of its pair and path."""
        sent = self._sent
        where = self._trace["where"][sent.event].astype(np.int64)
        size = int(max(sent.source.max(), sent.target.max())) + 2
        keys = (where * size + sent.source + 1) * size + sent.target + 1
        return np.unique(keys, return_index=True)[1]

    def _contended(self, which: NDArray[Any]) -> NDArray[Any]:
        """Whether other messages of the sender or to the receiver were under way for half of the time."""
        sent = self._sent
        where = self._trace["where"][sent.event]
        result = np.zeros(len(which), bool)
        for side in (sent.source, sent.target):
            keys = where.astype(np.int64) << 32 | side.astype(np.int64) & 0xFFFFFFFF
            for key in np.unique(keys[which]):
                own = np.flatnonzero(keys == key)
                mine = np.flatnonzero(keys[which] == key)
                result[mine] |= _shared(sent.begin[own], sent.end[own], own, which[mine])
        return result


def _shared(
    begin: NDArray[Any], end: NDArray[Any], number: NDArray[Any], wanted: NDArray[Any]
) -> NDArray[Any]:
    """For each of the wanted intervals, whether at least one other interval overlapped it for more than half
    of it.
    """
    times = np.concatenate([begin, end])
    change = np.concatenate([np.ones(len(begin), np.int64), -np.ones(len(end), np.int64)])
    order = np.lexsort((change, times))
    level = np.cumsum(change[order])
    several = level >= 2
    starts = np.flatnonzero(several & ~np.concatenate([[False], several[:-1]]))
    stops = np.flatnonzero(~several & np.concatenate([[False], several[:-1]]))
    both = Cover(times[order][starts], times[order][stops])
    at = np.searchsorted(number, wanted)
    return np.asarray(2 * both.between(begin[at], end[at]) >= end[at] - begin[at])
