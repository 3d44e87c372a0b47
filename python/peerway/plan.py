"""Streams and plans: communication that is prepared once and started many times, from the host or in the
order of a stream.

    plan = ctx.plan().put(far[0:n], near[0:n], signal=theirs).wait(mine).prepare(alone=True)
    plan.start(); plan.finish(timeout=2)               # from the host,
    plan.start(stream); plan.finish(stream)            # in the order of a stream
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from peerway import _core
from peerway.errors import InvalidArgument
from peerway.given import device as split_device
from peerway.given import number, of_kind, seconds, shown
from peerway.memory import Region, Remote, Signal
from peerway.operands import Far, Near, far_side, near_side, signal_of
from peerway.request import Request
from peerway.views import Span, View, block_of, blocks_of

if TYPE_CHECKING:
    from peerway.context import Context


class Stream:
    """An ordered queue of work on a device, made by Context.stream: on the host a worker thread, on a GPU a
    CUDA stream, which CuPy, PyTorch and others take by `__cuda_stream__`.
    """

    def __init__(self, core: _core.Stream) -> None:
        self._core = core
        self.device = core.device

    def call(self, body: Callable[[], object]) -> None:
        """Runs `body()` on a thread of the host in the stream's order. It must not use CUDA."""
        if not callable(body):
            raise InvalidArgument(f"peerway: call: {shown(body)} cannot be called; give a function.")
        self._core.call(body)

    def wait(self, timeout: float | None = None) -> None:
        """Returns once all that was enqueued is done. Plan.check tells whether plans in it were cancelled."""
        self._core.wait(seconds(timeout))

    def __cuda_stream__(self) -> tuple[int, int]:
        if self.device == "host":
            raise InvalidArgument(
                "peerway: a stream of the host is no CUDA stream; make one with ctx.stream('cuda')."
            )
        return 0, self._core.queue

    def close(self) -> None:
        """Waits for all that was enqueued and ends the stream. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        return f"<peerway.Stream on {self.device}{', closed' if self._core.closed else ''}>"


class Plan:
    """A prepared communication. A start makes all its operations as one batch, a finish waits for what its
    waits and receives name; the n-th finish belongs to the n-th start. Between the two the sources must not
    change and the targets not be used.

    Where a stream can be given, it is a peerway.Stream, a CuPy or PyTorch stream, anything with
    `__cuda_stream__`, or a CUDA stream as an int. Then the call returns at once.
    """

    def __init__(self, core: _core.Plan, device: str, keep: object = None) -> None:
        self._core = core
        self._device = device
        self._keep = keep  # what the operations use
        self._requests: weakref.WeakSet[Request] = weakref.WeakSet()

    def start(self, stream: object = None) -> Request | None:
        """From the host, or in the order of a stream. From the host, a start while an earlier one is not
        finished is refused; and it returns a request that stands for the finish: it is finished by finish()
        or by waiting for the request.
        """
        if stream is None:
            request = Request(self._core.start_request(), self)
            self._requests.add(request)
            return request
        self._core.start_on(stream_handle(stream, self._device))
        return None

    def finish(self, stream: object = None, timeout: float | None = None) -> None:
        """Waits until what was started has arrived, or lets a stream wait for it. `timeout`, in seconds, is
        of a wait of the host; set_timeout bounds those of streams.

        Raises Timeout, PeerLost or Closed.
        """
        if stream is None:
            self._core.finish(seconds(timeout))
        elif timeout is not None:
            raise InvalidArgument(
                f"peerway: a timeout of {timeout} s for a finish in a stream, which does not wait here; "
                "bound the stream's waits with set_timeout()."
            )
        else:
            self._core.finish_on(stream_handle(stream, self._device))

    def run(self, stream: object = None) -> None:
        """A start and the finish that belongs to it, as one piece of work where a stream is given."""
        if stream is None:
            self._core.start()
            self._core.finish(None)
        else:
            self._core.run_on(stream_handle(stream, self._device))

    def set_timeout(self, timeout: float | None) -> None:
        """Bounds each wait of the plan in streams and kernels, in seconds; None: only the death of a rank."""
        self._core.set_timeout(seconds(timeout))

    @property
    def status(self) -> str:
        """ "ok", or why the plan was cancelled: "peer_lost", "timeout", "closed" or "device"."""
        return self._core.status()[0]

    def check(self) -> None:
        """Raises the error that the plan was cancelled for, if it was."""
        self._core.check()

    def handle(self) -> bytes:
        """The pw_plan_handle with which a kernel uses the plan (peerway/device.cuh), as bytes."""
        return self._core.handle()

    def send_lane(self, rank: int, tag: int) -> bytes:
        """The pw_lane_handle of this rank's end of a send, as bytes, for a kernel that moves its packets
        itself (peerway/device.cuh). Such a plan is used through its lanes alone, or started and finished.

        Raises Unsupported where the bytes do not go by packets.
        """
        return self._core.lane(True, *_lane("send_lane", rank, tag))

    def receive_lane(self, rank: int, tag: int) -> bytes:
        """The same of a receive."""
        return self._core.lane(False, *_lane("receive_lane", rank, tag))

    def close(self) -> None:
        """Ends the plan, which must not be under way, and its requests. Closing twice does nothing."""
        for request in list(self._requests):
            request.close()
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else self.status
        return f"<peerway.{type(self).__name__} on {self._device}, {state}>"


class PlanBuilder:
    """A plan before it is prepared. Operations are added one after the other, the target first; each call
    returns the builder.
    """

    def __init__(self, core: _core.PlanBuilder, context: Context, device: str) -> None:
        self._core = core
        self._context = context
        self._device = device
        self._keep: list[object] = []

    def put(
        self,
        to: Far,
        source: Near,
        signal: Remote | None = None,
        by: int = 1,
    ) -> Self:
        """Moves memory of this rank to another and, with `signal`, then raises it. Both sides are given as
        for Context.put.
        """
        far = far_side("put", "to", to)
        near = self._near("put", "source", source, written=False)
        raised = None if signal is None else signal_of("put", signal)._core
        far_block, near_block = blocks_of(far, near)
        self._core.put(far.of._core, far_block, near.of._core, near_block, raised, number("put: `by`", by))
        return self._using(near)

    def get(self, to: Near, source: Far) -> Self:
        """Moves memory of another rank here."""
        near = self._near("get", "to", to, written=True)
        far = far_side("get", "source", source)
        near_block, far_block = blocks_of(near, far)
        self._core.get(near.of._core, near_block, far.of._core, far_block)
        return self._using(near)

    def raise_signal(self, signal: Remote, by: int = 1) -> Self:
        """Every start raises the signal, before it waits for anything."""
        raised = signal_of("raise_signal", signal)
        self._core.raise_signal(raised._core, number("raise_signal: `by`", by))
        return self

    def after(self, signal: Signal, lead: int = 0, by: int = 1) -> Self:
        """Start n moves nothing before the signal has grown by (n - lead) * by: the receiver raises it as it
        starts (lead 0), or when it has used what came (lead 1).
        """
        waited = of_kind("after: `signal`", signal, Signal, "give a signal of this rank, of ctx.signal().")
        self._core.after(waited._core, number("after: `lead`", lead), number("after: `by`", by))
        return self

    def wait(self, signal: Signal, by: int = 1) -> Self:
        """Finish n waits until the signal has grown by n * by."""
        waited = of_kind("wait: `signal`", signal, Signal, "give a signal of this rank, of ctx.signal().")
        self._core.wait(waited._core, number("wait: `by`", by))
        return self

    def send(self, rank: int, tag: int, source: Near) -> Self:
        """Joined with the receive of the same tag in that rank's plan; one may send to oneself."""
        lane = _lane("send", rank, tag)
        near = self._near("send", "source", source, written=False)
        self._core.send(*lane, near.of._core, block_of(near))
        return self._using(near)

    def receive(self, rank: int, tag: int, to: Near) -> Self:
        """Joined with the send of the same tag in that rank's plan."""
        lane = _lane("receive", rank, tag)
        near = self._near("receive", "to", to, written=True)
        self._core.receive(*lane, near.of._core, block_of(near))
        return self._using(near)

    def prepare(self, alone: bool = False) -> Plan:
        """Fixes everything. Collective over the team, also for ranks that have nothing to send or receive;
        unless `alone`, for plans of one-sided operations only. The builder is closed then.
        """
        plan = Plan(self._core.prepare(alone), self._device, tuple(self._keep))
        self.close()
        return self._context._keep(plan)

    def close(self) -> None:
        """Drops what was added. Closing twice does nothing."""
        self._core.close()
        self._keep.clear()

    def __repr__(self) -> str:
        return f"<peerway.PlanBuilder on {self._device}{', closed' if self._core.closed else ''}>"

    def _near(self, call: str, name: str, given: object, written: bool) -> Span[Region] | View[Region]:
        return near_side(self._context._registered, call, name, given, written)

    def _using(self, near: Span[Region] | View[Region]) -> Self:
        self._keep.append(near.of._memory)  # which the region lets go of when it is closed
        return self


class Fifo:
    """Puts that kernels post and the proxy does, over any path; made by Context.fifo."""

    def __init__(self, core: _core.Fifo, device: str, keep: object) -> None:
        self._core = core
        self._device = device
        self._keep = keep  # what the puts use

    def handle(self) -> bytes:
        """The pw_fifo_handle with which kernels post (peerway/device/fifo.cuh), as bytes."""
        return self._core.handle()

    def check(self) -> None:
        """Raises the error that the FIFO was cancelled for, if it was."""
        self._core.check()

    def close(self) -> None:
        """Ends it, once no kernel uses it any more. What is not complete then may be dropped. Closing twice
        does nothing.
        """
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        return f"<peerway.Fifo on {self._device}{', closed' if self._core.closed else ''}>"


def _lane(call: str, rank: int, tag: int) -> tuple[int, int]:
    least, most = -(2**31), 2**31 - 1
    return number(f"{call}: `rank`", rank, least, most), number(f"{call}: `tag`", tag, least, most)


def stream_handle(stream: object, device: str) -> tuple[str, int, int]:
    """Kind and index of a stream's device, and its handle. A CUDA stream that does not tell its device is
    taken to be of the plan's, `device`.
    """
    if isinstance(stream, Stream):
        kind, index = split_device(stream.device)
        return kind, index, stream._core.queue
    return "cuda", _index_of(stream, device), _queue_of(stream)


def _queue_of(stream: Any) -> int:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, queue = protocol() if callable(protocol) else protocol
        return int(queue)
    for name in ("ptr", "cuda_stream"):  # CuPy, PyTorch
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise InvalidArgument(
        f"peerway: {shown(stream)} is no stream; give a peerway.Stream, a stream of CuPy or PyTorch, an "
        "object with __cuda_stream__, or the number of a CUDA stream."
    )


def _index_of(stream: object, device: str) -> int:
    for name in ("device_id", "device_index"):  # CuPy, PyTorch
        index = getattr(stream, name, None)
        if isinstance(index, int) and index >= 0:
            return index
    return split_device(device)[1] if device.startswith("cuda") else -1
