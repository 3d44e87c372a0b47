"""Arrays of other libraries as memory, and memory as arrays: the buffer protocol, `__cuda_array_interface__`
and DLPack. Nothing here copies.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from peerway import _core
from peerway.errors import InvalidArgument

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from peerway.memory import Region


def span_of(array: object) -> tuple[int, int]:
    """Address and bytes of an array's memory, of any library and device.

    Raises InvalidArgument for arrays with gaps, read-only arrays and objects that expose no memory.
    """
    cuda = getattr(array, "__cuda_array_interface__", None)
    if cuda is not None:
        return _cuda_span(array, cuda)
    try:
        view = memoryview(array)  # type: ignore[arg-type]
    except TypeError:
        return _dlpack_span(array)
    if not view.contiguous:
        raise InvalidArgument(_gaps(array))
    if view.readonly:
        raise InvalidArgument(
            f"peerway: {called(array)} is read-only; peers may write to registered memory, so give a "
            "writable array."
        )
    if view.nbytes == 0:
        return 0, 0
    return ctypes.addressof(ctypes.c_char.from_buffer(view.cast("B"))), view.nbytes


def host_array(region: Region, dtype: DTypeLike, shape: tuple[int, ...]) -> NDArray[Any]:
    """The region's memory as a NumPy array that keeps the region object alive."""
    return np.asarray(_HostView(region, np.dtype(dtype), shape))


def shape_for(region_bytes: int, dtype: DTypeLike, shape: int | Sequence[int] | None) -> tuple[int, ...]:
    """The shape as a tuple: all of the region where none is given. Raises InvalidArgument when it does not
    fit.
    """
    item = np.dtype(dtype).itemsize
    if shape is None:
        return (region_bytes // item,)
    whole = (shape,) if isinstance(shape, int) else tuple(int(length) for length in shape)
    if min(whole, default=0) < 0 or prod(whole) * item > region_bytes:
        raise InvalidArgument(
            f"peerway: an array of shape {whole} and type {np.dtype(dtype)} needs {prod(whole) * item} "
            f"bytes, but the region has {region_bytes}."
        )
    return whole


class _HostView:
    """What NumPy keeps as the base of a view."""

    def __init__(self, region: Region, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._region = region
        self.__array_interface__ = _interface(region, dtype, shape)


class CudaView:
    """A region of CUDA memory as an array for CuPy (`cupy.asarray`), PyTorch (`torch.as_tensor`) and others.

    `__dlpack__` gives the bytes, untyped; `__cuda_array_interface__` the type and shape asked for.
    """

    def __init__(self, region: Region, dtype: DTypeLike, shape: tuple[int, ...]) -> None:
        self._region = region
        self.dtype = np.dtype(dtype)
        self.shape = shape
        self.__cuda_array_interface__ = _interface(region, self.dtype, shape)

    def __dlpack__(self, **options: Any) -> Any:
        return self._bytes().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._bytes().__dlpack_device__()
        return kind, index

    def _bytes(self) -> Any:
        index = int(self._region.device.partition(":")[2])
        return _core.cuda_bytes(self._region.address, self._region.bytes, index, self)


def _interface(region: Region, dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    return {
        "data": (region.address, False),
        "typestr": dtype.str,
        "shape": shape,
        "strides": None,
        "version": 3,
    }


def _cuda_span(array: object, interface: dict[str, Any]) -> tuple[int, int]:
    shape, item = interface["shape"], np.dtype(interface["typestr"]).itemsize
    address, read_only = interface["data"]
    strides = interface.get("strides")
    if strides is not None and not _contiguous(shape, strides, item):
        raise InvalidArgument(_gaps(array))
    if read_only:
        raise InvalidArgument(f"peerway: {called(array)} is read-only; give a writable array.")
    return int(address or 0), prod(shape) * item


def _dlpack_span(array: object) -> tuple[int, int]:
    if not hasattr(array, "__dlpack__"):
        raise InvalidArgument(
            f"peerway: {called(array)} exposes no memory: it has neither the buffer protocol nor "
            "__cuda_array_interface__ nor DLPack. Give an array, or an address and its bytes."
        )
    try:
        return _core.dlpack_span(array)
    except TypeError:
        raise InvalidArgument(_gaps(array)) from None


def _contiguous(shape: Sequence[int], strides: Sequence[int], item: int) -> bool:
    """Whether the strides are those of C or of Fortran order."""
    for order in (range(len(shape) - 1, -1, -1), range(len(shape))):
        expected, right = item, True
        for axis in order:
            right = right and (shape[axis] == 1 or strides[axis] == expected)
            expected *= shape[axis]
        if right:
            return True
    return False


def _gaps(array: object) -> str:
    return (
        f"peerway: {called(array)} is not contiguous. Register the array it is a view of, and move its part "
        "with region.block(counts, strides, block_bytes, offset)."
    )


def called(array: object) -> str:
    """What messages call an array."""
    shape = getattr(array, "shape", None)
    return type(array).__name__ + (f" of shape {tuple(shape)}" if shape is not None else "")
