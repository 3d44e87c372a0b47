"""Accepts the POSTs of agents: checks them, writes them in one thread, then acknowledges them.

POSTs that wait together are written in one transaction.
"""

from __future__ import annotations

import asyncio
import math
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from peerway_jobs.batch import Batch
from peerway_jobs.batch_check import decode, inflated_bytes, seq_of
from peerway_jobs.clock import Arrivals, Sent, correction_ms
from peerway_jobs.credible import credible
from peerway_jobs.frames import MOST_BODY, MOST_FRAMES, BadFrame, read_frames
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.limits import Buckets
from peerway_jobs.serve.live import Live
from peerway_jobs.store.samples import Filed
from peerway_jobs.untrusted import BadBatch

MOST_WAITING = 256  # POSTs; others are told to try again later
MOST_POST_TEXT = 32 << 20  # bytes of JSON in one POST
MOST_POST_PARTS = 8192  # intervals and notes in one POST
_LARGE = 64 << 10  # bytes of a body that is unpacked in a thread
_GATHER_S = 0.2  # for which a POST waits for others
_MOVED_MS = 200  # changes of a clock's difference that are not saved: clocks drift all the time

Answer = tuple[int, dict[str, object]]


class Refused(Exception):
    """An answer other than 200.

    `frame` is the place in the POST (from 0) of the refused batch, and `seq` its number, if it can be known.
    """

    def __init__(
        self,
        status: int,
        error: str,
        frame: int | None = None,
        seq: int | None = None,
        after_s: float | None = None,
    ) -> None:
        super().__init__(error)
        self.status, self.frame, self.seq = status, frame, seq
        self.headers = {} if after_s is None else {"Retry-After": str(math.ceil(after_s))}

    def body(self) -> dict[str, object]:
        """The answer's body."""
        named = {"frame": self.frame, "seq": self.seq}
        return {"error": str(self)} | {name: value for name, value in named.items() if value is not None}


@dataclass
class _Post:
    filed: list[Filed]
    done: asyncio.Future[None]


class Ingest:
    """Takes POSTs from their body to the disk."""

    def __init__(self, monitor: Monitor, live: Live, report: Callable[[str, Exception], None]) -> None:
        self._monitor, self._live, self._report = monitor, live, report
        self._queue: asyncio.Queue[_Post] = asyncio.Queue(MOST_WAITING)
        self._buckets = Buckets()
        self.trouble = ""  # why what agents sent could not be written when that was last tried
        self.taken = self.refused = 0  # batches written and POSTs refused since the start
        self._periods: dict[str, int] = {}
        self._arrivals = Arrivals()
        self._kept: dict[str, tuple[str, int]] = {}  # node -> clock difference on disk, or about to be
        self._moved: dict[str, tuple[str, int]] = {}  # node -> clock difference that is to be saved

    @property
    def waiting(self) -> int:
        """The number of POSTs that wait to be written."""
        return self._queue.qsize()

    @property
    def is_full(self) -> bool:
        """Whether no more POSTs can wait."""
        return self._queue.full()

    async def post(self, node: str, body: bytes, sent: str) -> dict[str, object]:
        """File the batches of one POST of a node's agent; returns the acknowledgement. Raises Refused."""
        if self._queue.full():
            raise Refused(503, "the server is behind; try again later")
        if wait := self._buckets.wait_s(node, len(body)):
            self.refused += 1
            raise Refused(429, f"{node} sends too much; try again in {wait:.0f} s", after_s=wait)
        if len(body) > _LARGE:  # unpacking a large body must not block other requests
            good, refusal = await asyncio.to_thread(self._checked, node, body, sent)
        else:
            good, refusal = self._checked(node, body, sent)
        if good:
            done = asyncio.get_running_loop().create_future()
            await self._queue.put(_Post(good, done))
            await done
            self.taken += len(good)
            for filed in good:
                self._live.saw(filed)
        if refusal:
            self.refused += 1
            raise refusal
        return {"stream": good[-1].batch.stream, "acknowledged": good[-1].batch.seq}

    def _checked(self, node: str, body: bytes, sent: str) -> tuple[list[Filed], Refused | None]:
        """The good batches before the first bad one, and why that one is refused."""
        if len(body) > MOST_BODY:
            return [], Refused(413, f"a body of {len(body):,} bytes, allowed are {MOST_BODY:,}")
        try:
            clocks = Sent.parse(sent)
        except ValueError as error:
            return [], Refused(400, str(error))
        payloads: list[bytes] = []
        broken: Refused | None = None
        try:
            for _, payload in read_frames(body):
                payloads.append(payload)
        except BadFrame as error:
            broken = Refused(400, str(error), len(payloads))
        if len(payloads) > MOST_FRAMES:
            return [], Refused(400, f"more than {MOST_FRAMES} frames in one body")
        if not payloads:
            return [], broken or Refused(400, "a body without a frame", 0)
        now = self._undelayed_ms(node, clocks)
        good, refusal = self._batches(node, payloads, clocks, now)
        return good, refusal or broken

    def _batches(
        self, node: str, payloads: list[bytes], clocks: Sent, now: int
    ) -> tuple[list[Filed], Refused | None]:
        """Like `_checked`. Batches beyond the limits of one POST are left, unacknowledged, to the next
        POST.
        """
        good: list[Filed] = []
        text = parts = 0
        for place, payload in enumerate(payloads):
            try:
                text += inflated_bytes(payload)
                if good and text > MOST_POST_TEXT:
                    break
                batch = decode(payload)
                if batch.node != node:
                    why = f"the token is of {node}, the batch of {batch.node}"
                    return good, Refused(403, why, place, batch.seq)
                parts += len(batch.intervals) + len(batch.notes)
                if good and parts > MOST_POST_PARTS:
                    break
                shift = correction_ms(batch.wall_ms, batch.mono_ms, batch.boot, clocks, now)
                batch, left_out = credible(batch, shift, int(self._monitor.clock() * 1000))
            except BadBatch as error:
                return good, Refused(422, str(error), place, _seq_at(place, payloads))
            good.append(Filed(batch, shift, payload, self._period(batch), tuple(left_out)))
        return good, None

    def _undelayed_ms(self, node: str, sent: Sent) -> int:
        """When a POST would have arrived without delay,
        using what an earlier run of the server saved of the node.
        """
        if not self._arrivals.knows(node) and (kept := self._monitor.jobs.clocks(node)):
            self._kept[node] = kept
            self._arrivals.begin(node, *kept)
        now = self._arrivals.undelayed_ms(node, sent, int(self._monitor.clock() * 1000))
        (boot, least), (boot_kept, least_kept) = self._arrivals.least(node), self._kept.get(node, ("", 0))
        if boot != boot_kept or abs(least - least_kept) > _MOVED_MS:
            self._kept[node] = self._moved[node] = boot, least
        return now

    def _period(self, batch: Batch) -> int:
        if batch.facts:
            self._periods[batch.node] = batch.facts.interval_ms
        elif batch.node not in self._periods:
            self._periods[batch.node] = self._monitor.jobs.facts(batch.node).get("interval_ms", 10_000)
        return self._periods[batch.node]

    async def write(self) -> None:
        """Write queued POSTs until cancelled; all that wait together go into one transaction.

        A transaction costs as much as several POSTs. Once two came together, each waits for more.
        """
        posts: list[_Post] = []
        while True:
            many = len(posts) > 1
            posts = [await self._queue.get()]
            if many:
                await asyncio.sleep(_GATHER_S)
            while not self._queue.empty():
                posts.append(self._queue.get_nowait())
            if not await self._written(posts) and len(posts) > 1:
                for post in posts:  # so that only the failing POST is refused
                    await self._written([post])

    async def _written(self, posts: list[_Post]) -> bool:
        """Write POSTs in one transaction. Returns False if they are to be written one by one.

        If several POSTs fail together, none is answered yet, except for an error of the disk or database. A
        single POST that fails is refused; nothing of it was acknowledged.
        """
        try:
            await asyncio.to_thread(self._put, [filed for post in posts for filed in post.filed])
        except Exception as error:
            self._report("filing", error)
            of_disk = isinstance(error, (sqlite3.Error, OSError)) and not isinstance(error, sqlite3.DataError)
            if len(posts) > 1 and not of_disk:
                return False
            self.trouble = str(getattr(error, "brief", error))
            for post in posts:
                if not post.done.done():
                    why = f"the server cannot write: {error}; nothing is lost, send it again later"
                    post.done.set_exception(Refused(503, why))
            return True
        self.trouble = ""
        for post in posts:
            if not post.done.done():
                post.done.set_result(None)
        return True

    def _put(self, batches: list[Filed]) -> None:
        jobs = self._monitor.jobs
        if new := jobs.unfiled(batches):
            self._monitor.samples.put(new)
            jobs.file(new, self._monitor.late_ms())
        if self._moved:
            moved, self._moved = self._moved, {}
            jobs.keep_clocks(moved)


def _seq_at(place: int, payloads: list[bytes]) -> int | None:
    """The number of an unreadable batch, derived from a readable one near it: agents send batches in
    order.
    """
    for other in sorted(range(len(payloads)), key=lambda each: abs(each - place)):
        with suppress(BadBatch):
            if (seq := seq_of(payloads[other]) + place - other) > 0:
                return seq
    return None
