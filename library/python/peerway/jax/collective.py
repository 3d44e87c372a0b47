"""Collectives of arrays in compiled functions of JAX. Shapes are those of `jax.lax`: where each rank has a
part, the parts are the first dimension.

    total = all_reduce(ctx, gradients.shape, gradients.dtype)

    @jax.jit
    def step(parameters, batch):
        return parameters - rate * total(jax.grad(loss)(parameters, batch))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from peerway.context import Context
from peerway.jax.calls import ArrayType, PlanArrays, PlanCalls, register_targets
from peerway.plan import Plan


class Collective(PlanCalls):
    """A collective that functions compiled by JAX start and finish. The functions of this module make it;
    making one is collective over its ranks.

    `collective(x)` starts it with this rank's array and returns its result; with `start` and `finish` XLA may
    compute something else meanwhile. It must be finished before it is started again: give a start what the
    finish before it returned as `after`, unless its array is computed from that anyway.
    """

    noun = "collective"

    def __call__(self, array: Any, after: Any = None) -> Any:
        """A start, its finish, and the result."""
        (result,) = self.finish(self.start(array, after=after))
        return result


def all_reduce(
    ctx: Context,
    shape: Sequence[int],
    dtype: Any,
    op: str = "sum",
    ranks: Sequence[int] | None = None,
    order: str = "group",
    device: str = "host",
) -> Collective:
    """Makes a collective whose result has, at every rank, the elements of the arrays of all ranks combined.
    `shape` and `dtype` are those of a rank's array and of the result; `op` and `order` are those of
    Context.all_reduce. `ranks` are those that take part, by default all; `device` is where JAX computes.

    Raises Unavailable if this build of Peerway has no calls for JAX, and what Context.all_reduce raises; the
    other functions likewise.
    """
    whole = ArrayType.of(shape, dtype)
    return _one_buffer(ctx, device, whole, lambda array: ctx.all_reduce(array, None, op, ranks, order))


def reduce_scatter(
    ctx: Context,
    shape: Sequence[int],
    dtype: Any,
    op: str = "sum",
    ranks: Sequence[int] | None = None,
    order: str = "group",
    device: str = "host",
) -> Collective:
    """Makes a collective that takes an array of `shape`, whose first dimension has a part for each rank, and
    whose result, of shape `shape[1:]`, is this rank's part of the arrays of all ranks combined.
    """
    whole = ArrayType.of(shape, dtype)
    part = ArrayType(whole.shape[1:], whole.dtype)
    return _two_buffers(
        ctx, device, whole, part, lambda source, to: ctx.reduce_scatter(to, source, op, None, ranks, order)
    )


def all_gather(
    ctx: Context,
    shape: Sequence[int],
    dtype: Any,
    ranks: Sequence[int] | None = None,
    device: str = "host",
) -> Collective:
    """Makes a collective that takes an array of `shape`, and whose result, of shape `(ranks, *shape)`, has
    the arrays of all ranks.
    """
    part = ArrayType.of(shape, dtype)
    whole = ArrayType((ctx.size if ranks is None else len(ranks), *part.shape), part.dtype)
    return _two_buffers(ctx, device, part, whole, lambda source, to: ctx.all_gather(to, source, None, ranks))


def broadcast(
    ctx: Context,
    shape: Sequence[int],
    dtype: Any,
    root: int = 0,
    ranks: Sequence[int] | None = None,
    device: str = "host",
) -> Collective:
    """Makes a collective whose result is, at every rank, the array of rank `root`."""
    whole = ArrayType.of(shape, dtype)
    return _one_buffer(ctx, device, whole, lambda array: ctx.broadcast(array, root, ranks))


def all_to_all(
    ctx: Context,
    shape: Sequence[int],
    dtype: Any,
    ranks: Sequence[int] | None = None,
    device: str = "host",
) -> Collective:
    """Makes a collective that takes an array of `shape`, whose first dimension has a part for each rank, and
    whose result, of the same shape, has the parts that the ranks had for this one.
    """
    whole = ArrayType.of(shape, dtype)
    return _two_buffers(
        ctx, device, whole, whole, lambda source, to: ctx.all_to_all(to, source, None, None, ranks)
    )


def _one_buffer(ctx: Context, device: str, whole: ArrayType, plan_of: Callable[[Any], Plan]) -> Collective:
    register_targets()
    memory = PlanArrays(ctx, device, [whole])
    return Collective(plan_of(memory.single_array()), memory, memory)


def _two_buffers(
    ctx: Context,
    device: str,
    source: ArrayType,
    result: ArrayType,
    plan_of: Callable[[Any, Any], Plan],
) -> Collective:
    register_targets()
    sources, results = PlanArrays(ctx, device, [source]), PlanArrays(ctx, device, [result])
    return Collective(plan_of(sources.single_array(), results.single_array()), sources, results)
