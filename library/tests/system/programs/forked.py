"""Ranks that fork children, which try everything that a rank can do. Then the parents continue normally.

Each rank prints how its children's calls ended, how the children ended, and what was wrong with the data that
the parents put to each other afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from outcomes import outcome

import peerway


def said_by_child(body: Callable[[], object]) -> dict[str, list[str]]:
    """What a forked child returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(body()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        words = pipe.read()
    assert os.waitpid(child, 0)[1] == 0, words
    said: dict[str, list[str]] = json.loads(words)
    return said


def status_of_child(body: Callable[[], object]) -> int:
    """The exit status of a forked child that runs to the end of the interpreter."""
    child = os.fork()
    if child == 0:
        body()
        sys.exit(0)
    return os.waitpid(child, 0)[1]


def of_its_own() -> int:
    """The exit status of a new program with a team of its own."""
    text = "import peerway\nwith peerway.Context() as ctx: ctx.team.barrier(30)"
    rest = {name: value for name, value in os.environ.items() if not name.startswith("PEERWAY_")}
    return subprocess.run([sys.executable, "-c", text], env=rest, check=False).returncode


def main() -> int:
    """Two ranks, each with one object of every kind."""
    with peerway.Context() as ctx:
        other = 1 - ctx.rank
        region = ctx.allocate("host", 64)
        key = ctx.team.all_gather(region.key(), 60)[other]
        remote = ctx.import_key(key)
        arrived = ctx.signal(other)
        theirs = ctx.import_key(ctx.team.all_gather(arrived.key(), 60)[other])
        plan = ctx.plan().put(remote[0:8], region[0:8]).prepare(alone=True)
        builder, stream = ctx.plan(), ctx.stream()
        ctx.use("staged")
        values = region.array()

        def exchange(value: int) -> bool:
            """Whether the data that the parents put to each other arrives."""
            values[0:8] = value
            ctx.put(remote[8:16], region[0:8])
            ctx.flush(timeout=60)
            ctx.team.barrier(60)
            right = bool((values[8:16] == value).all())
            ctx.team.barrier(60)
            return right

        wrong = [] if exchange(1) else ["before"]
        request = ctx.start_put(remote[16:24], region[0:8])
        request.wait(60)
        calls: dict[str, Callable[[], object]] = {
            "put": lambda: ctx.put(remote[0:8], region[0:8]),
            "get": lambda: ctx.get(region[0:8], remote[0:8]),
            "flush": lambda: ctx.flush(timeout=3),
            "start_put": lambda: ctx.start_put(remote[0:8], region[0:8]),
            "request": lambda: request.wait(3),
            "notify": lambda: ctx.notify(theirs),
            "wait": lambda: arrived.wait(1, 3),
            "plan": plan.start,
            "finish": lambda: plan.finish(timeout=3),
            "prepare": lambda: builder.prepare(alone=True),
            "stream": ctx.stream,
            "stream wait": lambda: stream.wait(3),
            "allocate": lambda: ctx.allocate("host", 64),
            "register": lambda: ctx.register(bytearray(64)),
            "import": lambda: ctx.import_key(key),
            "key": region.key,
            "signal": lambda: ctx.signal(other),
            "halo": lambda: ctx.halo(values, grid=2),
            "all_gather": lambda: ctx.team.all_gather(b"x", 3),
            "barrier": lambda: ctx.team.barrier(3),
            "context": lambda: peerway.Context(ctx.team),
            "team": peerway.Team.from_launcher,
        }
        child = said_by_child(lambda: {name: outcome(call) for name, call in calls.items()})

        def close_all() -> None:
            for each in (request, plan, builder, stream, theirs, arrived, remote, region, ctx):
                each.close()

        ends = {
            "exits": status_of_child(lambda: None),
            "leaves by _exit": status_of_child(lambda: os._exit(0)),
            "closes": status_of_child(close_all),
        }
        wrong += [] if of_its_own() == 0 else ["a program of its own"]
        wrong += [f"exchange {n}" for n in range(3) if not exchange(n + 2)]
        plan.start()
        plan.finish(timeout=60)
        ctx.notify(theirs)
        arrived.wait(1, 60)
        ctx.team.barrier(60)
        print(json.dumps({"child": child, "ends": ends, "wrong": wrong}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
