"""Plans and streams from Python, between real processes."""

from __future__ import annotations

import sys

import pytest
from launching import ranks
from ranks import Ranks

import peerway


def test_puts_around_a_ring_again_and_again() -> None:
    ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            left, right = (ctx.rank - 1) % ctx.size, (ctx.rank + 1) % ctx.size
            region = ctx.allocate("host", 16)
            mine, theirs = region.array(np.int64)
            arrived, used = ctx.signal(left), ctx.signal(right)
            keys = [ctx.team.all_gather(thing.key()) for thing in (region, arrived, used)]
            far, notified = ctx.import_key(keys[0][right]), ctx.import_key(keys[1][right])
            free = ctx.import_key(keys[2][left])
            plan = (
                ctx.plan()
                .put(far[8:16], region[0:8], notify=notified)
                .after(used, lead=1)
                .wait(arrived)
                .prepare(alone=True)
            )
            numbers = region.array(np.int64)
            for turn in range(100):
                numbers[0] = 1000 * turn + ctx.rank
                plan.start()
                plan.finish(timeout=60)
                assert numbers[1] == 1000 * turn + left
                ctx.notify(free)
            plan.check()
            assert plan.status == "ok"
            ctx.flush()
            ctx.team.barrier(60)
        """,
        count=3,
    )


def test_sends_meet_receives_in_the_order_of_a_stream() -> None:
    ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            other = 1 - ctx.rank
            u, got = np.zeros(6), []
            region = ctx.register(u)
            plan = (
                ctx.plan("host")
                .send(other, 4, region[0:24])
                .receive(other, 4, region.block((3,), (8,), 8, 24))
                .prepare()
            )
            stream = ctx.stream("host")
            def write(turn):
                u[:3] = 10 * turn + ctx.rank
            for turn in range(50):
                stream.call(lambda turn=turn: write(turn))
                if turn % 2:
                    plan.run(stream)
                else:
                    plan.start(stream)
                    plan.finish(stream)
                stream.call(lambda: got.append(u[3:].copy()))
            stream.wait(timeout=60)
            assert [list(one) for one in got] == [[10.0 * turn + other] * 3 for turn in range(50)]
            ctx.team.barrier(60)
        """
    )


def test_runs_in_a_stream_between_copies_and_on_a_condition() -> None:
    scenarios = ["between,256", "between,200000", "conditional,256", "conditional,200000"]
    with Ranks("other_device.py", 2, "host", *scenarios) as both:
        for _ in scenarios:
            assert both.read_all() == [[]] * 2
        both.end()


def test_a_request_leaves_a_later_start_on_a_stream_alone() -> None:
    ranks(
        """
        import peerway
        with peerway.Context() as ctx:
            region = ctx.allocate("host", 16)
            plan = ctx.plan().send(0, 1, region[:8]).receive(0, 1, region[8:16]).prepare()
            stream = ctx.stream("host")
            for _ in range(3):
                request = plan.start()
                plan.finish(timeout=60)
                plan.start(stream)
                assert request.complete()
                plan.finish(stream)
                stream.wait(timeout=60)
            plan.check()
        """,
        count=1,
    )


def test_a_plan_that_is_not_prepared_says_what_to_do() -> None:
    with peerway.Context() as ctx:
        builder = ctx.plan()
        with pytest.raises(AttributeError, match=r"`start` once it is prepared: plan = builder.prepare\(\)"):
            builder.start()  # type: ignore[attr-defined]
        with pytest.raises(AttributeError, match="'PlanBuilder' object has no attribute 'strat'"):
            builder.strat()  # type: ignore[attr-defined]
        assert not hasattr(builder, "finish")


def test_some_ranks_alone_prepare_a_plan() -> None:
    ranks(
        """
        import numpy as np, peerway
        with peerway.Context() as ctx:
            u = np.array([ctx.rank, -1], dtype=np.int64)
            region = ctx.register(u)
            if ctx.rank != 1:  # which calls nothing
                other = 2 - ctx.rank
                plan = (
                    ctx.plan()
                    .send(other, 4, region[0:8])
                    .receive(other, 4, region[8:16])
                    .prepare_among({0, 2})
                )
                for _ in range(10):
                    plan.start()
                    plan.finish(timeout=60)
                    assert u[1] == other
            else:
                builder = ctx.plan().send(0, 4, region[0:8])
                refused = (([1, 2], "without rank 0"), ([0], "without rank 1"), ([0, 1, 3], "rank 3"))
                for listed, found in refused:
                    try:
                        builder.prepare_among(listed)
                    except peerway.InvalidArgument as error:
                        assert found in str(error), error
                    else:
                        raise AssertionError(f"prepared among {listed}")
                try:
                    builder.prepare_among(["one"])
                except peerway.InvalidArgument as error:
                    assert "prepare_among: each rank" in str(error), error
                else:
                    raise AssertionError("prepared among a rank that is a text")
            ctx.team.barrier(60)
        """,
        count=3,
    )


def test_what_a_call_in_a_stream_raises_is_shown_and_the_stream_goes_on(
    ctx: peerway.Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[object] = []
    done: list[int] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda event: shown.append(event.exc_value))
    stream = ctx.stream()

    def wrong() -> None:
        raise KeyError("here")

    stream.call(wrong)
    stream.call(lambda: done.append(1))
    stream.wait(timeout=60)
    assert [type(error) for error in shown] == [KeyError]
    assert done == [1]


def test_plans_and_streams_end_with_their_context() -> None:
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 16)
        plan = ctx.plan().send(0, 1, region[0:8]).receive(0, 1, region[8:16]).prepare()
        stream = ctx.stream()
        plan.run(stream)
    assert repr(plan) == "<peerway.Plan on host, closed>"
    assert "closed" in repr(stream)
    with pytest.raises(peerway.Closed):
        plan.start()
    with pytest.raises(peerway.Closed):
        stream.wait()


def test_a_builder_is_used_once(ctx: peerway.Context) -> None:
    region = ctx.allocate("host", 16)
    builder = ctx.plan().send(0, 1, region[0:8]).receive(0, 1, region[8:16])
    builder.prepare()
    with pytest.raises(peerway.Closed, match="builder of a plan was closed"):
        builder.prepare()
    with pytest.raises(peerway.Closed):
        builder.send(0, 2, region[0:8])


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "host:0:1"])
def test_unknown_devices_are_refused(ctx: peerway.Context, device: str) -> None:
    with pytest.raises(peerway.InvalidArgument, match="unknown device"):
        ctx.stream(device)
    with pytest.raises(peerway.InvalidArgument, match="unknown device"):
        ctx.plan(device)


def test_a_stream_of_the_host_is_no_cuda_stream(ctx: peerway.Context) -> None:
    with pytest.raises(peerway.InvalidArgument, match="not a CUDA stream"):
        ctx.stream("host").__cuda_stream__()
