"""A beginner's mistakes, and what each error must say: what was requested, what was found, what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import peerway
from peerway import Closed, InvalidArgument, OutOfRange, Timeout

World = Any


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A team of one with one object of every kind, which no mistake changes."""
    with peerway.Context() as ctx:
        u = np.zeros(64)
        region = ctx.register(u)
        signal = ctx.signal(0)
        closed = ctx.allocate("host", 64)
        closed.close()
        left = ctx.import_key(region.key())
        left.close()
        constant = u[:8]
        constant.flags.writeable = False
        source = ctx.register(constant)
        yield SimpleNamespace(
            ctx=ctx, u=u, region=region, remote=ctx.import_key(region.key()), signal=signal, closed=closed,
            left=left, notified=ctx.import_key(signal.key()), constant=constant, plan=ctx.plan(),
            source=source, source_remote=ctx.import_key(source.key()),
        )  # fmt: skip


def twice(call: Callable[[Any], object], given: object) -> None:
    """Call it twice; the second call is the mistake."""
    call(given)
    call(given)


MISTAKES: list[tuple[Callable[[World], object], type[Exception], list[str]]] = [
    # plans
    (lambda w: twice(lambda plan: plan.prepare(alone=True), w.ctx.plan()), Closed,
     ["this builder of a plan was closed when it made its plan", "ctx.plan()"]),
    (lambda w: twice(lambda plan: plan.prepare_among([0]), w.ctx.plan()), Closed, ["new builder"]),
    # arrays
    (lambda w: w.ctx.put(w.remote, np.ones(64)), InvalidArgument,
     ["put: `source` is ndarray of shape (64,), 512 bytes at 0x", "region = ctx.register(array)"]),
    (lambda w: w.ctx.put(w.remote.view(float)[:4], np.ones(4)), InvalidArgument, ["register"]),
    (lambda w: w.ctx.get(np.ones(4), w.remote), InvalidArgument, ["get: `to` is ndarray", "ctx.register"]),
    (lambda w: w.ctx.get(w.constant, w.remote[0:64]), InvalidArgument, ["read-only", "writable"]),
    (lambda w: w.ctx.put(w.source_remote, w.u[8:16]), InvalidArgument,
     ["the remote region (64 bytes, rank 0", "registered as read-only", "never a target"]),
    (lambda w: w.ctx.put(w.source_remote[0:8], w.u[8:9], w.notified), InvalidArgument, ["as read-only"]),
    (lambda w: w.ctx.put(w.source_remote.view("f4")[::2], w.region.view("f4")[16:24]), InvalidArgument,
     ["as read-only"]),
    (lambda w: w.ctx.start_put(w.source_remote, w.u[8:16]), InvalidArgument, ["as read-only"]),
    (lambda w: w.ctx.get(w.source, w.remote[0:64]), InvalidArgument,
     ["the local region (64 bytes on host) was registered as read-only"]),
    (lambda w: w.ctx.start_get(w.source, w.remote[0:64]), InvalidArgument, ["as read-only"]),
    (lambda w: w.plan.put(w.source_remote, w.u[8:16]), InvalidArgument, ["as read-only"]),
    (lambda w: w.plan.get(w.source, w.remote[0:64]), InvalidArgument, ["as read-only"]),
    (lambda w: w.plan.receive(0, 0, w.source), InvalidArgument, ["as read-only"]),
    (lambda w: w.ctx.fifo([w.source_remote], [w.region], device="host"), InvalidArgument, ["as read-only"]),
    (lambda w: w.ctx.put(w.remote.view(float), w.u[::-1]), InvalidArgument, ["strides of (-8,)", "positive"]),
    (lambda w: w.ctx.put(w.remote.view("f4")[:8], w.u[:8]), InvalidArgument,
     ["float64 do not become float32", "the same type"]),
    (lambda w: w.ctx.put(w.remote.view(float)[:9], w.u[:8]), InvalidArgument, ["(8,) do not fit into (9,)"]),
    (lambda w: w.ctx.put(w.remote[0:9], w.u[:8]), InvalidArgument, ["9 bytes", "64"]),
    (lambda w: w.ctx.register(np.zeros((4, 4))[:, 1]), InvalidArgument, ["not contiguous", "view of"]),
    (lambda w: w.ctx.register(np.array([{}])), InvalidArgument, ["Python objects", "astype"]),
    (lambda w: w.ctx.register(np.zeros(0)), InvalidArgument, ["has no bytes"]),
    (lambda w: w.ctx.register([1, 2]), InvalidArgument, ["a list exposes no memory"]),
    (lambda w: w.region.array(object), InvalidArgument, ["Python objects"]),
    (lambda w: w.region.array("f8", (-1, 2)), InvalidArgument, ["(-1, 2) is not a shape"]),
    (lambda w: w.region.array("V0"), InvalidArgument, ["0 bytes"]),
    (lambda w: w.region.array("f8", 65), InvalidArgument, ["needs 520 bytes, but the region has 512"]),
    (lambda w: w.closed.array(), Closed, ["region (64 bytes, host) was closed"]),
    (lambda w: np.asarray(w.closed), Closed, ["region (64 bytes, host) was closed"]),
    (lambda w: np.from_dlpack(w.closed), Closed, ["region (64 bytes, host) was closed"]),
    (lambda w: w.closed.key(), Closed, ["key: this region (64 bytes, host) was closed"]),
    (lambda w: w.ctx.put(w.remote[0:64], w.closed), Closed, ["put: this region (64 bytes, host) was closed"]),
    (lambda w: w.ctx.get(w.closed, w.remote[0:64]), Closed, ["get: this region (64 bytes, host) was closed"]),
    (lambda w: w.ctx.start_get(w.closed, w.remote[0:64]), Closed, ["start_get: this region (64 bytes, "]),
    (lambda w: w.plan.put(w.remote[0:64], w.closed), Closed, ["put: this region (64 bytes, host)"]),
    (lambda w: w.ctx.put(w.left, w.region), Closed, ["put: this remote (512 bytes, rank 0) was closed"]),
    (lambda w: w.remote.view(float, 8, offset=600), InvalidArgument,
     ["offset of a view is 600", "at most 512"]),
    # swapped arguments, and objects of the wrong kind
    (lambda w: w.ctx.put(w.region, w.remote), InvalidArgument,
     ["put: `to` is a region of this rank", "target comes first: put(remote, region)"]),
    (lambda w: w.ctx.get(w.remote, w.region), InvalidArgument,
     ["get: `to` is a remote of rank 0", "target comes first: get(region, remote)"]),
    (lambda w: w.ctx.put(w.u, w.remote), InvalidArgument, ["`to` is ndarray", "target comes first"]),
    (lambda w: w.ctx.put(w.region.key(), w.u), InvalidArgument, ["`to` is bytes", "ctx.import_key(key)"]),
    (lambda w: w.ctx.put(w.remote, w.region, w.signal), InvalidArgument,
     ["`notify` is a signal of this rank"]),
    (lambda w: w.ctx.put(w.remote, w.region, 3), InvalidArgument, ["`notify` is 3", "import_key"]),
    (lambda w: w.ctx.put(w.remote, w.region, w.remote), InvalidArgument, ["key of a signal"]),
    (lambda w: w.ctx.put(w.notified, w.u[:1]), InvalidArgument, ["import the key of a region"]),
    (lambda w: w.ctx.notify(w.signal), InvalidArgument, ["only waits for it"]),
    (lambda w: w.plan.wait(w.notified), InvalidArgument, ["wait: `signal` is a Remote", "ctx.signal()"]),
    (lambda w: w.plan.send(w.u, 0, 1), InvalidArgument, ["send: `rank` is ndarray", "whole number"]),
    (lambda w: w.plan.send(0, 1, w.remote), InvalidArgument, ["`source` is a remote", "this rank's memory"]),
    (lambda w: w.ctx.allocate(800, "host"), InvalidArgument, ["device is 800", "'host', 'cuda' or 'cuda:N'"]),
    (lambda w: w.ctx.import_key("key"), InvalidArgument, ["import_key: `key` is 'key'", "region.key()"]),
    (lambda w: w.ctx.import_key(w.region), InvalidArgument, ["a Region", "region.key()"]),
    (lambda w: w.ctx.paths(w.region, w.remote), InvalidArgument, ["paths: `remote` is a Region"]),
    (lambda w: w.ctx.register_memory(512, w.u.ctypes.data), peerway.Error,
     ["at 0x200", "not memory of this process"]),
    (lambda w: peerway.Context("host"), InvalidArgument, ["Context: `team` is 'host'"]),
    (lambda w: w.ctx.team.all_gather("x"), InvalidArgument, ["`mine` is 'x'", "give bytes"]),
    # numbers
    (lambda w: w.ctx.allocate("host", -5), InvalidArgument, ["allocate: `bytes` is -5", "1 or more"]),
    (lambda w: w.ctx.allocate("host", 0), InvalidArgument, ["`bytes` is 0", "1 or more"]),
    (lambda w: w.ctx.allocate("host", 1e6), InvalidArgument, ["`bytes` is 1000000.0", "whole number"]),
    (lambda w: w.ctx.allocate("host", 2**63), peerway.NoMemory, ["9223372036854775808"]),
    (lambda w: w.ctx.allocate("host", 2**70), InvalidArgument, ["at most 18446744073709551615"]),
    (lambda w: w.ctx.register_memory(-8, 8), InvalidArgument, ["`address` is -8"]),
    (lambda w: w.region[-8:8], InvalidArgument, ["[-8:8] of 512 bytes would be from byte 504 up to 8"]),
    (lambda w: w.region[-513:], InvalidArgument, ["[-513:]", "byte -1 up to 512", "from the end"]),
    (lambda w: w.region[8:4], InvalidArgument, ["[8:4]"]),
    (lambda w: w.region[-513, 8], InvalidArgument, ["the first byte of a range is -513; give -512 or more"]),
    (lambda w: w.region["a":"b"], InvalidArgument, ["give whole numbers"]),
    (lambda w: w.region[3], InvalidArgument, ["[3] is", "[first:end]", "view(dtype)"]),
    (lambda w: w.region[8:-16:2], InvalidArgument, ["[8:-16:2] is not a contiguous range"]),
    (lambda w: w.region[0:4, 2], InvalidArgument, ["[0:4, 2] names no bytes"]),
    (lambda w: w.ctx.put(w.remote[0:32], w.region.block((4,), (-8,), 8)), InvalidArgument,
     ["-8", "positive"]),
    (lambda w: w.region.block((4,), (8, 8), 8), InvalidArgument, ["1 counts and 2 strides"]),
    (lambda w: w.ctx.put(w.remote[0:8], w.region[0:8], w.notified, by=-1), InvalidArgument, ["`by` is -1"]),
    (lambda w: w.ctx.put(w.remote[0:600], w.region[0:600]), OutOfRange, ["600", "512"]),
    (lambda w: w.ctx.flush(7), OutOfRange, ["rank 7", "ranks 0 to 0"]),
    (lambda w: w.ctx.flush("all"), InvalidArgument, ["flush: `rank` is 'all'"]),
    (lambda w: w.ctx.signal(3), OutOfRange, ["rank 3", "ranks 0 to 0"]),
    (lambda w: w.ctx.signal("me"), InvalidArgument, ["signal: `sender` is 'me'"]),
    (lambda w: w.ctx.team.lost(9), OutOfRange, ["rank 9", "ranks 0 to 0"]),
    (lambda w: w.ctx.fifo([w.remote], [w.region], entries=1), InvalidArgument,
     ["fifo: `entries` is 1", "2 or more"]),
    (lambda w: w.ctx.stream().call(3), InvalidArgument, ["3 cannot be called"]),
    (lambda w: peerway.wait_all(w.ctx.start_flush()), InvalidArgument,
     ["wait_all: `requests` is a Request", "wait_all([request])"]),
    (lambda w: peerway.wait_any(None), InvalidArgument,
     ["wait_any: `requests` is None", "wait_any([request])"]),
    # time
    (lambda w: w.signal.wait("1"), InvalidArgument, ["the value to wait for is '1'"]),
    (lambda w: w.signal.wait(1, timeout="2"), InvalidArgument, ["timeout of '2'", "None to wait for ever"]),
    (lambda w: w.signal.wait(1, timeout=float("nan")), InvalidArgument, ["timeout of nan"]),
    (lambda w: w.signal.wait(7, timeout=0.01), Timeout, ["signal", "to reach 7", "at 0", "0.01 s", "rank 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "kind", "says"), MISTAKES, ids=[str(n) for n in range(len(MISTAKES))])
def test_a_mistake_is_told_in_the_words_of_the_call(
    world: World, mistake: Callable[[World], object], kind: type[Exception], says: list[str]
) -> None:
    with pytest.raises(kind) as raised:
        mistake(world)
    message = str(raised.value)
    for words in says:
        assert words in message, message
    assert message.startswith("peerway: ")
    assert "nanobind" not in message
