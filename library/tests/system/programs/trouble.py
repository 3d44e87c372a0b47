"""Ranks in trouble that is not a death: one is stopped, closes or leaves early, or has no descriptor left.

    trouble.py SCENARIO [SECONDS]

Of two ranks, rank 0 moves data towards rank 1 and says what became of it.
"""

from __future__ import annotations

import functools
import itertools
import json
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from outcomes import outcome

import peerway

SPAN = 32 << 20


def say(word: Any) -> None:
    """Print one line for the test."""
    print(json.dumps(word), flush=True)


def start_and_finish(plan: peerway.Plan) -> None:
    """Run one epoch."""
    plan.start()
    plan.finish(timeout=30)


class Pair:
    """A region of each rank, imported by the other."""

    def __init__(self, ctx: peerway.Context, size: int = SPAN) -> None:
        self.ctx, self.other = ctx, 1 - ctx.rank
        self.region = ctx.allocate("host", size)
        self.remote = ctx.import_key(ctx.team.all_gather(self.region.key(), timeout=30)[self.other])

    def put(self, size: int = SPAN) -> None:
        """Put once to the other rank."""
        self.ctx.put(self.remote[0:size], self.region[0:size])


def stopped(ctx: peerway.Context) -> None:
    """The target is stopped: one thread waits for its put, and another thread's flush keeps its timeout."""
    pair = Pair(ctx)
    ctx.use("staged")
    if ctx.rank == 1:
        ctx.team.barrier(timeout=30)
        say("ready")
        ctx.team.barrier(timeout=100)
        return
    pair.put(1)
    ctx.flush(timeout=30)
    ctx.team.barrier(timeout=30)
    say("ready")
    sys.stdin.readline()  # now the other rank is stopped
    ended: list[list[str]] = []

    def put() -> None:
        pair.put()
        ctx.flush(1, timeout=60)

    thread = threading.Thread(target=lambda: ended.append(outcome(put)))
    thread.start()
    while thread.is_alive() and outcome(lambda: ctx.flush(1, timeout=0.2))[0] == "fine":
        pass  # until the put has been posted
    say(outcome(lambda: ctx.flush(1, timeout=0.2)))
    thread.join()
    say(ended[0])
    say(outcome(lambda: ctx.flush(1, timeout=60)))
    if not ctx.team.lost(1):
        ctx.team.barrier(timeout=100)


def closes(ctx: peerway.Context) -> None:
    """The target closes its context while others put to it."""
    pair = Pair(ctx)
    ctx.use("staged")
    with peerway.Context(
        ctx.team
    ):  # collective, and of no use here: the one closed is not the team's only one
        if ctx.rank == 1:
            ctx.team.barrier(timeout=30)
            sys.stdin.readline()
            ctx.close()
            say("closed")
            ctx.team.barrier(timeout=60)
            return
        ctx.team.barrier(timeout=30)
        say("ready")
        found = ["fine", ""]
        while found[0] == "fine":
            found = outcome(pair.put)
        say(found)
        ctx.team.barrier(timeout=60)


def no_descriptors(ctx: peerway.Context) -> None:
    """A staging channel is needed when the initiator, and then the target, has no descriptor left."""
    pair = Pair(ctx, 1 << 20)
    ctx.use("staged")
    for poor in (0, 1):
        few = next(number for number in itertools.count() if not Path(f"/proc/self/fd/{number}").exists())
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        if ctx.rank == poor:
            resource.setrlimit(resource.RLIMIT_NOFILE, (few, before[1]))
        ctx.team.barrier(timeout=30)
        if ctx.rank == 0:
            say(outcome(lambda: pair.put(4096)))
            say(outcome(lambda: ctx.flush(timeout=30)))
        ctx.team.barrier(timeout=30)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        ctx.team.barrier(timeout=30)
    if ctx.rank == 0:
        say(outcome(lambda: pair.put(4096)))
        say(outcome(lambda: ctx.flush(timeout=30)))
    ctx.team.barrier(timeout=30)


def leaves(ctx: peerway.Context) -> None:
    """The sender leaves normally while the other rank waits for its signal."""
    signal = ctx.signal(sender=0)
    ctx.team.barrier(timeout=30)
    if ctx.rank == 1:
        say(outcome(lambda: signal.wait(1, timeout=60)))


def closed_by_a_thread(ctx: peerway.Context) -> None:
    """A thread closes the context while another thread waits in it."""
    signal = ctx.signal(sender=1 - ctx.rank)
    ctx.team.barrier(timeout=30)
    ended: list[list[str]] = []
    thread = threading.Thread(target=lambda: ended.append(outcome(lambda: signal.wait(1, timeout=60))))
    thread.start()
    threading.Event().wait(0.05)
    with peerway.Context(ctx.team):
        ctx._owns_team = False
        ctx.close()
        thread.join()
        say(ended[0])
        say(outcome(lambda: signal.value))
        ctx.team.barrier(timeout=30)


def leave_in_turn(ctx: peerway.Context) -> None:
    """Rank 0 leaves at once, rank 1 some seconds later, while rank 2 waits for rank 1."""
    arrived = ctx.signal(sender=1)
    ctx.team.barrier(timeout=30)
    if ctx.rank == 1:
        while not ctx.team.lost(0):
            time.sleep(0.01)
        time.sleep(float(sys.argv[2]))
    if ctx.rank == 2:
        say(outcome(lambda: arrived.wait(1, timeout=60)))


def repeated(ctx: peerway.Context) -> None:
    """Rank 0's collectives time out and are repeated until they succeed, while the other rank is late."""
    team, late = ctx.team, ctx.rank == 1

    def until_it_ends(call: Callable[[float], object]) -> object:
        if not late:
            ends = [outcome(lambda: call(0.01))[0] for _ in range(3)]
            assert ends == ["Timeout"] * 3, ends
            say("late")
        else:
            sys.stdin.readline()
        return call(60)

    for length in (1, 5):
        mine = b"%d" % ctx.rank * length
        gathered = until_it_ends(functools.partial(team.all_gather, mine))
        assert gathered == [b"0" * length, b"1" * length], gathered
    until_it_ends(team.barrier)
    if not late:
        assert outcome(lambda: team.barrier(0.01))[0] == "Timeout"
        say(outcome(lambda: team.all_gather(b"other", 60)))
        say("late")
    else:
        sys.stdin.readline()
    team.barrier(60)
    # If the two calls differ, each rank's message names its own call.
    say(outcome((lambda: team.barrier(60)) if late else (lambda: team.all_gather(b"abc", 60))))
    for number in range(3):
        assert team.all_gather(b"%d" % number, 60) == [b"%d" % number] * 2


def left_by_exception(ctx: peerway.Context) -> None:
    """Rank 1 leaves while rank 0 still uses its region. Rank 0 prints how each call to rank 1 ends."""
    pair = Pair(ctx, 64)
    arrived = ctx.signal(sender=1 - ctx.rank)
    keys = ctx.team.all_gather(pair.region.key(), timeout=30)
    notified = ctx.import_key(ctx.team.all_gather(arrived.key(), timeout=30)[pair.other])
    plan = ctx.plan().put(pair.remote[0:8], pair.region[0:8]).prepare(alone=True)
    ctx.team.barrier(timeout=30)
    if ctx.rank == 1:
        return
    while not ctx.team.lost(1):
        time.sleep(0.01)
    near, far = pair.region[0:8], pair.remote[0:8]
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: ctx.put(far, near),
        "get": lambda: ctx.get(near, far),
        "strided put": lambda: ctx.put(pair.remote.block((2,), (8,), 4), pair.region.block((2,), (8,), 4)),
        "flush of all": ctx.flush,
        "flush": lambda: ctx.flush(1),
        "import": lambda: ctx.import_key(keys[1]),
        "notify": lambda: ctx.notify(notified),
        "request": lambda: ctx.start_put(far, near).wait(30),
        "plan": lambda: start_and_finish(plan),
        "builder": lambda: ctx.plan().put(far, near).prepare(alone=True).start(),
        "barrier": lambda: ctx.team.barrier(30),
    }
    for path in ("route", "staged"):
        ctx.use(path)
        say({name: outcome(call) for name, call in calls.items()})


def main() -> int:
    """Run the scenario."""
    team = peerway.Team.from_launcher()
    with team, peerway.Context(team) as ctx:
        globals()[sys.argv[1]](ctx)
    return 0


if __name__ == "__main__":
    sys.exit(main())
