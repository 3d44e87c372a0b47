"""Keeps a number of blocks of a GPU busy, and an amount of its memory, until it is killed.

gpu_load.py ORDINAL BLOCKS MEBIBYTES

It prints a line once this is so. BLOCKS is 0 to only hold memory, or "all" for two blocks of 1,024 threads on
each SM. It uses only the driver, so it needs no package.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time

KERNEL_NS = 20_000_000
SPIN = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 nanoseconds)
{
    .reg .pred more;
    .reg .u64 begin, now, limit;
    ld.param.u64 limit, [nanoseconds];
    mov.u64 begin, %globaltimer;
again:
    mov.u64 now, %globaltimer;
    sub.u64 now, now, begin;
    setp.lt.u64 more, now, limit;
    @more bra again;
    ret;
}
\0"""
SM_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
THREADS = 1024

driver = ctypes.CDLL(os.environ.get("PEERWAY_CUDA_LIBRARY") or "libcuda.so.1")


def call(name: str, *arguments: object) -> None:
    if (result := getattr(driver, name)(*arguments)) != 0:
        raise SystemExit(f"{name} gave {result}")


def spinning() -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(module), SPIN)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"spin")
    return function


def launch(function: ctypes.c_void_p, blocks: int) -> None:
    limit = ctypes.c_uint64(KERNEL_NS)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(limit))
    shape = [ctypes.c_uint(each) for each in (blocks, 1, 1, THREADS, 1, 1, 0)]
    call("cuLaunchKernel", function, *shape, None, arguments, None)


def main(ordinal: int, wanted: str, mebibytes: int) -> None:
    device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    memory, done = ctypes.c_uint64(), [ctypes.c_void_p(), ctypes.c_void_p()]
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), ordinal)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxPushCurrent_v2", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(mebibytes << 20))
    call("cuDeviceGetAttribute", ctypes.byref(count), SM_COUNT, device)
    blocks = 2 * count.value if wanted == "all" else int(wanted)
    if not blocks:
        print(flush=True)
        time.sleep(3600)
        return
    spin = spinning()
    for event in done:
        call("cuEventCreate", ctypes.byref(event), 0)
        launch(spin, blocks)
        call("cuEventRecord", event, None)
    call("cuEventSynchronize", done[0])
    print(flush=True)
    while True:  # one kernel runs and one waits, so the GPU is never idle
        for event in done:
            call("cuEventSynchronize", event)
            launch(spin, blocks)
            call("cuEventRecord", event, None)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
