"""Ranks that are in different collectives: rank 0 in one, the others in another, for each pair.

First the other ranks' call fails at all ranks. Then rank 0 catches its error and goes on, and the others
repeat the call. Each rank prints, for each pair, how its call ended; afterwards the ranks are in step again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Callable

import numpy
from outcomes import FINE, outcome

import peerway

SOME = (0, 1)


class Calls:
    """The collectives of a team by name, each as a rank calls it in normal operation."""

    def __init__(self, ctx: peerway.Context) -> None:
        self.ctx, self.team = ctx, ctx.team
        self.other = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
        self.array = numpy.zeros(16)
        self.region = ctx.register(numpy.zeros(64))
        self.by_name: dict[str, Callable[[], object]] = {
            "barrier": lambda: self.team.barrier(60),
            "all_gather": lambda: self.team.all_gather(b"%d" % ctx.rank * (ctx.rank + 1), 60),
            "creation of a context": lambda: peerway.Context(self.team).close(),
            "prepare of a plan": lambda: self.ring().prepare().close(),
            "prepare_among of a plan": lambda: self.pair().prepare_among(SOME).close(),
            "creation of a halo": lambda: ctx.halo(self.array, grid=ctx.size).close(),
            "creation of a collective": lambda: ctx.all_reduce(self.array).close(),
        }

    def ring(self) -> peerway.PlanBuilder:
        """A plan in which each rank sends to the next."""
        after, before = self.other
        return self.ctx.plan("host").send(after, 1, self.region[0:8]).receive(before, 1, self.region[64:72])

    def pair(self) -> peerway.PlanBuilder:
        """A plan of the two first ranks."""
        return (
            self.ctx.plan("host")
            .send(1 - self.ctx.rank, 1, self.region[0:8])
            .receive(1 - self.ctx.rank, 1, self.region[64:72])
        )

    def failing(self, name: str) -> Callable[[], object] | None:
        """A call of this name that fails at all ranks; None if no rank alone can make it fail."""
        broken = self.ctx.rank == 1
        if name == "prepare of a plan":
            return (self.ring().send(0, 7, self.region[0:8]) if broken else self.ring()).prepare
        if name == "prepare_among of a plan":
            return lambda: (
                self.pair().send(2, 7, self.region[0:8]) if broken else self.pair()
            ).prepare_among(SOME)
        if name == "creation of a collective":
            return lambda: self.ctx.all_reduce(self.array[:8] if broken else self.array)
        if name == "creation of a halo":
            return lambda: self.ctx.halo(numpy.zeros(20) if broken else self.array, grid=self.ctx.size)
        return None

    def in_step(self) -> bool:
        """Whether all_gather returns everybody's data, and the ranks can prepare a plan that works."""
        if self.team.all_gather(b"%d" % self.ctx.rank, 60) != [b"%d" % rank for rank in range(self.ctx.size)]:
            return False
        with contextlib.closing(self.ring().prepare()) as plan:
            plan.start()
            plan.finish(timeout=60)
        return True


def end_of(calls: Calls, mine: str, theirs: str) -> dict[str, list[str]]:
    """How the calls of this rank end if rank 0 calls one collective and the others call the other one."""
    ends = {}
    some = "prepare_among of a plan"
    takes_part = calls.ctx.rank in SOME
    if (failing := calls.failing(theirs)) and (takes_part or theirs != some):
        ends["failed"] = outcome(failing)
    if some not in (mine, theirs):
        ends["pair"] = outcome(calls.by_name[mine if calls.ctx.rank == 0 else theirs])
        return ends
    # The two collectives are counted separately: a rank that takes part in both sees both failures. The third
    # rank takes part in only one.
    order = (mine, theirs) if calls.ctx.rank == 0 else (theirs, mine)
    for name in order:
        if takes_part or name != some:
            ends[name] = outcome(calls.by_name[name])
    return ends


def main() -> int:
    """Try each pair in both directions."""
    with peerway.Context() as ctx:
        calls = Calls(ctx)
        assert calls.in_step()
        for mine, theirs in itertools.permutations(calls.by_name, 2):
            ends = end_of(calls, mine, theirs)
            ends["afterwards"] = FINE if calls.in_step() else ["out of step", ""]
            print(json.dumps([mine, theirs, ends]), flush=True)
        ctx.team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
