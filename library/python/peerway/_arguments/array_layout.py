"""How an array of any library lies in memory: address, shape and strides, by `__cuda_array_interface__`,
`__array_interface__`, the buffer protocol or DLPack. Nothing here copies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peerway import _core
from peerway._arguments.element_types import type_name
from peerway._arguments.validation import called
from peerway.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of an array are. There is one stride for each dimension, in bytes."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    item: int  # bytes of an element
    kind: str  # an element's type, as NumPy writes it
    keep: object  # the object that keeps the memory alive
    read_only: bool = False

    @property
    def extent_bytes(self) -> int:
        """Bytes from the first element to the end of the last, if strides are positive; 0 for an array
        without elements.
        """
        if 0 in self.shape:
            return 0
        return self.item + sum(
            (count - 1) * stride for count, stride in zip(self.shape, self.strides, strict=True)
        )


def layout_of(array: object) -> Layout:
    """The layout of any array.

    Raises InvalidArgument for objects that expose no memory, and for elements that are Python objects.
    """
    interface = _interface(array, "__cuda_array_interface__") or _interface(array, "__array_interface__")
    return _by_dlpack(array) if interface is None else _by_interface(array, interface, array)


def halo_layout_of(array: object) -> Layout:
    """The layout of an array that can have a halo. A view with gaps is accepted if its strides are positive.

    Raises InvalidArgument for read-only arrays, and for strides that are negative or in no order.
    """
    layout = layout_of(array)
    if layout.read_only:
        raise InvalidArgument(
            f"peerway: {called(array)} is read-only, but its halo is written to; give a writable array."
        )
    _check_strides(array, layout)
    return layout


def _check_strides(array: object, layout: Layout) -> None:
    """Both C's and Fortran's order may have gaps between rows, but elements must not share bytes."""
    steps = [(stride, count) for stride, count in zip(layout.strides, layout.shape, strict=True) if count > 1]
    wrong = ""
    if any(stride <= 0 for stride, _ in steps):
        wrong = "strides must be positive"
    elif steps not in (sorted(steps, reverse=True), sorted(steps)):
        wrong = "strides must grow from the last dimension to the first, or from the first to the last"
    if wrong and 0 not in layout.shape:
        raise InvalidArgument(
            f"peerway: {called(array)} has strides of {layout.strides} bytes; {wrong}. Give the array that "
            "it is a view of, or a copy."
        )


def _interface(array: object, name: str) -> dict[str, Any] | None:
    """The array's description by this protocol. Some libraries raise for types that the protocol has no name
    for, such as bfloat16; DLPack is used for these.
    """
    try:
        result: dict[str, Any] | None = getattr(array, name, None)
    except Exception:
        return None
    return result


def _by_interface(array: object, interface: dict[str, Any], keep: object) -> Layout:
    shape = tuple(int(count) for count in interface["shape"])
    kind = _type_of(interface["typestr"])
    if kind.hasobject or getattr(getattr(array, "dtype", None), "hasobject", False):
        raise InvalidArgument(
            f"peerway: {called(array)} holds Python objects, whose addresses mean nothing to a peer; give an "
            "array of plain numbers, as array.astype(float) makes one."
        )
    address, read_only = interface["data"]
    strides = interface.get("strides") or _dense(shape, kind.itemsize)
    kept = tuple(map(int, strides))
    own = getattr(array, "dtype", None)
    name = type_name(own) if kind.kind == "V" and own is not None else str(interface["typestr"])
    return Layout(int(address or 0), shape, kept, kind.itemsize, name, keep, bool(read_only))


def _type_of(typestr: str) -> np.dtype[Any]:
    """NumPy's type for a code; bytes for a code that NumPy lacks, such as <f1 of float8_e5m2."""
    try:
        return np.dtype(typestr)
    except TypeError:
        return np.dtype(f"V{typestr[2:]}")


def _by_dlpack(array: object) -> Layout:
    if not hasattr(array, "__dlpack__"):
        try:
            # It holds the buffer, so that a bytearray, for example, cannot be resized meanwhile.
            held = np.asarray(memoryview(array))  # type: ignore[arg-type]
        except TypeError:
            raise InvalidArgument(
                f"peerway: {called(array)} exposes no memory: it has none of __cuda_array_interface__, "
                "__array_interface__, the buffer protocol and DLPack. Give an array."
            ) from None
        return _by_interface(array, held.__array_interface__, held)
    read_only = False
    try:
        address, shape, strides, item = _core.dlpack_layout(array)
    except TypeError:  # DLPack 1 says which arrays may not be written
        read_only = True
        try:
            address, shape, strides, item = _core.dlpack_read_only_layout(array)
        except TypeError:
            raise InvalidArgument(
                f"peerway: {called(array)} gives no view by DLPack of memory that Peerway can reach."
            ) from None
    kind = type_name(getattr(array, "dtype", f"V{item}"))
    return Layout(address, tuple(shape), tuple(strides), item, kind, array, read_only)


def _dense(shape: tuple[int, ...], item: int) -> tuple[int, ...]:
    strides = []
    for count in reversed(shape):
        strides.append(item)
        item *= count
    return tuple(reversed(strides))
