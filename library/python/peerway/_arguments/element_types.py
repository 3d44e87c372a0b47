"""Types of elements, by the names of NumPy, or of PyTorch where NumPy has none (bfloat16)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from peerway.errors import InvalidArgument


class Element(NamedTuple):
    """A type of elements: its name, and its bytes."""

    kind: str
    size: int


def numpy_type(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's type for a type of NumPy or PyTorch; None for a type that only PyTorch has."""
    name = str(dtype)
    if not name.startswith("torch."):
        known: np.dtype[Any] = np.dtype(dtype)
        return known
    try:
        return np.dtype(name.removeprefix("torch."))
    except TypeError:
        return None


def type_name(dtype: object) -> str:
    """NumPy's name of a type of any library; the library's own where NumPy has none."""
    name = str(dtype)
    try:
        known = numpy_type(name)
    except TypeError:
        known = None
    return name.removeprefix("torch.") if known is None else _name_of(known)


def element_of(dtype: Any) -> Element:
    """The element type with that name in NumPy or PyTorch. Raises InvalidArgument unless it is plain
    bytes.
    """
    known = numpy_type(dtype)
    if known is None:
        return Element(str(dtype).removeprefix("torch."), dtype.itemsize)
    if known.hasobject or known.itemsize == 0:
        why = (
            "holds Python objects, whose addresses mean nothing elsewhere"
            if known.hasobject
            else "is 0 bytes"
        )
        raise InvalidArgument(
            f"peerway: an array of type {known!s}, which {why}; give a type of plain numbers."
        )
    return Element(_name_of(known), known.itemsize)


def _name_of(known: np.dtype[Any]) -> str:
    """NumPy's code of a type, or its name where NumPy has no code for it: for the types that ml_dtypes adds
    to NumPy (bfloat16), as JAX brings it.
    """
    return known.name if is_added(known) else known.str


def is_added(known: np.dtype[Any]) -> bool:
    """Whether another library added the type to NumPy, whose array protocols have no code for it."""
    return not known.type.__module__.startswith("numpy")
