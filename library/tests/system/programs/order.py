"""What of a rank's operations is ordered after what: rank 0 moves data to rank 1, which looks at the data
when the signal comes.

    order.py PATH...

Each rank prints for each path and each line how many times what the documents promise did not hold
(docs/concepts/operations-and-signals.md, "What is ordered after what").
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import peerway

SIZE, ROUNDS = 8 << 20, 3
WAIT = 60.0


class Memory:
    """A region on the host."""

    device = "host"

    def __init__(self, ctx: peerway.Context) -> None:
        self.region = ctx.allocate("host", SIZE)
        self._values = self.region.array()

    def fill(self, value: int) -> None:
        """Set all bytes to the value."""
        self._values[:] = value

    def holds(self, value: int, first: int = 0) -> bool:
        """Whether all bytes from this eighth on have the value."""
        return bool((self._values[first * SIZE // 8 :] == value).all())


class Entry(ctypes.Structure):
    """pw_fifo_entry of peerway/handles.h."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in ("number", "to_offset", "from_offset", "bytes", "by", "to_from", "signal", "unused")
    ]


class Fifo:
    """A FIFO into which puts are posted as kernels post them."""

    def __init__(self, pair: Pair) -> None:
        self.fifo = pair.ctx.fifo(
            [pair.remote, pair.signal], [pair.source.region], pair.source.device, entries=4
        )
        self._entries, self._count = struct.unpack_from("IPQ", self.fifo.handle())[1:]
        self._posted = 0

    def put_all(self) -> None:
        """Put everything, and notify the signal."""
        entry = Entry.from_address(self._entries + self._posted % self._count * ctypes.sizeof(Entry))
        entry.to_offset, entry.from_offset, entry.bytes, entry.by = 0, 0, SIZE, 1
        entry.to_from, entry.signal = 0, 1
        self._posted += 1
        entry.number = self._posted


@dataclass
class Line:
    """One line of the documented table: what rank 0 does, and what each rank must see."""

    start: Callable[[int], object]  # rank 0, with the round's value
    right: Callable[[int], bool]  # rank 1, once its signal has arrived
    right_later: Callable[[int], bool] = lambda _: True  # rank 0, once rank 1 has looked
    notifications: int = 1


class Pair:
    """Rank 0's source, rank 1's target and its signal."""

    def __init__(self, ctx: peerway.Context, memory: Callable[[peerway.Context], Memory]) -> None:
        self.ctx, self.notified, other = ctx, 0, 1 - ctx.rank
        self.source, self.target = memory(ctx), memory(ctx)
        self.arrived, self.answered = ctx.signal(other), ctx.signal(other)
        shared = (self.target.region, self.arrived, self.answered)
        keys = [ctx.team.all_gather(each.key(), WAIT)[other] for each in shared]
        self.remote, self.signal, self.answer = map(ctx.import_key, keys)

    def put(self, first: int, last: int, notify: peerway.Remote | None = None) -> None:
        """Put a part, given in eighths of the whole."""
        at = slice(first * SIZE // 8, last * SIZE // 8)
        self.ctx.put(self.remote[at], self.source.region[at], notify)

    def wrong(self, line: Line) -> int:
        """How often the line did not hold."""
        wrong = 0
        for number in range(1, ROUNDS + 1):
            value = self.notified % 100 + number
            self.source.fill(value)
            self.target.fill(0)
            self.ctx.team.barrier(WAIT)
            if self.ctx.rank == 0:
                line.start(value)
            else:
                self.arrived.wait(self.notified + 1, WAIT)
                wrong += not line.right(value)
            self.notified += line.notifications
            if self.ctx.rank == 1:
                self.arrived.wait(self.notified, WAIT)
            self.ctx.flush(timeout=WAIT)
            self.ctx.team.barrier(WAIT)
            if self.ctx.rank == 0:
                wrong += not line.right_later(value)
        return wrong


class Lines:
    """The lines of the table by name, for one path."""

    def __init__(self, pair: Pair, path: str, others: list[str]) -> None:
        self.pair, self.ctx = pair, pair.ctx
        self.path, self.others = path, others

    def data_is_there(self, first: int = 0) -> Callable[[int], bool]:
        """A check that the target has the value from this eighth on."""
        return lambda value: self.pair.target.holds(value, first)

    def put_with_a_signal(self) -> None:
        """A second put after a first one."""
        self.pair.put(0, 4)
        self.pair.put(4, 8, notify=self.pair.signal)

    def put_and_notify(self) -> None:
        """Only a notification."""
        self.pair.put(0, 8)
        self.ctx.notify(self.pair.signal)

    def requests_and_notify(self) -> None:
        """A put with a request, one without, and a notification with one."""
        half = slice(0, SIZE // 2)
        self.ctx.start_put(self.pair.remote[half], self.pair.source.region[half])
        self.pair.put(4, 8)
        self.ctx.start_notify(self.pair.signal)

    def blocks_and_notify(self) -> None:
        """The last put consists of blocks."""
        self.pair.put(0, 8)
        shape = (2,), (SIZE // 2,), SIZE // 2 - 8
        self.ctx.put(self.pair.remote.block(*shape), self.pair.source.region.block(*shape))
        self.ctx.notify(self.pair.signal)

    def paths_and_notify(self) -> None:
        """The puts go over all paths in turn."""
        paths = [self.path, *self.others]
        for eighth in range(8):
            self.ctx.use(paths[eighth % len(paths)])
            self.pair.put(eighth, eighth + 1)
        self.ctx.notify(self.pair.signal)
        self.ctx.use(self.path)

    def thread_and_notify(self) -> None:
        """A call of another thread had returned."""
        thread = threading.Thread(target=self.pair.put, args=(0, 8))
        thread.start()
        thread.join()
        self.ctx.notify(self.pair.signal)

    def get_and_notify(self) -> None:
        """Rank 1 changes the memory that rank 0 got."""
        whole = slice(0, SIZE)
        self.ctx.get(self.pair.source.region[whole], self.pair.remote[whole])
        self.ctx.notify(self.pair.signal)

    def two_notifications(self) -> None:
        """The first notification waits for data, the second for nothing."""
        self.pair.put(0, 8, notify=self.pair.signal)
        self.ctx.notify(self.pair.signal, by=1000)

    def first_came_first(self, value: int) -> bool:
        """No notification was counted before the one that was started first."""
        counted = self.pair.arrived.value - self.pair.notified
        return counted in (1, 1001) and self.pair.target.holds(value)

    def changed(self, _value: int) -> bool:
        """Rank 1 may change its memory."""
        self.pair.target.fill(0xFF)
        return True

    def flush_between(self, value: int) -> None:
        """Two puts to the same target bytes, the first with different data."""
        self.pair.source.fill(value + 1)
        self.pair.put(0, 8)
        self.ctx.flush(1, WAIT)
        self.pair.source.fill(value)
        self.pair.put(0, 8, notify=self.pair.signal)

    def of_the_host(self) -> dict[str, Line]:
        """The lines for calls of a host program."""
        there = self.data_is_there()
        bare = {
            "put, notify": self.put_and_notify,
            "puts with requests, start_notify": self.requests_and_notify,
            "put, put of blocks, notify": self.blocks_and_notify,
            "puts over several paths, notify": self.paths_and_notify,
            "put of another thread, notify": self.thread_and_notify,
        }
        return {
            "put with notify=": Line(lambda _: self.put_with_a_signal(), self.data_is_there(4)),
            "whole put with notify=": Line(lambda _: self.pair.put(0, 8, self.pair.signal), there),
            **{name: Line(lambda _, start=start: start(), there) for name, start in bare.items()},
            "get, notify": Line(
                lambda _: self.get_and_notify(), self.changed, lambda _: self.pair.source.holds(0)
            ),
            "notification, notification": Line(
                lambda _: self.two_notifications(), self.first_came_first, notifications=1001
            ),
            "put, flush, put": Line(self.flush_between, there),
        }

    def plan(self, *, data: bool, notify: peerway.Remote | None) -> peerway.PlanBuilder:
        """A plan that puts all, or only notifies and then waits for rank 1's answer."""
        builder = self.ctx.plan(self.pair.source.device)
        if data:
            whole = slice(0, SIZE)
            return builder.put(self.pair.remote[whole], self.pair.source.region[whole], notify=notify)
        return builder.notify(self.pair.signal).wait(self.pair.answered)

    def of_plans(self) -> Iterator[tuple[str, Line]]:
        """The lines for plans and FIFOs, one after another, because only one may notify the signal."""
        pair, there = self.pair, self.data_is_there()

        def run(plan: peerway.Plan) -> None:
            plan.start()
            plan.finish(timeout=WAIT)

        def answer(_value: int) -> bool:
            self.ctx.notify(pair.answer)
            return True

        with contextlib.closing(self.plan(data=True, notify=pair.signal).prepare(alone=True)) as plan:
            yield "plan's put with notify=", Line(lambda _: run(plan), there)
        with contextlib.closing(self.plan(data=False, notify=pair.signal).prepare(alone=True)) as plan:
            yield "plan's notify", Line(lambda _: run(plan), answer)
        with contextlib.closing(self.plan(data=True, notify=None).prepare(alone=True)) as plan:

            def finish_and_flush(_value: int) -> None:
                run(plan)
                self.ctx.flush(1, WAIT)
                self.ctx.notify(pair.signal)

            yield "plan's start, finish, flush, notify", Line(finish_and_flush, there)
        fifo = Fifo(pair)
        yield "FIFO's put with a signal", Line(lambda _: fifo.put_all(), there)
        fifo.fifo.close()


def main(memory: Callable[[peerway.Context], Memory] = Memory) -> int:
    """Check all lines of the table over all paths, in one pair of processes."""
    paths = sys.argv[1:]
    with peerway.Context() as ctx:
        pair = Pair(ctx, memory)
        for path in paths:
            ctx.use(path)
            lines = Lines(pair, path, [other for other in paths if other not in (path, "route")])
            wrong = {name: pair.wrong(line) for name, line in lines.of_the_host().items()}
            wrong |= {name: pair.wrong(line) for name, line in lines.of_plans()}
            print(json.dumps(wrong), flush=True)
        ctx.team.barrier(WAIT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
