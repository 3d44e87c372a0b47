"""Collects facts about where a record was made: host, CPU or GPU, driver, version, command."""

from __future__ import annotations

import re
import shlex
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from peerway import _core
from peerway_measure.memories import GPU_KINDS, is_gpu, kind_of

NVIDIA_VERSION = Path("/proc/driver/nvidia/version")
AMD_VERSION = Path("/sys/module/amdgpu/version")
ROCM_VERSION = Path("/opt/rocm/.info/version")


def known() -> dict[str, str]:
    """The fields of a record that are the same for all results of one run on host memory."""
    return {
        "host": socket.gethostname(),
        "device": device_name("host"),
        "driver": "",
        "version": _core.version(),
        "command": command(),
    }


def command() -> str:
    """The command line of this process, as a person would type it."""
    program = Path(sys.argv[0]).name
    return shlex.join(["peerway" if program in ("peerway", "__main__.py") else program, *sys.argv[1:]])


def recorded_command(words: Iterable[str], names: Mapping[Path, str]) -> str:
    """A command as records keep it. These paths exist only on this machine, so only their file names are
    kept.
    """
    return shlex.join(_renamed(word, names) for word in words)


def _renamed(word: str, names: Mapping[Path, str]) -> str:
    option, equals, value = word.partition("=")
    if option.startswith("-") and equals:
        return f"{option}={names.get(Path(value), value)}"
    return names.get(Path(word), word)


def device_name(device: str) -> str:
    """The hardware behind "host" or "cuda:0"; "" for a device that does not exist here."""
    return dict(_core.devices()).get(device, "")


def gpu_kinds() -> list[str]:
    """The kinds of GPUs that can be used here."""
    here = {kind_of(name) for name, _ in _core.devices() if is_gpu(name)}
    return [kind for kind in GPU_KINDS if kind in here]


def memory_pairs() -> list[tuple[str, str]]:
    """Every pair of kinds of memory on this host, source first.

    Memory that Peerway did not allocate (malloc's, NumPy's) is a kind of its own: peers can read and write
    it, but cannot map it.
    """
    pairs = [("host", "host")]
    for kind in gpu_kinds():
        pairs += [("host", kind), (kind, "host"), (kind, kind)]
    return [*pairs, ("host:malloc", "host:malloc")]


def gpu_driver(memory: str) -> str:
    """The version of the driver of the GPU that has this memory; "" for the host's, or if nothing tells."""
    if not is_gpu(memory):
        return ""
    return cuda_driver() if kind_of(memory) == "cuda" else amd_driver()


def amd_driver() -> str:
    """The version of amdgpu, where it is not the kernel's own, and of ROCm; "" without either."""
    named = [("amdgpu", AMD_VERSION), ("ROCm", ROCM_VERSION)]
    return ", ".join(f"{name} {file.read_text().strip()}" for name, file in named if file.exists())


def cuda_driver() -> str:
    """The NVIDIA kernel driver's version; "" without one."""
    try:
        # "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build ..."
        match = re.search(r"Module\b.*?\s(\d+\.\d[\d.]*)", NVIDIA_VERSION.read_text())
    except OSError:
        return ""
    return match[1] if match else ""
