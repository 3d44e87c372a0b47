"""What array() returns for GPU memory, with and without doubles of CuPy and PyTorch; no GPU is needed."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest

from peerway import InvalidArgument
from peerway._arguments.arrays import CudaView, Memory, array_over

KEEP = object()


def array_of(dtype: str = "f4", shape: tuple[int, ...] = (2, 3), device: str = "cuda:1") -> Any:
    return array_over(Memory(KEEP, 4096, device), np.dtype(dtype), shape)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double of CuPy, whose array says from what it was made."""
    module = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        UnownedMemory=lambda address, size, owner, index: (address, size, type(owner), index),
        MemoryPointer=lambda memory, offset: (*memory, offset),
    )
    module.ndarray = lambda shape, dtype, pointer: (shape, str(dtype), *pointer)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A double of PyTorch (without CuPy), which has no unsigned 2-byte type."""

    def as_tensor(view: CudaView, device: str) -> tuple[str, tuple[int, ...], str]:
        if str(view.dtype) == "uint16":
            raise TypeError("no such type")
        return str(view.dtype), view.shape, device

    module = types.ModuleType("torch")
    module.as_tensor = as_tensor  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", module)


@pytest.fixture
def neither(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("cupy", "torch"):
        monkeypatch.setitem(sys.modules, library, None)


@pytest.mark.usefixtures("cupy")
def test_cupy_gets_the_memory_of_the_gpu_that_has_it() -> None:
    assert array_of() == ((2, 3), "float32", 4096, 24, CudaView, 1, 0)


@pytest.mark.usefixtures("torch")
def test_without_cupy_it_is_a_tensor_of_that_gpu() -> None:
    assert array_of() == ("float32", (2, 3), "cuda:1")
    assert isinstance(array_of("u2"), CudaView), "a type that PyTorch lacks"


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("dtype", ["V16", ">f4", "S3", "i4,f4"])
def test_types_that_no_library_has_stay_views(dtype: str) -> None:
    assert isinstance(array_of(dtype), CudaView)


@pytest.mark.usefixtures("neither")
def test_without_either_the_view_says_how_to_index_it() -> None:
    view = array_of()
    assert len(view) == 2
    assert repr(view) == "<array of (2, 3) float32 in memory of cuda:1>"
    for index in (lambda: view[0], lambda: view.__setitem__(0, 1), lambda: list(view)):
        with pytest.raises(InvalidArgument, match=r"cannot be indexed from the host.*pip install cupy"):
            index()
    with pytest.raises(InvalidArgument, match="cannot be a NumPy array"):
        np.asarray(view)


@pytest.mark.usefixtures("cupy")
def test_a_view_of_a_type_that_no_library_has_says_so() -> None:
    with pytest.raises(InvalidArgument, match="have no type"):
        array_of("V16")[0]


@pytest.mark.usefixtures("neither")
@pytest.mark.parametrize(("device", "dlpack"), [("cuda:1", (2, 1)), ("hip:3", (10, 3))])
def test_dlpack_names_the_kind_of_the_gpu(device: str, dlpack: tuple[int, int]) -> None:
    """kDLCUDA and kDLROCM of dlpack.h."""
    view = array_over(Memory(object(), 4096, device), np.dtype("f4"), (2, 3))
    assert view.__dlpack_device__() == dlpack
    assert repr(view) == f"<array of (2, 3) float32 in memory of {device}>"
