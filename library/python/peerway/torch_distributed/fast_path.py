"""Collectives in one call of the core: a copy into the memory of a plan, the plan, and a copy out of it.

This path serves collectives that the program waits for at once, if one plan takes their tensors as they are
and an earlier call has made it. operations.py serves all others. One rank may use it and another not, because
both run the same plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from peerway.torch_distributed.engine import Engine, Key
from peerway.torch_distributed.operations import units
from peerway.torch_distributed.reductions import reduction_of

# The kind of plan, and whether the source and the result have a part for each rank.
_COLLECTIVES = {
    "all_reduce": ("all_reduce", False, False),
    "broadcast": ("broadcast", False, False),
    "reduce_scatter_tensor": ("reduce_scatter", True, False),
    "all_gather_into_tensor": ("all_gather", False, True),
    "all_to_all_single": ("all_to_all", True, True),
}


class FastPath(NamedTuple):
    """A plan, where in its memory the source goes and the result is, and their bytes: 0 for none."""

    engine: Engine
    plan: Any  # of the core
    source: int
    source_bytes: int
    result: int
    result_bytes: int

    def run(self, result: torch.Tensor, source: torch.Tensor) -> bool:
        """Runs the collective, unless the engine must do something else first; returns whether it did."""
        before = (self.source, source.data_ptr(), self.source_bytes)
        after = (result.data_ptr(), self.result, self.result_bytes)
        return self.engine.run_between(self.plan, before, after)


def takes(tensor: torch.Tensor) -> bool:
    """Whether a tensor's memory is its elements in their order."""
    return (
        type(tensor) is torch.Tensor  # others, such as DTensor, have their elements elsewhere
        and tensor.layout is torch.strided
        and tensor.is_contiguous()
        and not tensor.is_neg()
    )


def find(
    engine: Engine, name: str, result: torch.Tensor, source: torch.Tensor, op: Any, root: int
) -> FastPath | None:
    """The fast path of a collective; None if it has none, or its plan was not made yet."""
    kind, *in_parts = _COLLECTIVES[name]
    sources, results = (engine.size if each else 1 for each in in_parts)
    parts = max(sources, results)
    if source.numel() * results != result.numel() * sources or source.numel() % sources:
        return None
    key = _key(engine, kind, source, sources, op, root) if source.dtype == result.dtype else None
    if key is None or key.elements > engine.chunk(key.dtype, parts):
        return None
    prepared = engine.find(key)
    if prepared is None or (parts > 1 and prepared.elements != key.elements):  # its parts may be padded
        return None
    to, source_bytes, result_bytes = prepared.to.data_ptr(), source.nbytes, result.nbytes
    place = prepared.source.data_ptr() if prepared.source.numel() else to
    if name == "all_gather_into_tensor":
        place += engine.rank * source_bytes
    if name == "broadcast":
        sends = engine.rank == root
        source_bytes, result_bytes = (source_bytes, 0) if sends else (0, result_bytes)
    return FastPath(engine, prepared.plan._core, place, source_bytes, to, result_bytes)


def _key(engine: Engine, kind: str, source: torch.Tensor, sources: int, op: Any, root: int) -> Key | None:
    """The key of the plan that operations.py uses; None if that does more with the tensors than copy them."""
    if source.is_complex():  # it may be conjugated, which its memory does not show
        return None
    if op is None:
        bytes_ = source.nbytes // sources
        return Key(kind, "", torch.uint8, units(bytes_) if kind == "broadcast" else bytes_, root)
    reduction = reduction_of(op, source.dtype, engine.size)
    scaled = reduction.factor is not None or reduction.divisor is not None
    if scaled or reduction.dtype.itemsize != source.dtype.itemsize:
        return None
    return Key(kind, reduction.op, reduction.dtype, source.numel() // sources)
