"""Regions, remotes and signals: what is moved, where to, and when it has arrived."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

import numpy as np

from peerway import _core
from peerway._arguments import arrays
from peerway._arguments.validation import device as split_device
from peerway._arguments.validation import number, seconds
from peerway.errors import Closed, InvalidArgument
from peerway.views import Span, View, element_of, numpy_type, view_of, written

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Addressed:
    """Bytes that can be sliced, and viewed as elements: the base of regions and remotes."""

    bytes: int

    def __len__(self) -> int:
        return self.bytes

    def __getitem__(self, part: slice | tuple[SupportsIndex, SupportsIndex]) -> Span[Self]:
        """`region[a:b]` is the bytes from a up to b, `region[a, n]` the n bytes from a on. Negative offsets
        count from the end: `region[-8:]` is the last 8 bytes. Use `view` for elements and `block` for
        strides.
        """
        if isinstance(part, tuple):
            return self._from_offset(part)
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgument(
                f"peerway: {written(part)} is not a contiguous range of bytes; use [first:end] for bytes, "
                "[first, bytes] for a length, view(dtype)[...] for elements, or block() for strides."
            )
        try:
            first = 0 if part.start is None else index(part.start)
            end = self.bytes if part.stop is None else index(part.stop)
        except TypeError:
            raise InvalidArgument(
                f"peerway: {written(part)} is not a range of bytes; give whole numbers."
            ) from None
        if first < 0:
            first += self.bytes
        if end < 0:
            end += self.bytes
        if first < 0 or end < first:
            raise InvalidArgument(
                f"peerway: {written(part)} of {self.bytes} bytes would be from byte {first} up to {end}; "
                "0 <= first <= end is needed. Negative offsets count from the end."
            )
        return Span(self, _core.Block((), (), end - first, first))

    def _from_offset(self, part: tuple[object, ...]) -> Span[Self]:
        if len(part) != 2 or any(isinstance(bound, slice) for bound in part):
            raise InvalidArgument(
                f"peerway: {written(part)} names no bytes; [first, bytes] does, as [first:end]. Elements are "
                "view(dtype)[...]."
            )
        first = number("the first byte of a range", part[0], -self.bytes)
        first += self.bytes if first < 0 else 0
        return Span(self, _core.Block((), (), number("the bytes of a range", part[1]), first))

    def __iter__(self) -> None:
        raise TypeError(
            f"peerway: {self!r} has no values to go through; region.array() has those of a region here."
        )

    def block(
        self, counts: Sequence[int], strides: Sequence[int], block_bytes: int, offset: int = 0
    ) -> Span[Self]:
        """Blocks of `block_bytes` bytes at regular strides; the first begins at byte `offset`.

        `counts` and `strides` (in bytes) have one entry for each of at most 4 dimensions, the slowest first.
        Raises InvalidArgument for negative counts, offsets or block_bytes.
        """
        return Span(
            self,
            _core.Block(
                [number("a count of a block", count) for count in counts],
                [number("a stride of a block", stride, -(2**63), 2**63 - 1) for stride in strides],
                number("block_bytes", block_bytes),
                number("the offset of a block", offset),
            ),
        )

    def view(self, dtype: DTypeLike, shape: int | Sequence[int] | None = None, offset: int = 0) -> View[Self]:
        """The bytes from `offset` on as elements of type `dtype`: all of them in one dimension, or an array
        of `shape` whose last dimension varies fastest. Slice it like a NumPy array; put, get and plans take
        the slices: `ctx.put(remote.view(float)[10:20], u[10:20])`.

        Raises InvalidArgument if the shape needs more bytes than there are.
        """
        return view_of(self, dtype, shape, number("the offset of a view", offset, most=self.bytes))


class Region(Addressed):
    """A registered range of this rank's memory, made by Context.allocate or Context.register.

    Other libraries can use it as an array of bytes: `numpy.asarray(region)`, `numpy.from_dlpack(region)`, and
    for GPU memory `cupy.asarray(region)` or `torch.from_dlpack(region)`. `array()` gives it a type and shape.
    Nothing is copied. The memory lives as long as any of these arrays, even if the region or its context is
    closed before.

    Attributes:
        bytes: its size.
        address: the address of its first byte in this process.
        device: "host" or "cuda:N".
        read_only: whether it is a source only, as a read-only array was registered.
    """

    def __init__(self, core: _core.Region, keep: object = None) -> None:
        self._core = core
        self._memory = core.memory if keep is None else keep  # keeps the memory alive
        self._shown = False  # handed out by a protocol whose users keep this object
        self.bytes = core.bytes
        self.address = core.address
        self.device = core.device
        self.read_only = core.read_only

    def key(self) -> builtins.bytes:
        """The bytes that let a peer import this region. Raises Closed."""
        return self._core.key()

    def array(self, dtype: DTypeLike = "u1", shape: int | Sequence[int] | None = None) -> Any:
        """The memory as an array, without a copy: on the host a NumPy array; on a GPU a CuPy array where CuPy
        is installed, else a PyTorch tensor, else (and for types that they lack) an object with
        `__cuda_array_interface__` and `__dlpack__`, which raises InvalidArgument when indexed. The array
        keeps the memory alive even after the region is closed, except for memory registered by its address
        (Context.register_memory), which the caller must keep.

        Raises InvalidArgument if the shape does not fit or the type holds Python objects, and Closed.
        """
        self._check_open()
        whole = view_of(self, dtype, shape, 0).shape
        known = numpy_type(dtype)
        if known is None:
            return arrays.tensor_over(self._place(), element_of(dtype), whole)
        return arrays.array_over(self._place(), known, whole)

    def _place(self) -> arrays.Memory:
        return arrays.Memory(self._memory, self.address, self.device, self.read_only)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device != "host":
            raise AttributeError(f"memory of {self.device} has no __array_interface__")
        return self._interface()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.device == "host":
            raise AttributeError("memory of the host has no __cuda_array_interface__")
        return self._interface()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        """NumPy calls this only for GPU memory, which it cannot use; host memory has __array_interface__."""
        raise InvalidArgument(
            f"peerway: this region is memory of {self.device}, which NumPy cannot reach; use "
            "cupy.asarray(region) or torch.from_dlpack(region), or get its bytes into a region of the host."
        )

    def __dlpack__(self, **options: Any) -> Any:
        return self._bytes_view().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, place = self._bytes_view().__dlpack_device__()
        return int(kind), int(place)

    def _bytes_view(self) -> Any:
        self._check_open()
        return arrays.view_over(self._place(), np.dtype("u1"), (self.bytes,))

    def _interface(self) -> dict[str, Any]:
        self._check_open()
        self._shown = True
        return arrays.interface_of(self._place(), np.dtype("u1"), (self.bytes,))

    def _check_open(self) -> None:
        if self._core.closed:
            raise Closed(
                f"peerway: this region ({self.bytes} bytes, {self.device}) was closed before; make arrays of "
                "it while it is open."
            )

    def close(self) -> None:
        """Ends the region: its key becomes stale. Its memory is freed, or the registered array released, once
        the last array of it is gone. Plans, halos and FIFOs that use the region go on. Closing twice does
        nothing.
        """
        self._core.close()
        if not self._shown:
            self._memory = None

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else f"at {self.address:#x}"
        return f"<peerway.Region of {self.bytes} bytes on {self.device}, {state}>"


class Remote(Addressed):
    """Another rank's region or signal, made by Context.import_key.

    Attributes:
        rank: the owner's rank.
        bytes: its size.
        read_only: whether its owner registered it as a source only: gets take from it, puts are refused.
    """

    def __init__(self, core: _core.Remote) -> None:
        self._core = core
        self.rank = core.rank
        self.bytes = core.bytes
        self.read_only = core.read_only

    def handle(self, device: str = "cuda") -> builtins.bytes:
        """The pw_remote_handle, as bytes, with which kernels of that GPU put here (peerway/device.cuh)."""
        return self._core.handle(*split_device(device))

    def notify_handle(self, device: str = "cuda") -> builtins.bytes:
        """The pw_notify_handle, as bytes, with which kernels of that GPU notify this signal. Nothing else in
        this rank may notify it until release_notify_handle() or close().
        """
        return self._core.notify_handle(*split_device(device))

    def release_notify_handle(self) -> None:
        """Lets this rank notify the signal by other means again. No kernel that has the handle may run any
        more.
        """
        self._core.release_notify_handle()

    def close(self) -> None:
        """Releases the mapping once no plan or FIFO uses it. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        state = ", closed" if self._core.closed else ""
        return f"<peerway.Remote of {self.bytes} bytes on rank {self.rank}{state}>"


class Signal:
    """A 64-bit counter in this rank's memory that peers notify; it only grows. Made by Context.signal."""

    def __init__(self, core: _core.Signal) -> None:
        self._core = core

    @property
    def value(self) -> int:
        """The present value."""
        return self._core.value

    def key(self) -> builtins.bytes:
        """The bytes that let a peer import this signal."""
        return self._core.key()

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Returns once the signal is at least `value`.

        Raises Timeout after `timeout` seconds (None: no limit), PeerLost if its sender is lost, or Closed if
        the context is closed meanwhile.
        """
        self._core.wait(number("the value to wait for", value), seconds(timeout))

    def handle(self, device: str = "cuda", timeout: float | None = None) -> bytes:
        """The pw_signal_handle, as bytes, with which kernels of that GPU wait for the signal
        (peerway/device.cuh). Each wait ends after `timeout` seconds, when the sender is lost, or when the
        context is closed.
        """
        return self._core.handle(*split_device(device), seconds(timeout))

    def check(self) -> None:
        """Raises the error that ended a kernel's wait early, if one did."""
        self._core.check()

    def close(self) -> None:
        """Ends the signal, once no plan uses it. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        return "<peerway.Signal, closed>" if self._core.closed else f"<peerway.Signal at {self.value}>"
