"""The memory layout of other libraries' arrays, and which streams are accepted; needs no library and no
GPU.
"""

from __future__ import annotations

import array
import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from peerway import InvalidArgument
from peerway._arguments.array_layout import halo_layout_of, layout_of
from peerway._arguments.collectives import all_reduce
from peerway.stream import stream_handle


class OnlyDlpack:
    """An array of a library that supports DLPack only."""

    def __init__(self, of: np.ndarray[Any, Any]) -> None:
        self._of = of

    def __dlpack__(self, **_: Any) -> Any:
        return self._of.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._of.__dlpack_device__()


class OnlyVersionedDlpack(OnlyDlpack):
    """An array of a library that supports version 1 of DLPack, too."""

    def __dlpack__(self, **options: Any) -> Any:
        return self._of.__dlpack__(**options)


def cuda_array(**changes: object) -> SimpleNamespace:
    interface = {"data": (4096, False), "shape": (3, 5), "typestr": "<f4", "strides": None, "version": 3}
    return SimpleNamespace(__cuda_array_interface__={**interface, **changes}, shape=(3, 5))


def test_a_dense_array() -> None:
    u = np.zeros((3, 4, 5), "f4")
    layout = layout_of(u)
    assert (layout.address, layout.shape, layout.strides) == (u.ctypes.data, (3, 4, 5), (80, 20, 4))
    assert (layout.item, layout.kind, layout.extent_bytes) == (4, "<f4", 240)


def test_a_view_with_gaps() -> None:
    u = np.zeros((6, 10))[1:5, 2:9:2]
    layout = layout_of(u)
    assert (layout.address, layout.strides) == (u.ctypes.data, (80, 16))
    assert layout.extent_bytes == 3 * 80 + 3 * 16 + 8


def test_columns_first() -> None:
    assert layout_of(np.zeros((3, 4), order="F")).strides == (8, 24)


@pytest.mark.parametrize("dtype", ["V192", [("v", "f8", (24,))]])
def test_structs(dtype: Any) -> None:
    assert layout_of(np.zeros((3, 4), dtype)).item == 192


def test_an_array_without_elements() -> None:
    assert layout_of(np.zeros((0, 4))).extent_bytes == 0


def test_the_buffer_protocol() -> None:
    numbers = array.array("d", [1, 2, 3])
    layout = layout_of(numbers)
    assert (layout.address, layout.shape, layout.item) == (numbers.buffer_info()[0], (3,), 8)


def test_cuda_arrays() -> None:
    layout = layout_of(cuda_array())
    assert (layout.address, layout.strides, layout.item, layout.extent_bytes) == (4096, (20, 4), 4, 60)
    assert layout_of(cuda_array(strides=(40, 8))).extent_bytes == 2 * 40 + 4 * 8 + 4


def test_dlpack_alone() -> None:
    u = np.zeros((6, 10), "f4")[1:5, 2:9:2]
    layout = layout_of(OnlyDlpack(u))
    assert (layout.address, layout.shape, layout.strides, layout.item) == (u.ctypes.data, (4, 4), (40, 8), 4)


def test_dlpack_says_which_arrays_may_not_be_written() -> None:
    u = np.arange(12.0).reshape(3, 4)
    assert not layout_of(OnlyVersionedDlpack(u)).read_only
    u.flags.writeable = False
    layout = layout_of(OnlyVersionedDlpack(u))
    assert (layout.address, layout.shape, layout.read_only) == (u.ctypes.data, (3, 4), True)


class _Tensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h, with its members in one struct."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class OnGpu:
    """An array of `shape` floats of a library that supports DLPack only, in memory of a GPU, at 4096."""

    def __init__(self, device_type: int, shape: tuple[int, ...]) -> None:
        self.freed = 0
        strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
        self._numbers = [(ctypes.c_int64 * len(shape))(*numbers) for numbers in (shape, strides)]
        self._deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._free)
        place = (4096, device_type, 1, len(shape), 2, 32, 1)  # 2: kDLFloat
        pointers = [ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64)) for numbers in self._numbers]
        self._tensor = _Tensor(*place, *pointers, 0, None, self._deleter)
        self._device_type = device_type

    def _free(self, _: object) -> None:
        self.freed += 1

    def __dlpack__(self, **_: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self._tensor), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device_type, 1


ROCM, CUDA = 10, 2  # kDLROCM, kDLCUDA


@pytest.mark.parametrize("device_type", [ROCM, CUDA])
def test_capsules_of_gpus_are_taken_and_given_back(device_type: int) -> None:
    """PyTorch, CuPy and JAX on ROCm make capsules of kDLROCM."""
    tensor = OnGpu(device_type, (3, 5))
    layout = layout_of(tensor)
    assert (layout.address, layout.shape, layout.strides, layout.item) == (4096, (3, 5), (20, 4), 4)
    assert tensor.freed == 1


@pytest.mark.parametrize(("device_type", "kind"), [(ROCM, "hip"), (CUDA, "cuda"), (1, "host")])
def test_an_array_without_elements_names_its_kind_of_device(device_type: int, kind: str) -> None:
    empty = OnGpu(device_type, (0,))
    empty.dtype = "float32"  # type: ignore[attr-defined]
    assert all_reduce(empty, None, "sum", "group").device == kind


@pytest.mark.parametrize(
    ("dtype", "kind"), [("float64", "<f8"), ("torch.float32", "<f4"), ("bfloat16", "bfloat16")]
)
def test_types_have_the_same_name_by_every_protocol(dtype: str, kind: str) -> None:
    u = OnlyDlpack(np.zeros(3, "f8"))
    u.dtype = dtype  # type: ignore[attr-defined]
    assert layout_of(u).kind == kind


def test_a_protocol_that_raises_gives_way_to_dlpack() -> None:
    class Unnamed(OnlyDlpack):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise TypeError("no name for this type")

    assert layout_of(Unnamed(np.zeros(3))).shape == (3,)


def frozen() -> np.ndarray[Any, Any]:
    u = np.zeros(3)
    u.flags.writeable = False
    return u


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (np.zeros((4, 5))[::-1], r"strides of \(-40, 8\) bytes; strides must be positive"),
        (np.zeros((4, 5))[:, ::-1], r"strides of \(40, -8\) bytes"),
        (np.broadcast_to(np.zeros(5), (4, 5)).view(), "read-only"),
        (np.lib.stride_tricks.as_strided(np.zeros(5), (4, 5), (0, 8)), r"\(0, 8\) bytes; strides must be"),
        (np.zeros((3, 4, 5)).transpose(1, 0, 2), r"\(40, 160, 8\) bytes; strides must grow"),
        (OnlyDlpack(np.zeros((4, 5))[::-1]), r"strides of \(-40, 8\) bytes"),
        (frozen(), "read-only"),
        (cuda_array(data=(4096, True)), "read-only"),
        (bytes(8), "read-only"),
        (object(), "exposes no memory"),
        ([1.0, 2.0], "exposes no memory"),
    ],
)
def test_what_cannot_hold_a_halo_is_refused(given: object, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        halo_layout_of(given)


def test_python_objects_are_refused() -> None:
    for holds in (np.array([object()]), np.zeros(3, [("a", "f8"), ("b", "O")])):
        with pytest.raises(InvalidArgument, match="Python objects"):
            layout_of(holds)


def test_a_buffer_is_held_while_its_layout_is() -> None:
    text = bytearray(8)
    layout = layout_of(text)
    with pytest.raises(BufferError):
        text.extend(b"more")
    del layout
    text.extend(b"more")


class Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 77


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (Protocol(), ("cuda", 1, 77)),
        (SimpleNamespace(__cuda_stream__=(0, 78)), ("cuda", 1, 78)),
        (SimpleNamespace(ptr=79, device_id=2), ("cuda", 2, 79)),  # CuPy
        (SimpleNamespace(ptr=79, device_id=-1), ("cuda", 1, 79)),
        (SimpleNamespace(cuda_stream=80, device_index=3), ("cuda", 3, 80)),  # PyTorch
        (81, ("cuda", 1, 81)),
        (0, ("cuda", 1, 0)),
    ],
)
def test_streams_of_other_libraries(stream: object, handle: tuple[str, int, int]) -> None:
    assert stream_handle(stream, "cuda:1") == handle


def test_the_stream_of_a_plan_on_an_amd_gpu_is_hips() -> None:
    """PyTorch and CuPy on ROCm name it as on CUDA."""
    assert stream_handle(SimpleNamespace(cuda_stream=80, device_index=3), "hip:1") == ("hip", 3, 80)
    assert stream_handle(81, "hip:1") == ("hip", 1, 81)


def test_a_stream_of_cuda_for_a_plan_of_the_host_keeps_its_kind() -> None:
    assert stream_handle(81, "host") == ("cuda", -1, 81)


@pytest.mark.parametrize("stream", [True, "cuda", 1.5])
def test_what_is_no_stream_is_refused(stream: object) -> None:
    with pytest.raises(InvalidArgument, match="is not a stream"):
        stream_handle(stream, "cuda:1")


@pytest.mark.parametrize(("name", "size"), [("bfloat16", 2), ("float8_e4m3fn", 1), ("float8_e5m2", 1)])
def test_arrays_of_types_that_ml_dtypes_adds(name: str, size: int) -> None:
    pytest.importorskip("ml_dtypes", reason="ml_dtypes comes with JAX")
    layout = layout_of(np.zeros((2, 3), name))
    assert (layout.kind, layout.item, layout.strides) == (name, size, (3 * size, size))
