"""GPU regions as arrays of other libraries, and what happens to these arrays when everything ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peerway

ROOT = Path(__file__).resolve().parents[3]


def test_nothing_that_has_ended_ends_the_process(
    kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = str(ROOT / "library" / "tests" / "system" / "programs" / "lifetimes.py")
    command = [sys.executable, "-X", "faulthandler", program, "cuda", "1"]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def shown_to_cupy(region: Any) -> list[Any]:
    cupy = pytest.importorskip("cupy")
    return [cupy.asarray(region), cupy.from_dlpack(region), region.array()]


def shown_to_torch(region: Any) -> list[Any]:
    torch = pytest.importorskip("torch")
    return [torch.from_dlpack(region), torch.as_tensor(region, device="cuda")]


def fill(array: Any, value: int) -> None:
    """Fill the array and wait: the copy of one element comes after the fill in the library's stream."""
    array[:] = value
    assert int(array[-1]) == value


@pytest.mark.parametrize("show", [shown_to_cupy, shown_to_torch])
def test_arrays_of_a_region_share_its_memory_and_keep_it(show: Callable[[Any], list[Any]]) -> None:
    with peerway.Context() as ctx:
        region = ctx.allocate("cuda", 1 << 20)
        arrays = show(region)
        fill(arrays[0], 3)
        host = np.zeros(1 << 20, "u1")
        kept = ctx.register(host)
        ctx.get(kept, ctx.import_key(region.key()))
        ctx.flush()
        assert (host == 3).all()
        with pytest.raises(peerway.InvalidArgument, match="NumPy cannot reach"):
            np.asarray(region)
        # A slice of elements, from the array of the other library itself.
        far = ctx.import_key(kept.key())
        fill(arrays[0], 7)
        ctx.put(far.view("u1", (1024, 1024))[:, 5], region.view("u1", (1024, 1024))[:, 5])
        ctx.put(far.view("u1")[:1024:2], arrays[0][:512])
        ctx.flush()
        assert (host.reshape(1024, 1024)[1:, 5] == 7).all()
        assert (host[:1024:2] == 7).all()
        assert (host[1:5:2] == 3).all()
    del ctx, region
    for array in arrays:
        array[:] = 9
    assert all(int(array.sum()) == 9 << 20 for array in arrays)
