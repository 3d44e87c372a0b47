"""Two ranks; rank 1 is stopped while rank 0 waits for it, in one wait after another.

    interrupts_absent.py

Each wait has a team of its own, because an interrupted collective ends those of its team. Rank 1 prints "stop
me" when it is to be stopped. Rank 0 prints the wait's name, gets SIGINT, and prints the result.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable

import numpy as np

import peerway

LONG = 600.0
RENDEZVOUS = os.environ["PEERWAY_RENDEZVOUS"]
RANK = int(os.environ["PEERWAY_RANK"])


def say(word: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(word), flush=True)


def ended_by(name: str, wait: Callable[[], object]) -> None:
    """Print what a wait raises, and when."""
    sys.stdin.readline()  # rank 1 is stopped
    say(name)
    try:
        wait()
        kind = "nothing"
    except BaseException as error:  # what a user would see
        kind = type(error).__name__
    say({"raised": kind, "at": time.monotonic()})
    sys.stdin.readline()  # rank 1 goes on


def stop_me() -> None:
    """Rank 1: ask to be stopped, and continue when the test allows it."""
    say("stop me")
    sys.stdin.readline()


class Memory:
    """Memory of both ranks, large enough for long puts."""

    def __init__(self, ctx: peerway.Context) -> None:
        self.bytes = np.zeros(64 << 20, np.uint8)
        self.near = ctx.register(self.bytes)
        self.far = ctx.import_key(ctx.team.all_gather(self.near.key(), LONG)[1 - ctx.rank])


def transfers(ctx: peerway.Context) -> None:
    """A put that finds its channel full, and a flush."""
    memory = Memory(ctx)
    ctx.team.barrier(LONG)
    if RANK == 1:
        stop_me()
    else:

        def move() -> None:
            ctx.put(memory.far, memory.near)
            ctx.flush(1, LONG)

        ended_by("put and flush", move)
        ctx.flush(1, LONG)  # the interrupted operations continue
    ctx.team.barrier(LONG)


def halo(ctx: peerway.Context) -> None:
    """A halo without its partner, which is finished once the partner is back."""
    u = np.full((8, 8), float(RANK))
    halo = ctx.halo(u, grid=(2,), shadow=1, periodic=True)
    ctx.team.barrier(LONG)
    if RANK == 1:
        stop_me()
        halo.start()
        halo.finish(timeout=LONG)
    else:
        halo.start()
        ended_by("finish of a halo", lambda: halo.finish(timeout=LONG))
        halo.finish(timeout=LONG)
    assert u[0, 3] == 1 - RANK, u
    ctx.team.barrier(LONG)


def collective(name: str, action: Callable[[peerway.Context], object]) -> Callable[[peerway.Context], None]:
    """A collective that rank 1 does not join."""

    def body(ctx: peerway.Context) -> None:
        ctx.team.barrier(LONG)
        if RANK == 1:
            stop_me()
        else:
            ended_by(name, lambda: action(ctx))

    return body


def prepare(ctx: peerway.Context) -> None:
    """A plan that both ranks prepare."""
    memory = Memory(ctx)
    plan = ctx.plan().put(memory.far[0:64], memory.near[0:64])
    collective("prepare", lambda _: plan.prepare())(ctx)


def close(ctx: peerway.Context) -> None:
    """Close a context while puts to an unresponsive rank are under way."""
    memory = Memory(ctx)
    if RANK == 0:
        ctx.put(memory.far[0:8], memory.near[0:8])  # the first makes a channel, for which it waits
        ctx.flush(1, LONG)
    ctx.team.barrier(LONG)
    if RANK == 1:
        stop_me()
    else:
        ctx.put(memory.far[0 : 1 << 20], memory.near[0 : 1 << 20])
        ended_by("close of a context", ctx.close)


def close_team(ctx: peerway.Context) -> None:
    """Leave a team while the other rank does not respond."""
    ctx.team.barrier(LONG)
    if RANK == 1:
        stop_me()
    else:
        ctx.close()
        ended_by("close of a team", ctx.team.close)


SCENARIOS = [
    transfers,
    halo,
    prepare,
    collective("all_gather", lambda ctx: ctx.team.all_gather(b"x", LONG)),
    collective("barrier", lambda ctx: ctx.team.barrier(LONG)),
    collective("making a halo", lambda ctx: ctx.halo(np.zeros((8, 8)), grid=(2,))),
    close,
    close_team,
]


def make(number: int) -> peerway.Team:
    """A new team of both ranks."""
    os.environ["PEERWAY_RENDEZVOUS"] = f"{RENDEZVOUS}-{number}"
    return peerway.Team.from_launcher()


def main() -> int:
    """Go through the waits."""
    for number, scenario in enumerate(SCENARIOS):
        team = make(number)
        ctx = peerway.Context(team)
        scenario(ctx)
        ctx.close()
        team.close()
    team = make(100)
    if RANK == 1:
        stop_me()  # before the context
        team.close()
        stop_me()  # before the team
    else:
        ended_by("making a context", lambda: peerway.Context(team))
        team.close()
        ended_by("joining a team", lambda: make(101))
    say("end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
