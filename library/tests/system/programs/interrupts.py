"""A rank that waits in vain, one wait after another, and tells what ended each.

    interrupts.py

Rank 0 walks through the waits: before each it says the wait's name, and the test sends it SIGINT. Rank 1
takes part in what is collective. Each wait has a timeout of its own, far longer than the test is patient.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable

import peerway

LONG = 600.0


def say(word: object) -> None:
    """Print one line of JSON for the test."""
    print(json.dumps(word), flush=True)


def ended_by(name: str, wait: Callable[[], object]) -> None:
    """Print what a wait raises, and which part of its timeout it took."""
    say(name)
    began = time.monotonic()
    try:
        wait()
        kind = "nothing"
    except BaseException as error:  # what a user would see
        kind = type(error).__name__
    say({"raised": kind, "seconds": time.monotonic() - began})


def blocked(stream: peerway.Stream) -> threading.Event:
    """Make a stream wait until the returned event is set."""
    event = threading.Event()
    stream.call(event.wait)
    return event


def one_sided(ctx: peerway.Context) -> None:
    """Waits that can be interrupted without harm: after all of them everything still works."""
    arrived = ctx.signal(sender=ctx.rank)
    for policy in ("busy-poll", "blocking"):
        ctx.wait_policy = policy
        ended_by(f"signal, {policy}", lambda: arrived.wait(1, timeout=LONG))
        ended_by(f"signal without a timeout, {policy}", lambda: arrived.wait(1))
        stream = ctx.stream()
        event = blocked(stream)
        ended_by(f"stream, {policy}", lambda: stream.wait(LONG))  # noqa: B023
        ended_by(f"close of a stream, {policy}", stream.close)
        event.set()
        stream.wait(LONG)
        stream.close()
    ctx.wait_policy = "busy-poll"
    plan = ctx.plan().wait(arrived).prepare(alone=True)
    plan.start()
    ended_by("plan", lambda: plan.finish(timeout=LONG))
    far = ctx.import_key(arrived.key())
    ctx.notify(far)
    plan.finish(timeout=LONG)
    arrived.wait(1, timeout=LONG)
    thread = threading.Thread(target=lambda: arrived.wait(2, timeout=LONG))
    thread.start()
    ended_by("another thread waits on", lambda: arrived.wait(3, timeout=LONG))
    say(thread.is_alive())
    ctx.notify(far)
    thread.join()


def main() -> int:
    """Go through the waits."""
    with peerway.Context() as ctx:
        if ctx.rank == 0:
            one_sided(ctx)
            ended_by("barrier", lambda: ctx.team.barrier(LONG))
            try:
                ctx.team.barrier(LONG)
            except peerway.Interrupted as error:
                say({"raised": type(error).__name__, "message": str(error)})
            sys.stdin.readline()  # until rank 1 has its error
        else:
            sys.stdin.readline()  # until rank 0 has given up
            ctx.team.barrier(LONG)  # rank 0 had arrived at it
            try:
                ctx.team.barrier(LONG)
            except peerway.Error as error:
                say({"raised": type(error).__name__, "message": str(error)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
