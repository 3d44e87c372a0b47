"""What array() gives for memory of a GPU, with a double of CuPy and without CuPy; no GPU is needed."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from peerway import InvalidArgument
from peerway._arguments.arrays import CudaView, array_over

MEMORY = object()


def array_of(dtype: str = "f4", shape: tuple[int, ...] = (2, 3), device: str = "cuda:1") -> Any:
    return array_over(MEMORY, 4096, device, np.dtype(dtype), shape)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> list[CudaView]:
    """A double of CuPy: the views that it was asked to show."""
    shown: list[CudaView] = []

    def asarray(view: CudaView) -> str:
        shown.append(view)
        return "a CuPy array"

    module = types.ModuleType("cupy")
    module.asarray = asarray  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)
    return shown


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)


def test_cupy_shows_memory_of_a_gpu_with_its_type_and_shape(cupy: list[CudaView]) -> None:
    assert array_of() == "a CuPy array"
    interface = cupy[0].__cuda_array_interface__
    assert (interface["typestr"], interface["shape"], interface["data"]) == ("<f4", (2, 3), (4096, False))


@pytest.mark.parametrize("dtype", ["V16", ">f4", "S3", "i4,f4"])
def test_types_that_cupy_lacks_stay_views(cupy: list[CudaView], dtype: str) -> None:
    assert isinstance(array_of(dtype), CudaView)
    assert cupy == []


@pytest.mark.usefixtures("no_cupy")
def test_without_cupy_the_view_says_how_to_index_it() -> None:
    view = array_of()
    assert len(view) == 2
    assert repr(view) == "<array of (2, 3) float32 in memory of cuda:1>"
    for index in (lambda: view[0], lambda: view.__setitem__(0, 1), lambda: list(view)):
        with pytest.raises(InvalidArgument, match=r"not indexed from the host.*pip install cupy"):
            index()
    with pytest.raises(InvalidArgument, match="cannot be a NumPy array"):
        np.asarray(view)


def test_a_view_of_a_type_that_cupy_lacks_says_so(cupy: list[CudaView]) -> None:
    with pytest.raises(InvalidArgument, match="CuPy has no type"):
        array_of("V16")[0]
    assert cupy == []
