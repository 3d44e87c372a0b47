"""Calls every public method of every public object after it, its context or its team has ended, in many
orders of closing and of garbage collection. The process must live; each call returns or raises a
peerway.Error.

lifetimes.py DEVICE SHUFFLES: prints one line, how many calls of how many methods returned and raised.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import peerway

DEVICE, SHUFFLES = sys.argv[1], int(sys.argv[2])

Things = dict[str, Any]


def world() -> Things:
    """One object of every kind, some with operations under way."""
    team = peerway.Team.from_launcher()
    ctx = peerway.Context(team)
    region = ctx.allocate(DEVICE, 4096)
    home = np.zeros(16)
    registered = ctx.register(home)
    remote = ctx.import_key(region.key())
    far = ctx.import_key(registered.key())
    signal = ctx.signal(device=DEVICE)
    mine = ctx.signal()
    theirs, notified = ctx.import_key(signal.key()), ctx.import_key(mine.key())
    stream = ctx.stream(DEVICE)
    builder = ctx.plan(DEVICE).put(remote[0:8], region[8:16]).wait(signal)
    plan = (
        ctx.plan(DEVICE)
        .put(remote[64:72], region[8:16], notify=theirs)
        .wait(signal, by=5)
        .prepare(alone=True)
    )
    things: Things = {
        "team": team, "ctx": ctx, "region": region, "registered": registered, "remote": remote, "far": far,
        "signal": signal, "mine": mine, "theirs": theirs, "notified": notified, "stream": stream,
        "builder": builder, "plan": plan, "span": remote[0:8], "view": remote.view("f8", (4, 8)),
        "array": region.array("f8"), "elements": registered.array("f8"), "shown": np.asarray(registered),
    }  # fmt: skip
    things["other"] = ctx.plan("host").send(0, 1, home[0:4]).receive(0, 1, home[4:8]).prepare()
    things["request"] = ctx.start_put(remote[8:16], region[0:8])
    things["started"] = things["other"].start()
    things["halo"] = ctx.halo(np.zeros((6, 6)), grid=1, periodic=True)
    things["total"] = ctx.all_reduce(np.zeros(8))
    if DEVICE != "host":
        things["fifo"] = ctx.fifo([remote, theirs], [region], DEVICE)
    else:
        plan.start(stream)  # it will wait for a notification that never comes
    ctx.put(far, registered)
    return things


def nothing() -> None:
    pass


async def awaited(request: peerway.Request) -> None:
    await request


# How to call each public name of a class; those in HARMLESS must work on closed objects, too.
ANY: dict[str, Callable[[Any, Things], object]] = {
    "close": lambda it, _: it.close(),
}
TABLE: dict[type, dict[str, Callable[[Any, Things], object]]] = {
    peerway.Team: {
        "all_gather": lambda it, _: it.all_gather(b"x", 10),
        "barrier": lambda it, _: it.barrier(10),
        "lost": lambda it, _: it.lost(0),
        "rank": lambda it, _: it.rank,
        "size": lambda it, _: it.size,
        "create": lambda it, _: type(it).create(0, 1, lambda _: None).close(),
        "from_launcher": lambda it, _: type(it).from_launcher().close(),
        "from_mpi": lambda _, __: None,  # create
    },
    peerway.Context: {
        "all_gather": lambda it, _: it.all_gather(np.zeros(8)),
        "all_reduce": lambda it, _: it.all_reduce(np.zeros(8)),
        "all_to_all": lambda it, _: it.all_to_all(np.zeros(8), np.zeros(8)),
        "barrier": lambda it, _: it.barrier(),
        "broadcast": lambda it, _: it.broadcast(np.zeros(8)),
        "reduce_scatter": lambda it, _: it.reduce_scatter(np.zeros(8), np.zeros(8)),
        "allocate": lambda it, _: it.allocate("host", 8),
        "fifo": lambda it, w: it.fifo([w["remote"]], [w["region"]], DEVICE),
        "flush": lambda it, _: it.flush(timeout=10),
        "get": lambda it, w: it.get(w["registered"], w["far"]),
        "halo": lambda it, _: it.halo(np.zeros((6, 6)), grid=1),
        "import_key": lambda it, w: it.import_key(w["region"].key()),
        "paths": lambda it, w: it.paths(w["remote"], w["region"]),
        "plan": lambda it, _: it.plan(),
        "put": lambda it, w: it.put(w["view"][0], w["elements"][:8], w["notified"]),
        "notify": lambda it, w: it.notify(w["notified"]),
        "rank": lambda it, _: it.rank,
        "size": lambda it, _: it.size,
        "register": lambda it, _: it.register(np.zeros(8)),
        "register_memory": lambda it, w: it.register_memory(w["elements"].ctypes.data, 8),
        "signal": lambda it, _: it.signal(),
        "start_flush": lambda it, _: it.start_flush(),
        "start_get": lambda it, w: it.start_get(w["registered"], w["far"]),
        "start_put": lambda it, w: it.start_put(w["view"][0], w["elements"][:8], w["notified"]),
        "start_notify": lambda it, w: it.start_notify(w["notified"]),
        "stream": lambda it, _: it.stream(),
        "use": lambda it, _: it.use(),
        "wait_policy": lambda it, _: it.wait_policy,
    },
    peerway.Region: {
        "array": lambda it, _: it.array("f4"),
        "block": lambda it, _: it.block((2,), (16,), 8),
        "key": lambda it, _: it.key(),
        "view": lambda it, _: it.view("f8")[1:3],
        "__array_interface__": lambda it, _: getattr(it, "__array_interface__", None),
        "__cuda_array_interface__": lambda it, _: getattr(it, "__cuda_array_interface__", None),
        "__dlpack__": lambda it, _: it.__dlpack__(),
        "__dlpack_device__": lambda it, _: it.__dlpack_device__(),
        "__getitem__": lambda it, _: it[0:8],
        "__array__": lambda it, _: np.asarray(it),
    },
    peerway.Remote: {
        "block": lambda it, _: it.block((2,), (16,), 8),
        "handle": lambda it, _: it.handle(DEVICE),
        "notify_handle": lambda it, _: it.notify_handle(DEVICE),
        "release_notify_handle": lambda it, _: it.release_notify_handle(),
        "view": lambda it, _: it.view("u1"),
    },
    peerway.Signal: {
        "check": lambda it, _: it.check(),
        "handle": lambda it, _: it.handle(DEVICE, 1),
        "key": lambda it, _: it.key(),
        "value": lambda it, _: it.value,
        "wait": lambda it, _: it.wait(1 << 40, 0),
    },
    peerway.Stream: {
        "call": lambda it, _: it.call(nothing),
        "wait": lambda it, _: it.wait(0),
        "__cuda_stream__": lambda it, _: it.__cuda_stream__(),
    },
    peerway.PlanBuilder: {
        "after": lambda it, w: it.after(w["signal"], 1),
        "get": lambda it, w: it.get(w["region"][0:8], w["remote"][8:16]),
        "prepare": lambda it, _: it.prepare(alone=True),
        "prepare_among": lambda it, _: it.prepare_among([0]),
        "put": lambda it, w: it.put(w["remote"][0:8], w["region"][8:16], w["theirs"]),
        "notify": lambda it, w: it.notify(w["theirs"]),
        "receive": lambda it, w: it.receive(0, 1, w["region"][0:8]),
        "send": lambda it, w: it.send(0, 1, w["region"][0:8]),
        "wait": lambda it, w: it.wait(w["signal"]),
    },
    peerway.Plan: {
        "check": lambda it, _: it.check(),
        "describe": lambda it, _: it.describe(),
        "finish": lambda it, _: it.finish(timeout=0),
        "handle": lambda it, _: it.handle(),
        "leave_room": lambda it, _: it.leave_room(),
        "receive_lane": lambda it, _: it.receive_lane(0, 1),
        "run": lambda it, w: it.run(w["stream"]) if it is not w.get("plan") else None,
        "run_if": lambda it, w: it.run_if(w["stream"], 0, 1),  # no word: an error at once
        "send_lane": lambda it, _: it.send_lane(0, 1),
        "set_timeout": lambda it, _: it.set_timeout(10),
        "start": lambda it, w: it.start(w["stream"]) if it is not w.get("plan") else it.start(),
        "status": lambda it, _: it.status,
    },
    peerway.Request: {
        "complete": lambda it, _: it.complete(),
        "wait": lambda it, _: it.wait(0),
        "__await__": lambda it, _: it.complete() and asyncio.run(awaited(it)),
    },
    peerway.Fifo: {"check": lambda it, _: it.check(), "handle": lambda it, _: it.handle()},
    peerway.Span: {"of": lambda it, _: it.of, "block": lambda it, _: it.block},
    peerway.View: {
        name: lambda it, _, name=name: getattr(it, name)
        for name in ("of", "kind", "item", "shape", "strides", "offset", "dtype", "nbytes")
    },
}  # fmt: skip
TABLE[peerway.Halo] = {**TABLE[peerway.Plan]}
TABLE[peerway.Collective] = {
    **TABLE[peerway.Plan],
    "all_reduce_handle": lambda it, _: it.all_reduce_handle(),
}
HARMLESS = {  # allowed on a closed object
    "rank", "size", "__array__",
    "close", "block", "view", "__getitem__", "create", "from_launcher", "from_mpi", "__array_interface__",
    "__cuda_array_interface__", "sum", "fill", *TABLE[peerway.View], "__cuda_stream__", "run", "start",
}  # fmt: skip

COUNT: Counter[str] = Counter()


def methods_of(it: object) -> dict[str, Callable[[Any, Things], object]]:
    if type(it).__name__ == "CudaView":
        return {"__dlpack__": lambda owner, _: owner.__dlpack__()}
    if type(it).__name__ in ("ndarray", "Tensor"):  # NumPy's, CuPy's, PyTorch's
        return {
            "sum": lambda array, _: array.sum(),
            "fill": lambda array, _: array.fill_(1) if hasattr(array, "fill_") else array.fill(1),
        }
    return TABLE[type(it)]


def complete() -> None:
    """Check that the table has every public name."""
    for kind, known in TABLE.items():
        names = {name for name in dir(kind) if not name.startswith("_")} - {"close"}
        assert names <= known.keys(), (kind, names - known.keys())


def call_all(things: Things, *, closed: bool = False) -> None:
    """Call every method of all remaining objects; with `closed`, of those that have been closed."""
    every = list(things.items())
    for name, it in every:
        for method, call in methods_of(it).items():
            COUNT["methods"] += 1
            try:
                call(it, things)
                COUNT["returned"] += 1
            except peerway.Error:
                COUNT["raised"] += 1
            except KeyError:  # an object that it needs no longer exists
                COUNT["skipped"] += 1
            except Exception as error:
                raise AssertionError(f"{name}.{method}: {type(error).__name__}: {error}") from error
        repr(it)


def must_be_closed(it: object, things: Things) -> None:
    for method, call in methods_of(it).items():
        if method in HARMLESS:
            continue
        try:
            call(it, things)
        except peerway.Closed:
            continue
        raise AssertionError(f"{type(it).__name__}.{method} works on what was closed")


def closable(things: Things) -> list[str]:
    return [name for name, it in things.items() if hasattr(it, "close")]


def each_alone() -> None:
    """Close one object and use all of them, for each object; then close the context."""
    names = closable(world())
    for name in names:
        things = world()
        things[name].close()
        if type(things[name]) is not peerway.Context:
            must_be_closed(things[name], things)
        things[name].close()
        call_all(things)
        things["ctx"].close()
        for child in names:
            if child != "team":
                must_be_closed(things[child], things)
        call_all(things)
        things["team"].close()
        call_all(things)


def shuffled(make: random.Random) -> None:
    """Close all objects in random order, and use them in between."""
    things = world()
    names = closable(things)
    make.shuffle(names)
    for place, name in enumerate(names):
        things[name].close()
        if place % 4 == 0:
            call_all(things)
    call_all(things)


def collected(make: random.Random) -> None:
    """Drop all objects in random order, and use the others; arrays keep their memory."""
    things = world()
    names = list(things)
    make.shuffle(names)
    for place, name in enumerate(names):
        if make.random() < 0.3 and hasattr(things[name], "close"):
            things[name].close()
        if name in ("plan", "stream", "ctx") and "ctx" in things and "stream" in things:
            things["ctx"].close()  # else the stream waits, as documented, for the plan that nobody completes
        del things[name]
        if place % 4 == 0:
            gc.collect()
            call_all(things)
    gc.collect()


def by_the_bound_plan() -> None:
    """A bound plan keeps alive everything that it was made of."""
    ctx = peerway.Context()
    source, target = np.arange(8.0), np.zeros(8)
    regions = [ctx.register(array) for array in (source, target)]
    far = ctx.import_key(regions[1].key())
    arrived = ctx.signal()
    notified = ctx.import_key(arrived.key())
    plan = ctx.plan().put(far, regions[0], notify=notified).wait(arrived).prepare(alone=True)
    view = regions[1].array("f8")
    for thing in (*regions, far, arrived, notified):
        thing.close()
    del source, target, regions, far, arrived, notified, thing
    gc.collect()
    for _ in range(3):
        plan.run()
    assert (view == np.arange(8.0)).all()
    ctx.close()
    assert view.sum() == 28


def memory_stays() -> None:
    """Arrays keep the memory that they show, whatever is closed; nothing else does."""
    for show in (
        lambda r: r.array("f8"),
        lambda r: np.from_dlpack(r).view("f8"),
        lambda r: np.asarray(r).view("f8"),
    ):
        with peerway.Context() as ctx:
            region, gone = ctx.allocate("host", 1 << 22), ctx.allocate("host", 1 << 22)
            array, part = show(region), show(region)[10:20]
            array[:] = 5
            at = gone.address
            gone.close()
            region.close()
            assert not mapped(at)
            assert mapped(region.address)
        del ctx, region
        gc.collect()
        assert array.sum() == 5 * (1 << 19)
        at = array.ctypes.data
        del array
        gc.collect()
        assert part.sum() == 50
        del part
        gc.collect()
        assert not mapped(at)
    text = bytearray(64)
    with peerway.Context() as ctx:
        region = ctx.register(text)
        try:
            text.extend(bytes(1 << 20))
        except BufferError:
            region.close()
            text.extend(bytes(1 << 20))
        else:
            raise AssertionError("a registered bytearray was resized")


def mapped(address: int) -> bool:
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(end, 16) for end in line.split()[0].split("-"))
        if first <= address < last:
            return True
    return False


def within_its_own_call() -> None:
    """A stream is waited for, closed and dropped inside one of its own callbacks."""
    with peerway.Context() as ctx:
        stream, messages = ctx.stream(), []

        def body() -> None:
            for end in (stream.wait, stream.close, ctx.close):
                try:
                    end()
                except peerway.InvalidArgument as error:
                    messages.append(str(error))

        stream.call(body)
        stream.wait()
        assert len(messages) == 3, messages
    with peerway.Context() as ctx:
        dropped = ctx.stream()
        done = threading.Event()
        dropped.call(lambda held=dropped: done.set())
        del dropped
        assert done.wait(60)


def main() -> None:
    complete()
    each_alone()
    make = random.Random(1)
    for _ in range(SHUFFLES):
        shuffled(make)
        collected(make)
    if DEVICE == "host":
        by_the_bound_plan()
        memory_stays()
        within_its_own_call()
    for _ in itertools.repeat(None, 2):
        gc.collect()
    print(dict(COUNT), flush=True)


main()
LEFT_OPEN = world()  # ends with the interpreter, with a plan under way
