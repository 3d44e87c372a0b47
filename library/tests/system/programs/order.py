"""What of a rank's operations is ordered after what: rank 0 moves data to rank 1, which looks at the data
when the signal comes.

    order.py PATH...

Each rank prints for each path and each line of the table how many times the data was not there.
"""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from collections.abc import Callable

import peerway

SIZE, ROUNDS = 8 << 20, 4


class Pair:
    """Rank 0's source, rank 1's target and its signal."""

    def __init__(self, ctx: peerway.Context) -> None:
        self.ctx, self.notified, other = ctx, 0, 1 - ctx.rank
        self.source, self.target = ctx.allocate("host", SIZE), ctx.allocate("host", SIZE)
        self.arrived = ctx.signal(other)
        keys = ctx.team.all_gather(self.target.key(), 60), ctx.team.all_gather(self.arrived.key(), 60)
        self.remote, self.signal = (ctx.import_key(of[other]) for of in keys)
        self.source_values, self.values = self.source.array(), self.target.array()

    def put(self, first: int, last: int, notify: peerway.Remote | None = None) -> None:
        """A part in eighths of the whole."""
        at = slice(first * SIZE // 8, last * SIZE // 8)
        self.ctx.put(self.remote[at], self.source[at], notify)

    def late(self, start: Callable[[], object], first: int) -> int:
        """How often data from the `first` eighth on had not come with the signal."""
        late = 0
        for _ in range(ROUNDS):
            self.notified += 1
            value = self.notified
            self.source_values[:] = value % 100
            self.values[:] = 0
            self.ctx.team.barrier(60)
            if self.ctx.rank == 0:
                start()
            else:
                self.arrived.wait(value, 60)
                late += not (self.values[first * SIZE // 8 :] == value % 100).all()
            self.ctx.team.barrier(60)
        return late


def run(plan: peerway.Plan) -> None:
    """One start and its finish."""
    plan.start()
    plan.finish(timeout=60)


def main() -> int:
    """All lines of the table over all paths, in one pair of processes."""
    with peerway.Context() as ctx:
        pair = Pair(ctx)

        def bare_notify() -> None:
            pair.put(0, 8)
            ctx.notify(pair.signal)

        def bare_notify_after_requests() -> None:
            ctx.start_put(pair.remote[0 : SIZE // 2], pair.source[0 : SIZE // 2])
            pair.put(4, 8)
            ctx.start_notify(pair.signal)

        def signal_of_the_last_put() -> None:
            pair.put(0, 4)
            pair.put(4, 8, notify=pair.signal)

        def strided_put() -> None:
            halves = (
                pair.remote.block((2,), (SIZE // 2,), SIZE // 2 - 8),
                pair.source.block((2,), (SIZE // 2,), SIZE // 2 - 8),
            )
            pair.put(0, 8)
            ctx.put(*halves)
            ctx.notify(pair.signal)

        def several_paths() -> None:
            paths = [chosen, *(path for path in sys.argv[1:] if path != chosen)]
            for eighth in range(8):
                ctx.use(paths[eighth % len(paths)])
                pair.put(eighth, eighth + 1)
            ctx.notify(pair.signal)

        lines: dict[str, tuple[Callable[[], None], int]] = {
            "bare notify": (bare_notify, 0),
            "bare notify after requests": (bare_notify_after_requests, 0),
            "bare notify after blocks": (strided_put, 0),
            "put with a signal": (signal_of_the_last_put, 4),
            "bare notify after several paths": (several_paths, 0),
        }
        for chosen in sys.argv[1:]:
            told = {}
            for name, (start, first) in lines.items():
                ctx.use(chosen)
                told[name] = pair.late(start, first)
            ctx.use(chosen)
            whole = slice(0, SIZE)
            builder = ctx.plan().put(pair.remote[whole], pair.source[whole], notify=pair.signal)
            with contextlib.closing(builder.prepare(alone=True)) as plan:
                told["put of a plan with a signal"] = pair.late(functools.partial(run, plan), 0)
            print(json.dumps(told), flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
