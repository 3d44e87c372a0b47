"""Plans: communication that is prepared once and started many times, from the host or in the order of a
stream.

    plan = ctx.plan().put(far[0:n], near[0:n], notify=theirs).wait(mine).prepare(alone=True)
    plan.start(); plan.finish(timeout=2)               # from the host,
    plan.start(stream); plan.finish(stream)            # in the order of a stream
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NoReturn, Self

from peerway import _core
from peerway._arguments.operands import Far, Near, RegionsByAddress, far_side, near_side, signal_of
from peerway._arguments.validation import number, of_kind, seconds
from peerway.errors import Closed, InvalidArgument
from peerway.memory import Region, Remote, Signal
from peerway.request import Request
from peerway.stream import stream_handle
from peerway.views import Span, View, block_of, blocks_of


class Plan:
    """A prepared communication. A start issues all its operations as one batch; a finish waits for the plan's
    waits and receives. The n-th finish belongs to the n-th start. Between the two the sources must not change
    and the targets must not be used.

    A `stream` may be a peerway.Stream, a CuPy or PyTorch stream, any object with `__cuda_stream__`, or a CUDA
    stream as an int. A call with a stream returns at once.
    """

    def __init__(self, core: _core.Plan, device: str, keep: object = None) -> None:
        self._core = core
        self._device = device
        self._keep = keep  # what the operations use
        self._requests: weakref.WeakSet[Request] = weakref.WeakSet()

    def start(self, stream: object = None) -> Request | None:
        """Starts the plan from the host, or in the order of `stream`. A start from the host is refused while
        an earlier one is not finished. It returns a request that stands for the finish: finish the plan with
        finish() or by waiting for the request.
        """
        if stream is None:
            request = Request(self._core.start_request(), self)
            self._requests.add(request)
            return request
        self._core.start_on(stream_handle(stream, self._device))
        return None

    def finish(self, stream: object = None, timeout: float | None = None) -> None:
        """Finishes the plan: waits on the host, or enqueues the wait in `stream`. After `timeout` seconds a
        wait on the host raises Timeout, and may be called again. set_timeout() limits waits of either kind.

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
        """A start and its finish. In a stream they are one piece of work."""
        if stream is None:
            self._core.start()
            self._core.finish(None)
        else:
            self._core.run_on(stream_handle(stream, self._device))

    def run_if(self, stream: object, word: int, value: int) -> None:
        """A start and its finish in the order of `stream`, if the 32-bit integer at the address `word` is
        `value` when the stream comes to them; otherwise nothing is done. So a graph may contain more
        iterations of a loop than there will be. The plan's device must reach the address, nothing may write
        the word until the run is done, and all ranks must decide alike.
        """
        address = number("run_if: `word`", word)
        wanted = number("run_if: `value`", value, -(1 << 31), (1 << 31) - 1)
        self._core.run_on_if(stream_handle(stream, self._device), address, wanted)

    def set_timeout(self, timeout: float | None) -> None:
        """Limits each wait of the plan, on the host, in streams and in kernels, to `timeout` seconds; then
        the plan is cancelled. None: only the loss of a rank or the end of the context ends them.
        """
        self._core.set_timeout(seconds(timeout))

    def leave_room(self, yes: bool = True) -> None:
        """Tells a plan of a GPU whether kernels run beside it. If they do, launches of a plan that sends
        2 MiB or more take three eighths of the multiprocessors and not all, so that the kernels have room;
        alone such a plan then takes up to 1.4 times as long. Not while another thread launches the plan.
        """
        self._core.leave_room(bool(yes))

    @property
    def status(self) -> str:
        """ "ok", or why the plan was cancelled: "peer_lost", "timeout", "closed" or "device"."""
        return self._core.status()[0]

    def check(self) -> None:
        """Raises the error that cancelled the plan, if it was cancelled."""
        self._core.check()

    def describe(self) -> str:
        """What the plan moves and by which method: of a collective first a line with its name and method; a
        line for each put and get, then for each send, then for each receive, such as "send 393216 bytes to
        rank 1, tag 7: plan/lines, in 64 pieces".
        """
        return self._core.describe()

    def handle(self) -> bytes:
        """The pw_plan_handle, as bytes, with which a kernel starts and finishes the plan
        (peerway/device.cuh).
        """
        return self._core.handle()

    def send_lane(self, rank: int, tag: int) -> bytes:
        """The pw_lane_handle, as bytes, of this rank's end of a send, for a kernel that moves the packets
        itself (peerway/device.cuh). Such a plan is used only through its lanes or only by start and finish.

        Raises Unsupported if this send goes by neither packets nor lines.
        """
        return self._core.lane(True, *_lane("send_lane", rank, tag))

    def receive_lane(self, rank: int, tag: int) -> bytes:
        """The pw_lane_handle, as bytes, of this rank's end of a receive; otherwise as send_lane."""
        return self._core.lane(False, *_lane("receive_lane", rank, tag))

    def close(self) -> None:
        """Ends the plan and its requests. The plan must not be between a start and its finish. Closing twice
        does nothing.
        """
        for request in list(self._requests):
            request.close()
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else self.status
        return f"<peerway.{type(self).__name__} on {self._device}, {state}>"


class PlanBuilder:
    """A plan before it is prepared, made by Context.plan. Operations are added one after the other, the
    target first; each call returns the builder.
    """

    def __init__(
        self,
        core: _core.PlanBuilder,
        device: str,
        registered: RegionsByAddress,
        closed_with_context: Callable[[Plan], Plan],
    ) -> None:
        self._core = core
        self._device = device
        self._registered = registered
        self._closed_with_context = closed_with_context
        self._keep: list[object] = []
        self._made_its_plan = False

    def put(
        self,
        to: Far,
        source: Near,
        notify: Remote | None = None,
        by: int = 1,
    ) -> Self:
        """Moves memory of this rank to another rank and, with `notify`, then adds `by` to that
        signal. Both sides are given as for Context.put.
        """
        far = far_side("put", "to", to)
        near = self._near("put", "source", source, written=False)
        signal = None if notify is None else signal_of("put", notify, "notify")._core
        far_block, near_block = blocks_of(far, near)
        self._core.put(far.of._core, far_block, near.of._core, near_block, signal, number("put: `by`", by))
        return self._using(near)

    def get(self, to: Near, source: Far) -> Self:
        """Moves memory of another rank to this rank."""
        near = self._near("get", "to", to, written=True)
        far = far_side("get", "source", source)
        near_block, far_block = blocks_of(near, far)
        self._core.get(near.of._core, near_block, far.of._core, far_block)
        return self._using(near)

    def notify(self, signal: Remote, by: int = 1) -> Self:
        """Notifies the signal at every start, before the plan waits for anything and before its puts: it
        tells the signal's owner that this rank is ready, not that data has arrived.
        """
        theirs = signal_of("notify", signal)
        self._core.notify(theirs._core, number("notify: `by`", by))
        return self

    def after(self, signal: Signal, lead: int = 0, by: int = 1) -> Self:
        """Start n moves nothing until the signal has grown by (n - lead) * by: the receiver notifies it when
        it starts (lead 0), or when it has used the previous data (lead 1).
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
        """Sends to the receive of the same tag in that rank's plan. A rank may send to itself."""
        lane = _lane("send", rank, tag)
        near = self._near("send", "source", source, written=False)
        self._core.send(*lane, near.of._core, block_of(near))
        return self._using(near)

    def receive(self, rank: int, tag: int, to: Near) -> Self:
        """Receives from the send of the same tag in that rank's plan."""
        lane = _lane("receive", rank, tag)
        near = self._near("receive", "to", to, written=True)
        self._core.receive(*lane, near.of._core, block_of(near))
        return self._using(near)

    def prepare(self, alone: bool = False) -> Plan:
        """Fixes paths, mappings and tables, and closes the builder.

        Collective over the team: ranks that send and receive nothing must call it, too. With `alone`, for
        plans of one-sided operations, no other rank takes part.
        """
        self._refuse_second_plan()
        return self._prepared(self._core.prepare(alone))

    def prepare_among(self, ranks: Iterable[int]) -> Plan:
        """As prepare, but collective only over these ranks, given in any order.

        All sends and receives must be with ranks of the list. If several plans are prepared among the same
        ranks, all of these ranks prepare them in the same order.
        """
        self._refuse_second_plan()
        least, most = -(2**31), 2**31 - 1
        listed = [number("prepare_among: each rank", rank, least, most) for rank in ranks]
        return self._prepared(self._core.prepare_among(listed))

    if not TYPE_CHECKING:  # a type checker would take every attribute for a valid one

        def __getattr__(self, name: str) -> NoReturn:
            if not name.startswith("_") and hasattr(Plan, name):
                raise AttributeError(f"a plan has `{name}` once it is prepared: plan = builder.prepare()")
            raise AttributeError(f"'PlanBuilder' object has no attribute '{name}'", name=name, obj=self)

    def close(self) -> None:
        """Drops the operations that were added. Closing twice does nothing."""
        self._core.close()
        self._keep.clear()

    def __repr__(self) -> str:
        return f"<peerway.PlanBuilder on {self._device}{', closed' if self._core.closed else ''}>"

    def _prepared(self, core: _core.Plan) -> Plan:
        plan = Plan(core, self._device, tuple(self._keep))
        self._made_its_plan = True
        self.close()
        return self._closed_with_context(plan)

    def _refuse_second_plan(self) -> None:
        if self._made_its_plan:
            raise Closed(
                "peerway: prepare: this builder of a plan was closed when it made its plan. Start the plan "
                "that prepare() returned, or add the operations to a new builder: ctx.plan()."
            )

    def _near(self, call: str, name: str, given: object, written: bool) -> Span[Region] | View[Region]:
        return near_side(self._registered, call, name, given, written)

    def _using(self, near: Span[Region] | View[Region]) -> Self:
        self._keep.append(near.of._memory)  # a region that is closed drops its own reference
        return self


class Fifo:
    """Puts that kernels post and the proxy carries out over any path; made by Context.fifo."""

    def __init__(self, core: _core.Fifo, device: str, keep: object) -> None:
        self._core = core
        self._device = device
        self._keep = keep  # what the puts use

    def handle(self) -> bytes:
        """The pw_fifo_handle, as bytes, with which kernels post puts (peerway/device/fifo.cuh)."""
        return self._core.handle()

    def check(self) -> None:
        """Raises the error that cancelled the FIFO, if it was cancelled."""
        self._core.check()

    def close(self) -> None:
        """Ends the FIFO. No kernel may use it any more. Puts that are not complete may be dropped. Closing
        twice does nothing.
        """
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        return f"<peerway.Fifo on {self._device}{', closed' if self._core.closed else ''}>"


def _lane(call: str, rank: int, tag: int) -> tuple[int, int]:
    least, most = -(2**31), 2**31 - 1
    return number(f"{call}: `rank`", rank, least, most), number(f"{call}: `tag`", tag, least, most)
