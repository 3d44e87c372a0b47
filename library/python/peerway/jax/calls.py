"""The start and the finish of a plan, as calls in functions that JAX compiles, and the memory that they copy
to and from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple, Self

import jax  # type: ignore[import-not-found, unused-ignore]
import numpy as np

from peerway import _core
from peerway._arguments.arrays import Memory, view_over
from peerway._arguments.element_types import element_of
from peerway.context import Context
from peerway.errors import InvalidArgument, Unavailable
from peerway.memory import Region
from peerway.plan import Plan

_ALIGNMENT = 256  # the alignment of each array in the plan's memory, in bytes


class ArrayType(NamedTuple):
    """The shape and the type of the elements of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, shape: Sequence[int], dtype: Any) -> Self:
        """Raises InvalidArgument for elements that are not plain bytes."""
        element_of(dtype)
        return cls(tuple(shape), np.dtype(dtype))

    @property
    def bytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} of shape {self.shape}"


class PlanArrays:
    """Arrays of a plan, one after another in a region of their own.

    Attributes:
        types: the type of each array.
        spans: the offset and the bytes of each array in the region.
        region: their memory.
    """

    def __init__(self, ctx: Context, device: str, types: Iterable[ArrayType]) -> None:
        self.types = tuple(types)
        self.spans: list[tuple[int, int]] = []
        end = 0
        for array_type in self.types:
            self.spans.append((end, array_type.bytes))
            end += -(-array_type.bytes // _ALIGNMENT) * _ALIGNMENT
        self.region: Region = ctx.allocate(device, max(end, 1))

    def single_array(self) -> Any:
        """The array of a plan that has one, in the plan's memory, as plans take it."""
        (array_type,) = self.types
        memory = Memory(self.region, self.region.address, self.region.device)
        return view_over(memory, array_type.dtype, array_type.shape)


class Started:
    """What a start returns for its own finish: a pytree, which loops of JAX can carry.

    Attributes:
        token: an array of one uint8, which puts the finish behind the start; its value means nothing.
        plan: the number of the plan that was started.
    """

    def __init__(self, token: Any, plan: int) -> None:
        self.token, self.plan = token, plan


jax.tree_util.register_pytree_node(
    Started, lambda started: ((started.token,), started.plan), lambda plan, children: Started(*children, plan)
)


class PlanCalls:
    """The start and the finish of a plan, as calls in functions that JAX compiles.

    Raises Unavailable if this build of Peerway has no calls for JAX.
    """

    noun = "plan"  # what error texts call this

    def __init__(self, plan: Plan, sources: PlanArrays, results: PlanArrays) -> None:
        register_targets()
        self._plan, self._sources, self._results = plan, sources, results
        self._number = np.int64(
            _core.open_jax_plan(
                plan._core, sources.region._core, sources.spans, results.region._core, results.spans
            )
        )

    def start(self, *arrays: Any, after: Any = None) -> Started:
        """Starts the plan with these arrays, and returns what its own finish takes. Works in and outside of
        compiled functions. `after`: arrays that must have been computed before, such as the results of the
        finish before it, as JAX nests them (pytrees).

        Raises InvalidArgument for arrays of another number, shape or type than the plan was made for. A start
        that comes before the finish of the last one is an error of the compiled function.
        """
        types = self._sources.types
        given = [jax.numpy.asarray(array) for array in arrays]
        if len(given) != len(types):
            raise InvalidArgument(f"peerway: start: {len(given)} arrays; the {self.noun} takes {len(types)}.")
        for place, (array, expected) in enumerate(zip(given, types, strict=True)):
            found = ArrayType(tuple(array.shape), array.dtype)
            if found != expected:
                raise InvalidArgument(
                    f"peerway: start: array {place} is {found}; the {self.noun} was made for {expected}."
                )
        token = jax.ShapeDtypeStruct((), np.uint8)  # type: ignore[no-untyped-call, unused-ignore]
        call: Any = jax.ffi.ffi_call("peerway_start", token, has_side_effect=True)
        earlier = [jax.numpy.asarray(array) for array in jax.tree_util.tree_leaves(after)]
        return Started(call(*given, *earlier, plan=self._number), int(self._number))

    def finish(self, started: Started) -> list[Any]:
        """Waits until the plan has ended, and returns its results.

        Raises InvalidArgument for what another plan's start returned.
        """
        if not isinstance(started, Started) or started.plan != int(self._number):
            raise InvalidArgument(
                f"peerway: finish: `started` is not from a start of this {self.noun}; pass what that start "
                "returned."
            )
        types: list[Any] = [
            jax.ShapeDtypeStruct(*result)  # type: ignore[no-untyped-call, unused-ignore]
            for result in self._results.types
        ]
        call: Any = jax.ffi.ffi_call("peerway_finish", types, has_side_effect=True)
        return list(call(started.token, plan=self._number))

    def check(self) -> None:
        """Raises the error that cancelled the plan, if it was cancelled. On a GPU a finish whose peer was
        lost ends without an error, and the arrays that it gave are not valid.
        """
        self._plan.check()

    def close(self) -> None:
        """Ends the plan. A function that uses it afterwards, or is between its start and its finish, ends
        with an error. Closing twice does nothing.
        """
        _core.close_jax_plan(int(self._number))
        self._plan.close()
        self._sources.region.close()
        self._results.region.close()


def register_targets() -> None:
    """Registers the calls with XLA, once in a process.

    Raises Unavailable if this build of Peerway has no calls for JAX.
    """
    if not hasattr(_core, "jax_targets"):
        raise Unavailable(
            "peerway: this build has no calls for JAX: they are built where jaxlib is installed. Install "
            "jaxlib, then build Peerway from source with --no-build-isolation."
        )
    if _registered:
        return
    for platform, targets in _core.jax_targets.items():
        for name, target in zip(("peerway_start", "peerway_finish"), targets, strict=True):
            jax.ffi.register_ffi_target(name, target, platform=platform)
    _registered.append(True)


_registered: list[bool] = []
