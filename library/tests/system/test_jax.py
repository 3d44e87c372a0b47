"""Arrays of JAX on the CPU, in and out by DLPack, and plans inside compiled functions. JAX itself never
changes an array; a halo that it was given does, in place.
"""

from __future__ import annotations

import numpy as np
import pytest
from jax_plans import HALOS, expect_loss_is_told, expect_right_collectives, expect_right_halos
from ranks import Ranks

import peerway
from peerway import _core

jax = pytest.importorskip("jax", reason="no JAX (pip install jax)")


@pytest.fixture(autouse=True)
def _on_the_cpu() -> None:
    jax.config.update("jax_platforms", "cpu")


def refresh(ctx: peerway.Context, u: object) -> None:
    halo = ctx.halo(u, grid=(1,), periodic=True)
    halo.start()
    halo.finish(timeout=60)
    halo.close()


def test_a_halo_of_an_array_of_jax_is_refreshed_in_place(ctx: peerway.Context) -> None:
    u = jax.numpy.asarray(np.array([[0, 0], [1, 2], [3, 4], [0, 0]], dtype=np.float32)) + 0
    refresh(ctx, u)
    assert u.tolist() == [[3, 4], [1, 2], [3, 4], [1, 2]]


def test_bytes_are_put_from_one_array_of_jax_into_another(ctx: peerway.Context) -> None:
    source, target = jax.numpy.arange(12.0), jax.numpy.zeros(12)
    region = ctx.register(target)
    ctx.put(ctx.import_key(region.key()), ctx.register(source))
    ctx.flush()
    assert target.tolist() == list(range(12))


def test_a_read_only_view_of_an_array_of_jax_is_a_source(ctx: peerway.Context) -> None:
    view = np.asarray(jax.numpy.arange(20.0).reshape(4, 5))
    assert not view.flags.writeable
    with pytest.raises(peerway.InvalidArgument, match="read-only"):
        ctx.halo(view, grid=(1,))
    target = np.zeros(20, np.float32)
    region = ctx.register(target)
    ctx.put(ctx.import_key(region.key()), ctx.register(view))
    ctx.flush()
    assert target.tolist() == list(range(20))


def test_jax_reads_in_place_what_a_halo_has_refreshed(ctx: peerway.Context) -> None:
    u = ctx.allocate("host", 6 * 4).array(np.float32)
    u[1:-1] = [1, 2, 3, 4]
    refresh(ctx, u)
    seen = jax.dlpack.from_dlpack(u, copy=False)
    assert seen.tolist() == [4, 1, 2, 3, 4, 1]
    assert seen.unsafe_buffer_pointer() == u.ctypes.data


def test_jax_reads_the_bytes_of_a_region_in_place(ctx: peerway.Context) -> None:
    region = ctx.allocate("host", 64)
    region.array(np.uint8)[:] = np.arange(64)
    seen = jax.dlpack.from_dlpack(region, copy=False)
    assert (np.asarray(seen) == np.arange(64)).all()
    assert seen.unsafe_buffer_pointer() == region.array(np.uint8).ctypes.data


calls = pytest.mark.skipif(
    not hasattr(_core, "jax_targets"), reason="this build had no jaxlib, so it has no calls for JAX"
)


@calls
@pytest.mark.parametrize(
    "ranks", [pytest.param(ranks, marks=[] if ranks == 2 else [pytest.mark.long]) for ranks in HALOS]
)
def test_halos_are_refreshed_inside_compiled_loops(ranks: int) -> None:
    expect_right_halos(ranks)


@calls
@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.long)])
def test_collectives_inside_compiled_functions_are_right(ranks: int) -> None:
    expect_right_collectives(ranks)


@calls
@pytest.mark.parametrize("plan", ["exchange", "collective"])
def test_a_compiled_function_ends_with_the_error_of_a_lost_rank(plan: str) -> None:
    expect_loss_is_told(plan)


@calls
def test_a_plan_on_a_gpu_is_refused_where_jax_computes_on_the_cpu(doubles: dict[str, str]) -> None:
    with Ranks("jax_plans.py", 1, '["on_the_other_device"]', **doubles) as running:
        assert "runs on the CPU, and the plan that it uses is on a GPU" in (answer := running.read(0)), answer
        running.end()
