"""Finds the GPUs that the NVIDIA driver shows, without a toolkit and without occupying them."""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from dataclasses import dataclass

ASK_S = 60.0
_CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR


@dataclass(frozen=True, slots=True)
class Gpus:
    """The number of GPUs, and the architecture of the first ("sm_90"); `reason` says why there are none."""

    count: int
    architecture: str
    reason: str = ""


@functools.cache
def present() -> Gpus:
    """The GPUs, queried in a separate process, so that this one holds no GPU and remains able to fork."""
    command = [sys.executable, "-c", "from peerway_measure.bench.peers import gpus; gpus.tell()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ASK_S, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return Gpus(0, "", f"the NVIDIA driver did not answer within {ASK_S:.0f} s")
    count, _, rest = done.stdout.strip().partition(" ")
    if done.returncode or not count.isdigit():
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        return Gpus(0, "", f"the NVIDIA driver could not be asked: {lines[-1]}")
    return Gpus(int(count), rest if int(count) else "", "" if int(count) else rest)


def tell() -> None:
    """Print "2 sm_90", or "0" and the reason."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        print("0 no NVIDIA driver (libcuda.so.1) is installed")
        return
    count, device, values = ctypes.c_int(), ctypes.c_int(), [ctypes.c_int(), ctypes.c_int()]
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        print(f"0 the NVIDIA driver shows no GPU (cuInit gave {status})")
        return
    driver.cuDeviceGet(ctypes.byref(device), 0)
    for value, attribute in zip(values, _CAPABILITY, strict=True):
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    print(f"{count.value} sm_{values[0].value}{values[1].value}")


def shortage(wanted: int = 2) -> str:
    """Why `wanted` GPUs cannot be used; "" if they can."""
    gpus = present()
    if gpus.count >= wanted:
        return ""
    return gpus.reason or f"there is {gpus.count} GPU, and {wanted} are needed"
