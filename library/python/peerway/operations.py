"""The one-sided operations of a context: put, get, notify and flush, and the forms that return a request."""

from __future__ import annotations

import weakref
from typing import Protocol, TypeVar

from peerway import _core
from peerway._arguments.operands import Far, Near, RegionsByAddress, far_side, near_side, signal_of
from peerway._arguments.validation import number, seconds
from peerway.memory import Remote
from peerway.request import Request
from peerway.views import blocks_of

ANY_RANK = _core.ANY_RANK


class Closable(Protocol):
    """An object that a context closes with itself."""

    def close(self) -> None: ...


Child = TypeVar("Child", bound=Closable)


class Operations:
    """The operations of a Context, which inherits them."""

    def __init__(self, core: _core.Context) -> None:
        self._core = core
        self._registered = RegionsByAddress()
        self._children: weakref.WeakSet[Closable] = weakref.WeakSet()

    def put(
        self,
        to: Far,
        source: Near,
        notify: Remote | None = None,
        by: int = 1,
    ) -> None:
        """Starts to move memory of this rank to another rank. With `notify`, a signal of that rank,
        adds `by` to the signal once the data is visible there. The source must not change before flush()
        returns.

        `to` is a remote, bytes of it (`remote[0:4096]`), or elements (`remote.view(float)[10:20]`). `source`
        is a region, bytes or elements of one, an array that lies in a registered region, or a slice of such
        an array: `ctx.put(remote.view(float)[10:20], u[10:20])`. Elements must have the same shape and type
        on both sides, and may have gaps. Bytes must have the same number on both sides.

        Raises OutOfRange past the end of either side, InvalidArgument if the two sides do not fit, StaleKey,
        PeerLost or Closed.
        """
        far = far_side("put", "to", to)
        near = near_side(self._registered, "put", "source", source, written=False)
        signal = None if notify is None else signal_of("put", notify, "notify")._core
        far_block, near_block = blocks_of(far, near)
        self._core.put(far.of._core, far_block, near.of._core, near_block, signal, number("put: `by`", by))

    def get(self, to: Near, source: Far) -> None:
        """Starts to move memory of another rank to this rank. The target must not be used before flush()
        returns. Both sides are given as for put, the target first.
        """
        near = near_side(self._registered, "get", "to", to, written=True)
        far = far_side("get", "source", source)
        near_block, far_block = blocks_of(near, far)
        self._core.get(near.of._core, near_block, far.of._core, far_block)

    def start_put(self, to: Far, source: Near, notify: Remote | None = None, by: int = 1) -> Request:
        """Like put, and returns a request for the put and its notification. The request may have to wait for
        earlier operations on the same paths to the same rank.
        """
        far = far_side("start_put", "to", to)
        near = near_side(self._registered, "start_put", "source", source, written=False)
        signal = None if notify is None else signal_of("start_put", notify, "notify")._core
        far_block, near_block = blocks_of(far, near)
        count = number("start_put: `by`", by)
        core = self._core.start_put(far.of._core, far_block, near.of._core, near_block, signal, count)
        return self._keep(Request(core, (far.of, near.of, source)))

    def start_get(self, to: Near, source: Far) -> Request:
        """Like get, and returns a request for it."""
        near = near_side(self._registered, "start_get", "to", to, written=True)
        far = far_side("start_get", "source", source)
        near_block, far_block = blocks_of(near, far)
        core = self._core.start_get(near.of._core, near_block, far.of._core, far_block)
        return self._keep(Request(core, (far.of, near.of, to)))

    def start_notify(self, signal: Remote, by: int = 1) -> Request:
        """Like notify, and returns a request for it."""
        theirs = signal_of("start_notify", signal)
        core = self._core.start_notify(theirs._core, number("start_notify: `by`", by))
        return self._keep(Request(core, theirs))

    def start_flush(self, rank: int = ANY_RANK) -> Request:
        """A flush that does not wait: returns a request for all operations started towards `rank` so far."""
        return self._keep(
            Request(self._core.start_flush(number("start_flush: `rank`", rank, -(2**31), 2**31 - 1)))
        )

    def notify(self, signal: Remote, by: int = 1) -> None:
        """Adds `by`, at least 1, to another rank's signal after all that this context has started towards
        that rank, on any path. Does not wait for it.
        """
        theirs = signal_of("notify", signal)
        self._core.notify(theirs._core, number("notify: `by`", by))

    def flush(self, rank: int = ANY_RANK, timeout: float | None = None) -> None:
        """Returns once all operations started towards `rank` are complete at both ends. Raises Timeout after
        `timeout` seconds (None: no limit), or PeerLost.
        """
        self._core.flush(number("flush: `rank`", rank, -(2**31), 2**31 - 1), seconds(timeout))

    def _keep(self, child: Child) -> Child:
        """Notes an object that close() of the context will close, and returns it."""
        self._children.add(child)
        return child
