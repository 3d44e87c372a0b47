"""Regions, remotes and signals: what is moved, where to, and when it has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from peerway import _core, arrays
from peerway.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

Side = TypeVar("Side", bound="_Addressed")


@dataclass(frozen=True, slots=True)
class Span(Generic[Side]):
    """Bytes of a region or remote that an operation touches: one run, or blocks at regular strides."""

    of: Side
    block: _core.Block


class _Addressed:
    """What regions and remotes share: bytes that can be sliced."""

    bytes: int

    def __len__(self) -> int:
        return self.bytes

    def __getitem__(self: Side, part: slice) -> Span[Side]:
        """`region[a:b]`: bytes a to b, as one run. Steps are blocks; use `block` for them."""
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise InvalidArgument(
                f"peerway: [{part}] is not a run of bytes; use [first:end], or block() for strides."
            )
        first, end = part.start or 0, self.bytes if part.stop is None else part.stop
        if first < 0 or end < first:
            raise InvalidArgument(
                f"peerway: [{first}:{end}] is not a run of bytes; 0 <= first <= end is needed."
            )
        return Span(self, _core.Block((), (), end - first, first))

    def block(
        self: Side, counts: Sequence[int], strides: Sequence[int], block_bytes: int, offset: int = 0
    ) -> Span[Side]:
        """Blocks of `block_bytes` at regular strides, from `offset` on.

        counts and strides (in bytes) have one entry for each of at most 4 dimensions, the slowest first.
        """
        return Span(self, _core.Block(counts, strides, block_bytes, offset))


def span_of(part: Span[Side] | Side) -> Span[Side]:
    """A span as it is; a region or remote as the span of all its bytes."""
    return part if isinstance(part, Span) else part[:]


def split_device(device: str) -> tuple[str, int]:
    """ "cuda:1" as its kind and index; the index is -1 where none is given. Raises InvalidArgument."""
    kind, colon, index = device.partition(":")
    if colon and not index.isdecimal():
        raise InvalidArgument(f"peerway: unknown device '{device}'; there are 'host', 'cuda' and 'cuda:N'.")
    return kind, int(index) if index else -1


class Region(_Addressed):
    """A registered span of this rank's memory. Made by Context.allocate and Context.register."""

    def __init__(self, core: _core.Region, keep: object = None) -> None:
        self._core = core
        self._keep = keep  # the array whose memory this is
        self.bytes = core.bytes
        self.address = core.address
        self.device = core.device

    def key(self) -> bytes:
        """The bytes that let a peer import this region."""
        return self._core.key()

    def array(self, dtype: DTypeLike = "u1", shape: int | Sequence[int] | None = None) -> Any:
        """The memory as an array, without a copy: a NumPy array on the host, on a GPU an object that CuPy,
        PyTorch and others take. It must not be used after the region is closed.
        """
        whole = arrays.shape_for(self.bytes, dtype, shape)
        if self.device == "host":
            return arrays.host_array(self, dtype, whole)
        return arrays.CudaView(self, dtype, whole)

    def close(self) -> None:
        """Ends the region: its key becomes stale. Closing twice does nothing."""
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else f"at {self.address:#x}"
        return f"<peerway.Region of {self.bytes} bytes on {self.device}, {state}>"


class Remote(_Addressed):
    """Another rank's region or signal, made by Context.import_key."""

    def __init__(self, core: _core.Remote) -> None:
        self._core = core
        self.rank = core.rank
        self.bytes = core.bytes

    def handle(self, device: str = "cuda") -> bytes:
        """The pw_remote_handle with which kernels of a GPU put here (peerway/device.cuh), as bytes."""
        return self._core.handle(*split_device(device))

    def raises(self, device: str = "cuda") -> bytes:
        """The pw_raise_handle with which kernels of a GPU raise this signal, as bytes: they alone, until
        release_raises() or close().
        """
        return self._core.raises(*split_device(device))

    def release_raises(self) -> None:
        """Ends that, once no kernel runs that has the handle."""
        self._core.release_raises()

    def close(self) -> None:
        """Lets go of the mapping. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        return f"<peerway.Remote of {self.bytes} bytes on rank {self.rank}>"


class Signal:
    """A 64-bit counter in this rank's memory that peers raise; it only grows. Made by Context.signal."""

    def __init__(self, core: _core.Signal) -> None:
        self._core = core

    @property
    def value(self) -> int:
        """What it is now."""
        return self._core.value

    def key(self) -> bytes:
        """The bytes that let a peer import this signal."""
        return self._core.key()

    def wait(self, value: int, timeout: float | None = None) -> None:
        """Returns once the counter is at least `value`.

        Raises Timeout after `timeout` seconds (None: never), PeerLost when its sender is lost, Closed when
        the context is closed meanwhile.
        """
        self._core.wait(value, timeout)

    def handle(self, device: str = "cuda", timeout: float | None = None) -> bytes:
        """The pw_signal_handle with which kernels of a GPU wait for it (peerway/device.cuh), as bytes. Each
        wait ends after `timeout` seconds, when the sender is lost, or with the context.
        """
        return self._core.handle(*split_device(device), timeout)

    def check(self) -> None:
        """Raises what ended a kernel's wait early, if one was."""
        self._core.check()

    def close(self) -> None:
        """Ends the signal. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        return "<peerway.Signal, closed>" if self._core.closed else f"<peerway.Signal at {self.value}>"
