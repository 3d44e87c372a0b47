"""Prints what libcuda says about this node's GPUs, as one line of JSON.

A program of its own, because cuInit can block. Only queries: no context is made and no GPU memory is used.
Attribute numbers are those of cuda.h 13.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

ATTRIBUTES = {
    "integrated": 18,
    "copy_engines": 40,
    "host_atomics": 86,
    "pageable_access": 88,
    "vmm": 102,
    "posix_fd": 103,
    "rdma_vmm": 110,
    "memory_pools": 115,
    "rdma": 116,
    "rdma_flush": 117,
    "rdma_ordering": 118,
    "pool_handles": 119,
    "stream_memory_ops": 122,
    "stream_wait_nor": 123,
    "dma_buf": 124,
    "ipc_events": 125,
    "fabric": 128,
    "multicast": 132,
    "dma_buf_mmap": 152,
}
NUMBERS = ("copy_engines", "rdma_flush", "rdma_ordering", "pool_handles")
MAJOR, MINOR = 75, 76
PAIR_RANK, PAIR_ATOMICS = 1, 3


class Cuda:
    """The driver library, called with plain integers."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: Any) -> int:
        """Call a function; -1 if this driver does not have it."""
        function = getattr(self.library, name, None)
        return int(function(*arguments)) if function else -1

    def reason(self, code: int) -> str:
        """An error code as text."""
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self.call("cuGetErrorName", code, ctypes.byref(name))
        self.call("cuGetErrorString", code, ctypes.byref(text))
        return f"{(name.value or b'error %d' % code).decode()}: {(text.value or b'').decode()}"

    def number(self, name: str, *arguments: Any) -> int | None:
        """Query an int; None if the driver refuses."""
        value = ctypes.c_int()
        return value.value if self.call(name, ctypes.byref(value), *arguments) == 0 else None

    def attribute(self, name: str, number: int, device: int) -> int | bool | None:
        """Query a device attribute, as bool if it is a yes or no."""
        value = self.number("cuDeviceGetAttribute", number, device)
        return value if value is None or name in NUMBERS else bool(value)


def device(cuda: Cuda, handle: int) -> dict[str, Any]:
    """The facts about one device."""
    bus, uuid = ctypes.create_string_buffer(32), ctypes.create_string_buffer(16)
    name = ctypes.create_string_buffer(128)
    total = ctypes.c_size_t()
    cuda.call("cuDeviceGetPCIBusId", bus, 32, handle)
    cuda.call("cuDeviceGetName", name, 128, handle)
    if cuda.call("cuDeviceGetUuid_v2", uuid, handle):
        cuda.call("cuDeviceGetUuid", uuid, handle)
    cuda.call("cuDeviceTotalMem_v2", ctypes.byref(total), handle)
    h = uuid.raw.hex()
    major, minor = (cuda.number("cuDeviceGetAttribute", n, handle) for n in (MAJOR, MINOR))
    facts: dict[str, Any] = {n: cuda.attribute(n, number, handle) for n, number in ATTRIBUTES.items()}
    facts["compute_capability"] = f"{major}.{minor}" if major is not None else ""
    return {
        "bus_id": bus.value.decode(),
        "name": name.value.decode(),
        "uuid": f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}",
        "memory": total.value,
        "cuda": facts,
    }


def pair(cuda: Cuda, first: int, second: int) -> dict[str, Any]:
    """What one device can do with another's memory."""
    access = cuda.number("cuDeviceCanAccessPeer", first, second)
    atomics = cuda.number("cuDeviceGetP2PAttribute", PAIR_ATOMICS, first, second)
    return {
        "access": None if access is None else bool(access),
        "atomics": None if atomics is None else bool(atomics),
        "performance_rank": cuda.number("cuDeviceGetP2PAttribute", PAIR_RANK, first, second),
    }


def answer() -> dict[str, Any]:
    """All facts."""
    try:
        cuda = Cuda()
    except OSError as error:
        return {"error": str(error)}
    version = cuda.number("cuDriverGetVersion")
    result: dict[str, Any] = {"version": version, "devices": [], "pairs": []}
    code = cuda.call("cuInit", 0)
    if code:
        return {**result, "error": cuda.reason(code)}
    count = cuda.number("cuDeviceGetCount") or 0
    handles = [cuda.number("cuDeviceGet", i) for i in range(count)]
    known = [h for h in handles if h is not None]
    result["devices"] = [device(cuda, h) for h in known]
    result["pairs"] = [
        {"first": i, "second": j, **pair(cuda, a, b)}
        for i, a in enumerate(known)
        for j, b in enumerate(known)
        if i != j
    ]
    return result


if __name__ == "__main__":
    json.dump(answer(), sys.stdout)
