"""PyTorch's reduce operations as those of collectives, and the types in which elements are combined."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch.distributed import ReduceOp

_OPERATIONS = {
    "SUM": "sum",
    "AVG": "sum",
    "PREMUL_SUM": "sum",
    "PRODUCT": "prod",
    "MIN": "min",
    "MAX": "max",
    "BAND": "and",
    "BOR": "or",
}
# A sum of truth values says whether any is true, as PyTorch's other backends have it.
_OF_BOOL = {"SUM": "or", "MAX": "or", "BOR": "or", "PRODUCT": "and", "MIN": "and", "BAND": "and"}
_OF_BITS = ("and", "or")
_COMBINED = frozenset(
    getattr(torch, name)
    for name in (
        *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"),
    )
    if hasattr(torch, name)
)
_SCALED = ("AVG", "PREMUL_SUM")  # each operand is multiplied by a factor before


class Reduction(NamedTuple):
    """How the elements of all ranks are combined."""

    op: str  # of peerway.Context.all_reduce
    dtype: torch.dtype  # the elements' type while they are combined
    factor: Any = None  # what each operand is multiplied with before, if anything
    divisor: int | None = None  # what the result is divided by, if anything


def name_of(op: Any) -> str:
    """The name of a reduce operation, such as "SUM"."""
    return str(_kind_of(op).name)


def _kind_of(op: Any) -> Any:
    return op if isinstance(op, ReduceOp.RedOpType) else op.op


def reduction_of(op: Any, dtype: torch.dtype, size: int) -> Reduction:
    """How to combine elements of `dtype` over `size` ranks. Numbers of 8 bits with a point are
    combined as they are, which rounds once, at the end; with a factor, or of a type that collectives lack,
    in float32.

    Raises ValueError for operations that the type does not have.
    """
    kind = _kind_of(op)
    reduction = _reduction(kind, dtype, size)
    return reduction._replace(factor=op.__getstate__()[1]) if kind == ReduceOp.PREMUL_SUM else reduction


@cache
def _reduction(kind: Any, dtype: torch.dtype, size: int) -> Reduction:
    name = str(kind.name)
    operation = (_OF_BOOL if dtype == torch.bool else _OPERATIONS).get(name)
    if operation is None:
        known = ", ".join(_OF_BOOL if dtype == torch.bool else _OPERATIONS)
        raise ValueError(
            f"peerway: ReduceOp.{name} of {dtype}; there are {known}. Gather the tensors and combine them."
        )
    if dtype == torch.bool:
        return Reduction(operation, torch.uint8)
    if operation in _OF_BITS and (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"peerway: ReduceOp.{name} combines bits, which {dtype} is not made for.")
    rounds_twice = dtype.is_floating_point and dtype.itemsize == 1 and name in _SCALED  # scaled operands too
    combined = dtype if dtype in _COMBINED and not rounds_twice else torch.float32
    if combined != dtype and not dtype.is_floating_point:
        raise ValueError(f"peerway: ReduceOp.{name} of {dtype}; convert the tensor to another type.")
    if name == "AVG" and dtype.is_floating_point:
        return Reduction(operation, combined, factor=1.0 / size)
    return Reduction(operation, combined, divisor=size if name == "AVG" else None)


def as_real(tensor: torch.Tensor, op: Any) -> torch.Tensor:
    """A complex tensor as one of real numbers, which sums allow; others as they are."""
    if not tensor.is_complex():
        return tensor
    if _OPERATIONS.get(name_of(op)) != "sum":
        raise ValueError(f"peerway: ReduceOp.{name_of(op)} of complex numbers; there are SUM and AVG.")
    return torch.view_as_real(tensor)
