"""Compiles device code for AMD GPUs by clang, with neither ROCm nor a GPU.

amdgpu.h has what HIPRTC would add.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from launching import ROOT

ARCHITECTURES = {"gfx90a": 64, "gfx942": 64, "gfx1100": 32}  # MI200, MI300, RDNA 3; threads of a wavefront
CLANGS = ("clang++-19", "clang++-20", "clang++-21", "clang++")
OLDEST = 17  # that knows gfx942
STRICT = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
# As HIPRTC begins: with clang's mathematical functions, and without the C and C++ libraries.
WITH_MATHEMATICS = ("-D__HIPCC_RTC__", "-include", "__clang_hip_runtime_wrapper.h")


@functools.cache
def clang() -> str:
    """A clang that compiles for all of these; without one the test is skipped."""
    for name in CLANGS:
        if (path := shutil.which(name)) is None:
            continue
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"clang version (\d+)", printed)
        targets = subprocess.run([path, "--print-targets"], capture_output=True, text=True, check=True).stdout
        if version is not None and int(version[1]) >= OLDEST and "amdgcn" in targets:
            return path
    pytest.skip(f"no clang {OLDEST} or newer with the target amdgcn; apt-get install clang-19")


def compile_for(architecture: str, source: Path, *options: str) -> tuple[int, str, str]:
    """The exit code, the messages and the assembly."""
    command = [clang(), "-x", "hip", f"--offload-arch={architecture}", "--cuda-device-only", "-nogpulib"]
    command += ["-nogpuinc", "-O3", f"-I{ROOT / 'library/include'}", *options]
    command += ["-include", str(Path(__file__).with_name("amdgpu.h")), "-S", "-o", "-", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, done.stdout


def kernels_of(assembly: str) -> set[str]:
    """The names of the kernels that an assembly has."""
    return set(re.findall(r"^\s+\.amdhsa_kernel (\S+)$", assembly, re.MULTILINE))
