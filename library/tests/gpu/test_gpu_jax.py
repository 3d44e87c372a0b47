"""Plans inside compiled functions of JAX on GPUs, in XLA's stream."""

from __future__ import annotations

import pytest
from jax_plans import expect_loss_is_told, expect_right_collectives, expect_right_halos
from ranks import Ranks

from peerway import _core

pytest.importorskip("jax", reason="no JAX (pip install jax)")
pytestmark = pytest.mark.skipif(not hasattr(_core, "jax_targets"), reason="this build had no jaxlib")
# JAX takes most of a GPU's memory at once, unless it is told not to.
SETTINGS = {"JAX_PLANS_DEVICE": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
HIDDEN = {**SETTINGS, "JAX_PLANS_HIDDEN": "1"}  # each rank sees its own GPU alone


@pytest.mark.parametrize("settings", [SETTINGS, HIDDEN], ids=["visible", "hidden"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_halos_are_refreshed_inside_compiled_loops(gpus: int, ranks: int, settings: dict[str, str]) -> None:
    if ranks > gpus:
        pytest.skip(f"{gpus} GPUs; this needs {ranks}")
    expect_right_halos(ranks, **settings)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_collectives_inside_compiled_functions_are_right(gpus: int, ranks: int) -> None:
    if ranks > gpus:
        pytest.skip(f"{gpus} GPUs; this needs {ranks}")
    expect_right_collectives(ranks, **SETTINGS)


def test_arrays_on_the_gpu_of_another_rank_are_refused(gpus: int) -> None:
    if gpus < 2:
        pytest.skip("one GPU; this needs 2")
    with Ranks("jax_plans.py", 2, '["on_first_gpu"]', **{**SETTINGS, "PEERWAY_PLAN_TIMEOUT": "5"}) as running:
        _, second = running.read_all()  # rank 0 is alone in the sum, until its time is over
        running.end()
    assert "its arrays on cuda:0, and the plan that it uses is on cuda:1" in second, second
    assert "jax.devices()[1]" in second


def test_plans_on_the_host_are_refused(gpus: int) -> None:
    with Ranks("jax_plans.py", 1, '["on_the_other_device"]', **SETTINGS) as running:
        assert "runs on a GPU, and the plan that it uses is on the host" in running.read(0)
        running.end()


@pytest.mark.parametrize("plan", ["exchange", "collective"])
def test_a_lost_rank_is_told(gpus: int, plan: str) -> None:
    if gpus < 2:
        pytest.skip("one GPU; this needs 2")
    expect_loss_is_told(plan, **SETTINGS)
