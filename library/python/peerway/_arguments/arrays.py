"""Memory as arrays for other libraries, by `__array_interface__`, `__cuda_array_interface__` and DLPack.
Nothing here copies, and every array keeps its memory alive.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from peerway import _core
from peerway._arguments.array_layout import Layout, layout_of
from peerway._arguments.element_types import Element, is_added
from peerway._arguments.validation import called
from peerway.errors import InvalidArgument


def contiguous_layout_of(array: object) -> Layout:
    """The layout of an array without gaps, of any library and device: the bytes that a region registers.

    Raises InvalidArgument for arrays with gaps and objects that expose no memory.
    """
    layout = layout_of(array)
    if not _contiguous(layout):
        raise InvalidArgument(
            f"peerway: {called(array)} is not contiguous. Register the array it is a view of; then its parts "
            "can be given to put and get as they are."
        )
    return layout


class Memory(NamedTuple):
    """The memory of an array: where it is, and the object that keeps it alive."""

    keep: object
    address: int
    device: str  # "host", "cuda:N" or "hip:N"
    read_only: bool = False


def array_over(memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Memory as an array that keeps it alive.

    On the host it is a NumPy array. On a GPU it is a CuPy array, otherwise a PyTorch tensor, or a CudaView if
    neither is installed or has such a type. NumPy's arrays of read-only memory are read-only; CuPy and
    PyTorch have no read-only arrays.
    """
    view = view_over(memory, dtype, shape)
    known = dtype.kind in NUMBERS and dtype.isnative and not is_added(dtype)
    if not isinstance(view, CudaView) or not known:
        return view
    for library in (_by_cupy, _by_torch):
        try:
            return library(view)
        except (ImportError, TypeError):  # TypeError: PyTorch lacks some of NumPy's types
            continue
    return view


def tensor_over(memory: Memory, element: Element, shape: tuple[int, ...]) -> Any:
    """Memory as a PyTorch tensor, of a type that only PyTorch has: a tensor of integers of the same size,
    viewed as that type.
    """
    import torch  # type: ignore[import-not-found, unused-ignore]

    integers = array_over(memory, np.dtype(f"i{element.size}"), shape)
    return torch.as_tensor(integers).view(getattr(torch, element.kind))


def view_over(memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
    """Memory as an array without CuPy or PyTorch: a NumPy array on the host, a CudaView on a GPU."""
    if memory.device != "host":
        return CudaView(memory, dtype, shape)
    coded = np.dtype(f"V{dtype.itemsize}") if is_added(dtype) else dtype
    return np.asarray(_HostView(memory.keep, interface_of(memory, coded, shape))).view(dtype)


def _by_cupy(view: CudaView) -> Any:
    """The view as a CuPy array, which keeps the view alive. cupy.asarray would not do: it copies memory of a
    GPU that is not the current one.
    """
    import cupy  # type: ignore[import-not-found, unused-ignore]

    address, index = view.place
    memory = cupy.cuda.UnownedMemory(address, view.size, view, index)
    return cupy.ndarray(view.shape, view.dtype, cupy.cuda.MemoryPointer(memory, 0))


def _by_torch(view: CudaView) -> Any:
    """The view as a PyTorch tensor, which keeps the view alive."""
    import torch  # type: ignore[import-not-found, unused-ignore]

    return torch.as_tensor(view, device=f"cuda:{view.place[1]}")


NUMBERS = "?biufc"  # NumPy's kinds of types that these libraries have as well


class _HostView:
    """Keeps the memory alive: NumPy holds it as the base of the array."""

    def __init__(self, memory: object, interface: dict[str, Any]) -> None:
        self._memory = memory
        self.__array_interface__ = interface


class CudaView:
    """A region of CUDA or HIP memory that CuPy (`cupy.asarray`), PyTorch (`torch.as_tensor`) and others
    accept as an array.

    This view cannot be indexed. Make an array of it with one of these libraries, and index that. `__dlpack__`
    gives untyped bytes, `__cuda_array_interface__` has the requested type and shape.
    """

    def __init__(self, memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self._memory = memory
        self.place = memory.address, int(memory.device.partition(":")[2])
        self.size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        self.dtype = dtype
        self.shape = shape
        # PyTorch refuses arrays that are marked read-only.
        self.__cuda_array_interface__ = interface_of(memory._replace(read_only=False), dtype, shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("peerway: an array without dimensions has no length")
        return self.shape[0]

    def __getitem__(self, key: object) -> Any:
        raise self._unreachable("cannot be indexed from the host")

    def __setitem__(self, key: object, value: object) -> None:
        raise self._unreachable("cannot be indexed from the host")

    def __iter__(self) -> Any:
        raise self._unreachable("cannot be indexed from the host")

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        raise self._unreachable("cannot be a NumPy array")

    def __repr__(self) -> str:
        return f"<array of {self.shape} {self.dtype} in memory of {self._memory.device}>"

    def _unreachable(self, why: str) -> InvalidArgument:
        remedy = (
            "With CuPy (pip install cupy-cuda13x, or 12x) or PyTorch, array() gives an array of theirs"
            if self.dtype.kind in NUMBERS
            else f"CuPy and PyTorch have no type {self.dtype}; take array() of the bytes or of numbers"
        )
        return InvalidArgument(
            f"peerway: {self!r} {why}. {remedy}. A get copies it into a region of the host."
        )

    def __dlpack__(self, **options: Any) -> Any:
        return self._bytes().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self._bytes().__dlpack_device__()
        return kind, index

    def _bytes(self) -> Any:
        address, index = self.place
        return _core.cuda_bytes(address, self.size, index, self, self._memory.device.startswith("hip"))


def interface_of(memory: Memory, dtype: np.dtype[Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """The dictionary that both array interfaces use, for dense memory."""
    return {
        "data": (memory.address, memory.read_only),
        "typestr": dtype.str,
        "descr": dtype.descr,
        "shape": shape,
        "strides": None,
        "version": 3,
    }


def _contiguous(layout: Layout) -> bool:
    """Whether the elements follow one another without gaps, in any order of the dimensions."""
    expected = layout.item
    for stride, count in sorted(zip(layout.strides, layout.shape, strict=True)):
        if count != 1 and stride != expected:
            return 0 in layout.shape
        expected *= count
    return True
