"""Memory as arrays for other libraries, by `__array_interface__`, `__cuda_array_interface__` and DLPack.
Nothing here copies, and every array keeps its memory alive.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from peerway import _core
from peerway._arguments.layout import Layout, layout_of
from peerway._arguments.validation import called
from peerway.errors import InvalidArgument


def span_of(array: object) -> tuple[int, int, object]:
    """Address and size of an array's memory, of any library and device, and the object that keeps it alive.

    Raises InvalidArgument for arrays with gaps, read-only arrays and objects that expose no memory.
    """
    layout = layout_of(array)
    if not _contiguous(layout):
        raise InvalidArgument(
            f"peerway: {called(array)} is not contiguous. Register the array it is a view of; then its parts "
            "can be given to put and get as they are."
        )
    if layout.read_only:
        raise InvalidArgument(
            f"peerway: {called(array)} is read-only; peers may write to registered memory, so give a "
            "writable array."
        )
    return layout.address, layout.span, layout.keep


def array_over(
    memory: object, address: int, device: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Any:
    """Memory as an array that keeps `memory` alive: a NumPy array on the host, a CudaView elsewhere."""
    if device == "host":
        return np.asarray(_HostView(memory, interface_of(address, dtype, shape)))
    return CudaView(memory, address, int(device.partition(":")[2]), dtype, shape)


class _HostView:
    """The base that NumPy keeps for a view."""

    def __init__(self, memory: object, interface: dict[str, Any]) -> None:
        self._memory = memory
        self.__array_interface__ = interface


class CudaView:
    """A region of CUDA memory as an array for CuPy (`cupy.asarray`), PyTorch (`torch.as_tensor`) and others.

    `__dlpack__` gives the bytes, untyped; `__cuda_array_interface__` the type and shape asked for.
    """

    def __init__(
        self, memory: object, address: int, index: int, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        self._memory = memory
        self._place = address, index
        self.dtype = dtype
        self.shape = shape
        self.__cuda_array_interface__ = interface_of(address, dtype, shape)

    def __dlpack__(self, **options: Any) -> Any:
        return self._bytes().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._bytes().__dlpack_device__()
        return kind, index

    def _bytes(self) -> Any:
        address, index = self._place
        size = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        return _core.cuda_bytes(address, size, index, self)


def interface_of(address: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The dictionary of both array interfaces for dense memory."""
    return {
        "data": (address, False),
        "typestr": dtype.str,
        "descr": dtype.descr,
        "shape": shape,
        "strides": None,
        "version": 3,
    }


def _contiguous(layout: Layout) -> bool:
    """Whether the elements follow one another, in the order of any dimension."""
    expected = layout.item
    for stride, count in sorted(zip(layout.strides, layout.shape, strict=True)):
        if count != 1 and stride != expected:
            return 0 in layout.shape
        expected *= count
    return True
