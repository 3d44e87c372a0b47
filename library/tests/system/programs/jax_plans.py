"""Plans inside compiled functions of JAX, on the ranks of one set; a JSON line for each job.

Each word of the command line is a job: a JSON list of its name and its arguments. JAX_PLANS_DEVICE=cuda puts
the arrays and plans on the GPU of each rank; with JAX_PLANS_HIDDEN a rank sees no other GPU.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from typing import Any

if "JAX_PLANS_HIDDEN" in os.environ:  # CUDA reads it when it is first used
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["PEERWAY_LOCAL_RANK"]

import jax
import numpy as np

import peerway
from peerway import jax as calls
from peerway.jax import Exchange, Halo, Message

DEVICE = os.environ.get("JAX_PLANS_DEVICE", "host")
jax.config.update("jax_platforms", "cpu" if DEVICE == "host" else DEVICE)
if DEVICE != "host" and "JAX_PLANS_HIDDEN" not in os.environ:
    jax.config.update("jax_default_device", jax.devices()[int(os.environ["PEERWAY_LOCAL_RANK"])])
jax.config.update("jax_enable_x64", True)


def whole(extents: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(extents), dtype=float).reshape(extents)


def part(array: np.ndarray[Any, Any], ctx: peerway.Context, options: dict[str, Any]) -> Any:
    """This rank's part of a periodic array with its shadow: what a refreshed halo must hold."""
    grid = options["grid"]
    here = np.unravel_index(ctx.rank, grid)
    subscripts = []
    for axis, extent in enumerate(array.shape):
        lower, upper = options["layers"][axis]
        places = grid[axis] if axis < len(grid) else 1
        length = extent // places
        first = int(here[axis]) * length if axis < len(grid) else 0
        subscripts.append(np.arange(first - lower, first + length + upper) % extent)
    return array[np.ix_(*subscripts)]


def differing(ctx: peerway.Context, options: dict[str, Any]) -> int:
    """Elements of a refreshed halo that are wrong, in a loop inside a compiled function."""
    expected = part(whole(tuple(options["extents"])), ctx, options)
    layers = options["layers"]
    owned = tuple(
        slice(lower, count - upper) for count, (lower, upper) in zip(expected.shape, layers, strict=True)
    )
    shadow = [(lower, upper) for lower, upper in layers]
    halo = Halo(ctx, expected.shape, float, options["grid"], shadow, True, options["corners"], DEVICE)

    @partial(jax.jit, donate_argnums=0)
    def rounds(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            started = halo.start(u)
            return halo.finish(u, started).at[owned].add(1.0)

        return halo.refresh(jax.lax.fori_loop(0, 5, step, u))

    begun = np.full(expected.shape, -1.0)
    begun[owned] = expected[owned]
    result = np.asarray(rounds(jax.numpy.asarray(begun)))
    known = np.ones(expected.shape, bool)
    if not options["corners"]:  # only where at most one dimension is in the shadow
        outside = sum(
            ((index < side.start) | (index >= side.stop)).astype(int)
            for index, side in zip(np.indices(expected.shape), owned, strict=True)
        )
        known = outside <= 1
    halo.close()
    return int((result[known] != expected[known] + 5).sum())


LEFT: list[Exchange] = []  # that the program does not close: its context does


def ring(ctx: peerway.Context) -> list[list[float]]:
    """What two arrays of different types bring, outside of a compiled function and in one."""
    right, left = (ctx.rank + 1) % ctx.size, (ctx.rank - 1) % ctx.size
    shapes = [((2, 3), np.float32), ((), np.int64)]
    exchange = Exchange(
        ctx,
        [Message(right, tag, *shape) for tag, shape in enumerate(shapes)],
        [Message(left, tag, *shape) for tag, shape in enumerate(shapes)],
        DEVICE,
    )

    def both(matrix: Any, number: Any) -> Any:
        return exchange.finish(exchange.start(matrix, number))

    answers = []
    for call in (both, jax.jit(both)):
        matrix, number = call(jax.numpy.full((2, 3), ctx.rank, np.float32), jax.numpy.int64(ctx.rank + 10))
        answers += [[float(matrix.min()), float(matrix.max()), float(number)]]
    LEFT.append(exchange)
    return answers


def differing_results(ctx: peerway.Context, dtype: str, ranks: list[int] | None) -> list[str]:
    """The collectives whose results are wrong, in a compiled function that calls each of them three times."""
    members = list(range(ctx.size)) if ranks is None else ranks
    if ctx.rank not in members:
        return []
    parts, place = len(members), members.index(ctx.rank)
    # Small whole numbers, which all types add without rounding. XLA's CPU runs functions of smaller arrays in
    # one thread.
    arrays = [np.arange(parts * 900).reshape(parts, 45, 20) % 5 + rank for rank in members]
    own = arrays[place]
    expected = {
        "all_reduce": sum(arrays),
        "largest": np.max(arrays, axis=0),
        "reduce_scatter": sum(arrays)[place],
        "all_gather": np.stack(arrays),
        "broadcast": arrays[-1],
        "all_to_all": np.stack([array[place] for array in arrays]),
    }
    collectives = {
        "all_reduce": calls.all_reduce(ctx, own.shape, dtype, ranks=ranks, device=DEVICE),
        "largest": calls.all_reduce(ctx, own.shape, dtype, "max", ranks, "any", DEVICE),
        "reduce_scatter": calls.reduce_scatter(ctx, own.shape, dtype, ranks=ranks, device=DEVICE),
        "all_gather": calls.all_gather(ctx, own.shape, dtype, ranks, DEVICE),
        "broadcast": calls.broadcast(ctx, own.shape, dtype, members[-1], ranks, DEVICE),
        "all_to_all": calls.all_to_all(ctx, own.shape, dtype, ranks, DEVICE),
    }

    @jax.jit
    def rounds(x: Any) -> dict[str, Any]:
        def each_once(_: Any, results: dict[str, Any]) -> dict[str, Any]:
            last = results["broadcast"]
            for name, collective in collectives.items():
                last = collective(x, after=last)
                results = {**results, name: last}
            return results

        return jax.lax.fori_loop(0, 2, each_once, each_once(0, {"broadcast": x}))

    results = rounds(jax.numpy.asarray(own, dtype))
    wrong = [
        name
        for name, result in results.items()
        if np.asarray(result).dtype != np.dtype(dtype)
        or not np.array_equal(np.asarray(result).astype(int), expected[name])
    ]
    for collective in collectives.values():
        collective.close()
    return wrong


def mistakes(ctx: peerway.Context) -> dict[str, str]:
    """What is said of each mistake; all ranks make the same."""
    to_itself = [Message(ctx.rank, 0, (4,), np.float64)]
    exchange = Exchange(ctx, to_itself, to_itself, DEVICE)
    errors = {}

    def note(name: str, call: Any) -> None:
        try:
            call()
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"

    note("shape", lambda: exchange.start(jax.numpy.zeros(5)))
    note("type", lambda: exchange.start(jax.numpy.zeros(4, np.float32)))
    note("count", exchange.start)
    halo = Halo(ctx, (4,), float, (ctx.size,), shadow=1, device=DEVICE)
    note("halo", lambda: halo.start(jax.numpy.zeros(4, np.float32)))
    of_halo = halo.start(jax.numpy.zeros(4))
    of_exchange = exchange.start(jax.numpy.zeros(4))
    note("other exchange", lambda: exchange.finish(of_halo))
    note("other halo", lambda: halo.finish(jax.numpy.zeros(4), of_exchange))
    jax.block_until_ready((exchange.finish(of_exchange), halo.finish(jax.numpy.zeros(4), of_halo)))
    halo.close()
    note("grid", lambda: Halo(ctx, (4, 4), float, (ctx.size + 1,)))
    note("narrow", lambda: Halo(ctx, (4,), float, (ctx.size,), shadow=2))
    total = calls.all_reduce(ctx, (4,), np.float32, device=DEVICE)
    note("collective", lambda: total(jax.numpy.zeros(4, np.int32)))
    note("parts", lambda: calls.reduce_scatter(ctx, (ctx.size + 1, 2), float, device=DEVICE))
    started = exchange.start(jax.numpy.zeros(4))
    note("twice", lambda: jax.block_until_ready(exchange.start(jax.numpy.zeros(4))))
    jax.block_until_ready(exchange.finish(started))
    compiled = jax.jit(lambda u: exchange.finish(exchange.start(u))).lower(jax.numpy.zeros(4)).compile()
    exchange.close()
    note("closed", lambda: jax.block_until_ready(compiled(jax.numpy.zeros(4))))
    return errors


def sum_or_error(ctx: peerway.Context, device: str) -> str:
    """What a compiled all-reduce of ones gives whose plan is on this device, or its error."""
    total = calls.all_reduce(ctx, (4,), np.float32, device=device)
    try:
        return str(float(jax.jit(total)(jax.numpy.ones(4, np.float32))[0]))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def on_first_gpu(ctx: peerway.Context) -> str:
    """What a rank says that starts a plan with arrays of the first GPU."""
    with jax.default_device(jax.devices()[0]):
        return sum_or_error(ctx, DEVICE)


def on_the_other_device(ctx: peerway.Context) -> str:
    """What is said of a plan on the host where JAX computes on GPUs, or the other way round."""
    return sum_or_error(ctx, "cuda" if DEVICE == "host" else "host")


def lost(ctx: peerway.Context, name: str) -> str:
    """What the compiled loop of a rank says whose partner is killed."""
    plan: Any
    if name == "exchange":
        message = [Message(1 - ctx.rank, 0, (4,), np.float64)]
        plan = Exchange(ctx, message, message, DEVICE)
    else:
        plan = calls.all_reduce(ctx, (4,), np.float64, device=DEVICE)
    step = jax.jit(lambda u: plan.finish(plan.start(u))[0])
    u = jax.numpy.zeros(4)
    print(json.dumps("begun"), flush=True)
    while True:
        try:
            u = jax.block_until_ready(step(u))
            plan.check()
        except Exception as error:
            return f"{type(error).__name__}: {error}"


JOBS = {
    "differing": differing,
    "differing_results": differing_results,
    "lost": lost,
    "mistakes": mistakes,
    "on_first_gpu": on_first_gpu,
    "on_the_other_device": on_the_other_device,
    "ring": ring,
}


def main() -> None:
    with peerway.Context() as ctx:
        for word in sys.argv[1:]:
            name, *arguments = json.loads(word)
            answer = JOBS[name](ctx, *arguments)
            print(json.dumps(answer), flush=True)
            if name != "lost":
                ctx.team.barrier()


main()
