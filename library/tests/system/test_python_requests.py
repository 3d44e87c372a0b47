"""Requests from Python: several at once, beside asyncio's tasks, and how they report failures."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from launching import LIMIT, ranks

import peerway


def test_what_was_started_between_ranks_ends_in_any_order() -> None:
    ranks(
        """
        import asyncio, numpy as np, peerway
        with peerway.Context() as ctx:
            other = 1 - ctx.rank
            u, theirs = (np.random.default_rng(rank).random(1 << 16) for rank in (ctx.rank, other))
            inbox, back = np.zeros_like(u), np.zeros_like(u)
            held = [ctx.register(array) for array in (u, inbox, back)]
            arrived = ctx.signal(other)
            keys = [ctx.team.all_gather(thing.key()) for thing in (held[0], held[1], arrived)]
            far, their_inbox, notified = (ctx.import_key(key[other]) for key in keys)
            requests = [
                ctx.start_put(their_inbox.view(float)[::2], u[::2], notify=notified, by=2),
                ctx.start_get(back[1::2], far.view(float)[1::2]),
            ]
            left = list(requests)
            while left:
                left.pop(peerway.wait_any(left, timeout=60)).wait(0)
            assert all(request.complete() for request in requests)
            started = [ctx.start_notify(notified), ctx.start_flush(), ctx.start_flush(other)]
            peerway.wait_all(started, timeout=60)
            arrived.wait(3, timeout=60)
            assert arrived.value == 3
            assert (inbox[::2] == theirs[::2]).all() and not inbox[1::2].any()
            assert (back[1::2] == theirs[1::2]).all() and not back[::2].any()

            ctx.team.barrier(60)
            async def both():
                put = ctx.start_put(their_inbox[8, 16], held[0][0:16], notified)
                await asyncio.gather(put, ctx.start_get(held[2][0, 16], far[0, 16]))
            asyncio.run(both())
            arrived.wait(4, timeout=60)
            assert (inbox[1:3] == theirs[:2]).all() and (back[:2] == theirs[:2]).all()
            ctx.team.barrier(60)
        """
    )


def waiting(ctx: peerway.Context) -> tuple[peerway.Plan, peerway.Remote]:
    """A plan whose finish waits for a signal, and the remote that notifies the signal."""
    signal = ctx.signal()
    return ctx.plan().wait(signal).prepare(alone=True), ctx.import_key(signal.key())


def test_other_tasks_run_while_one_awaits_a_request(ctx: peerway.Context) -> None:
    plan, notified = waiting(ctx)
    said = []

    async def awaits() -> None:
        request = plan.start()
        assert request is not None
        await request
        said.append("arrived")

    async def works() -> None:
        for turn in range(50):
            said.append(str(turn))
            await asyncio.sleep(0.0005)
        ctx.notify(notified)

    async def both() -> None:
        await asyncio.wait_for(asyncio.gather(awaits(), works()), LIMIT)

    asyncio.run(both())
    assert said == [*map(str, range(50)), "arrived"]


def test_a_task_that_is_cancelled_leaves_the_operation_under_way(ctx: peerway.Context) -> None:
    plan, notified = waiting(ctx)
    request = plan.start()
    assert request is not None

    async def short() -> None:
        await asyncio.wait_for(awaited(request), 0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(short())
    assert repr(request) == "<peerway.Request, under way>"
    ctx.notify(notified)
    request.wait(60)
    assert repr(request) == "<peerway.Request, complete>"
    asyncio.run(awaited(request))  # again


async def awaited(request: peerway.Request) -> None:
    await request


def test_waits_that_take_too_long_say_so_and_what_goes_on_can_be_waited_for_again(
    ctx: peerway.Context,
) -> None:
    (one, notified), (two, other) = waiting(ctx), waiting(ctx)
    requests = [request for plan in (one, two) if (request := plan.start()) is not None]
    with pytest.raises(peerway.Timeout, match=r"0.01 s for one of 2 requests. They go on"):
        peerway.wait_any(requests, timeout=0.01)
    for wait in (lambda: peerway.wait_all(requests, timeout=0.01), lambda: requests[0].wait(0.01)):
        with pytest.raises(peerway.Timeout, match=r"0.01 s"):
            wait()
    with pytest.raises(peerway.Timeout, match="one of 2 requests"):
        peerway.wait_any(iter(requests), timeout=0.01)
    ctx.notify(other)
    assert peerway.wait_any(requests, timeout=60) == 1
    ctx.notify(notified)
    peerway.wait_all(requests, timeout=60)
    assert peerway.wait_any(requests, timeout=60) == 0


def test_a_request_tells_how_its_operation_failed(ctx: peerway.Context) -> None:
    plan, _ = waiting(ctx)
    request = plan.start()
    assert request is not None

    async def closed_meanwhile() -> None:
        task = asyncio.ensure_future(awaited(request))
        await asyncio.sleep(0.005)
        ctx.close()
        await asyncio.wait_for(task, LIMIT)

    with pytest.raises(peerway.Closed):
        asyncio.run(closed_meanwhile())
    for wait in (request.wait, lambda: peerway.wait_any([request]), lambda: peerway.wait_all([request])):
        with pytest.raises(peerway.Closed):
            wait()


def test_what_is_no_list_of_requests_of_one_context_is_refused(ctx: peerway.Context) -> None:
    plan, _ = waiting(ctx)
    with peerway.Context() as second:
        mixed = [ctx.start_flush(), second.start_flush()]
        with pytest.raises(peerway.InvalidArgument, match="0 and 1 are of two contexts"):
            peerway.wait_all(mixed)
    with pytest.raises(peerway.InvalidArgument, match="a request is a Plan"):
        peerway.wait_any([plan])  # type: ignore[list-item]
    with pytest.raises(peerway.InvalidArgument):
        peerway.wait_any([])
    peerway.wait_all([])


def test_the_end_of_a_region_does_not_end_what_was_started(ctx: peerway.Context) -> None:
    """The request keeps the memory of both sides alive."""
    target = ctx.allocate("host", 1 << 22)
    far, shown = ctx.import_key(target.key()), target.array()
    source = ctx.register(np.full(1 << 22, 7, np.uint8))
    request = ctx.start_put(far, source)
    source.close()
    request.wait(60)
    assert (shown == 7).all()
