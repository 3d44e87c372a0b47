"""Turn the arguments of an operation into its two sides. An argument is a region or remote, bytes of one, a
view of its elements, or an array in a registered region. Anything else is an error that says what to pass.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from typing import Any

from peerway._arguments.array_layout import layout_of
from peerway._arguments.validation import called, of_kind, shown
from peerway.errors import Closed, InvalidArgument
from peerway.memory import Region, Remote, Signal
from peerway.views import Span, View

Far = Span[Remote] | View[Remote] | Remote
Near = Any  # Span[Region] | View[Region] | Region | an array of any library in registered memory

# For isinstance(): `Span | View` in a function would make a new type in each call, in the way of short puts.
PARTS = (Span, View)
OWN = (Remote, Signal, *PARTS)


class RegionsByAddress:
    """The open regions of a context by address, to find the region that contains an array."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False
        self._starts: list[int] = []
        self._regions: list[weakref.ref[Region]] = []

    def add(self, region: Region) -> None:
        """Adds a region without keeping it alive; forgets those that are closed or collected."""
        with self._lock:
            open_regions = [
                (start, registered)
                for start, registered in zip(self._starts, self._regions, strict=True)
                if _open(registered)
            ]
            open_regions.append((region.address, weakref.ref(region)))
            open_regions.sort(key=lambda entry: entry[0])
            self._starts = [start for start, _ in open_regions]
            self._regions = [registered for _, registered in open_regions]

    def covering(self, address: int, bytes: int, written: bool) -> Region | None:
        """An open region that contains all these bytes. If they will be `written`, a writable one if there is
        one. Raises Closed after close().
        """
        read_only = None
        with self._lock:
            if self._closed:
                raise Closed("peerway: this context was closed before.")
            for place in range(bisect_right(self._starts, address) - 1, -1, -1):
                region = _open(self._regions[place])
                if region is None or address + bytes > region.address + region.bytes:
                    continue
                if not (written and region.read_only):
                    return region
                read_only = read_only or region
        return read_only

    def close(self) -> None:
        """Forget all regions when the context is closed."""
        with self._lock:
            self._closed = True
            self._starts, self._regions = [], []


def _open(reference: weakref.ref[Region]) -> Region | None:
    region = reference()
    return None if region is None or region._core.closed else region


def far_side(call: str, name: str, given: object) -> Span[Remote] | View[Remote]:
    """The side of another rank. Raises InvalidArgument for anything else; the message names the call."""
    if isinstance(given, PARTS) and isinstance(given.of, Remote):
        return given
    if isinstance(given, Remote):
        return given[:]
    raise InvalidArgument(
        f"peerway: {call}: `{name}` is {_what(given)}; it must be another rank's memory: a remote that "
        f"ctx.import_key(key) gives, remote[first:end] or remote.view(dtype)[...].{_swapped(call)}"
    )


def near_side(
    registered: RegionsByAddress, call: str, name: str, given: object, written: bool
) -> Span[Region] | View[Region]:
    """The side of this rank; `written`: the operation writes to it. Raises InvalidArgument for anything else;
    the message names the call.
    """
    if isinstance(given, PARTS) and isinstance(given.of, Region):
        return given
    if isinstance(given, Region):
        return given[:]
    if isinstance(given, OWN) or not _is_array(given):
        raise InvalidArgument(
            f"peerway: {call}: `{name}` is {_what(given)}; it must be this rank's memory: a region, "
            f"region[first:end], region.view(dtype)[...], or an array in registered memory.{_swapped(call)}"
        )
    return _view_of_array(registered, call, name, given, written)


def signal_of(call: str, given: object, name: str = "signal") -> Remote:
    """Another rank's signal. Raises InvalidArgument."""
    if isinstance(given, Signal):
        raise InvalidArgument(
            f"peerway: {call}: `{name}` is a signal of this rank, which only waits for it; give the one that "
            "ctx.import_key(key) makes of its key, at the rank that notifies it."
        )
    return of_kind(
        f"{call}: `{name}`", given, Remote, "give what ctx.import_key(key) makes of a signal's key."
    )


def _view_of_array(
    registered: RegionsByAddress, call: str, name: str, array: object, written: bool
) -> View[Region]:
    layout = layout_of(array)
    if written and layout.read_only:
        raise InvalidArgument(
            f"peerway: {call}: `{name}` is {called(array)}, which is read-only; give a writable array."
        )
    if any(stride <= 0 and count > 1 for stride, count in zip(layout.strides, layout.shape, strict=True)):
        raise InvalidArgument(
            f"peerway: {call}: `{name}` is {called(array)} with strides of {layout.strides} bytes; strides "
            "must be positive. Give the array that it is a view of, or a copy."
        )
    region = registered.covering(layout.address, layout.extent_bytes, written)
    if region is None:
        raise InvalidArgument(
            f"peerway: {call}: `{name}` is {called(array)}, {layout.extent_bytes} bytes at "
            f"{layout.address:#x}, which no open region of this context has. Register the array "
            "once, `region = ctx.register(array)`, and keep the region; then the array and its slices can be "
            "given."
        )
    offset = layout.address - region.address
    return View(region, layout.kind, layout.item, layout.shape, layout.strides, offset)


def _is_array(given: object) -> bool:
    protocols = ("__array_interface__", "__cuda_array_interface__", "__dlpack__")
    if any(hasattr(type(given), name) for name in protocols):
        return True
    try:
        memoryview(given).release()  # type: ignore[arg-type]
    except TypeError:
        return any(hasattr(given, name) for name in protocols)
    return not isinstance(given, bytes)


def _what(given: object) -> str:
    if isinstance(given, PARTS):
        return f"{'bytes' if isinstance(given, Span) else 'elements'} of {_what(given.of)}"
    if isinstance(given, Region):
        return "a region of this rank"
    if isinstance(given, Remote):
        return f"a remote of rank {given.rank}"
    if isinstance(given, bytes):
        return "bytes (a key? ctx.import_key(key) makes a remote of it)"
    return shown(given)


def _swapped(call: str) -> str:
    order = {
        "put": " The target comes first: put(remote, region), and get(region, remote) the other way.",
        "get": " The target comes first: get(region, remote), and put(remote, region) the other way.",
    }
    return order.get(call, "")
