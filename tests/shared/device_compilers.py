"""Compiles device code with NVIDIA's compiler and reads its messages, for tests that need no GPU.

Needs the wheels nvidia-cuda-nvrtc and nvidia-cuda-runtime (the `test` extra has them).
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import multiprocessing
import re
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from peerway_measure.bench.peers import places

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
UNOPTIMIZED = "--device-debug"  # takes a fifth of the time, and still reports all errors


def file_of_wheel(wheel: str, name: str) -> Path:
    """The installed file `name` of a wheel; if it is missing, the test fails with advice."""
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.fail(f"the wheel {wheel} is not installed; python -m pip install {wheel}")
    for file in files:
        if file.name.startswith(name) and ".alt." not in file.name:
            return Path(str(file.locate())).resolve()
    pytest.fail(f"the wheel {wheel} has no {name}; reinstall it")


def load_nvrtc() -> ctypes.CDLL:
    library = file_of_wheel("nvidia-cuda-nvrtc", "libnvrtc.so.")
    # NVRTC 13.0 does not find its built-ins in its own folder.
    for builtins in library.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(library))


def expect_nvcc_compiles(source: Path, folder: Path, *options: str) -> None:
    """Compile a source with nvcc into `folder`; without nvcc the test is skipped."""
    root = places.cuda_root()
    if root is None:
        pytest.skip("nvcc is not here: pip install nvidia-cuda-nvcc, or set CUDA_HOME")
    command = [str(root / "bin" / "nvcc"), "-O3", "-arch=sm_90", *options, "-c", str(source)]
    done = subprocess.run(
        [*command, "-o", str(folder / "object.o")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def compile_with(nvrtc: ctypes.CDLL, source: Path, *options: str) -> tuple[int, str, bytes]:
    """Compile one source; returns the result code, the log, and the machine code (PTX for a virtual
    architecture).

    If there is an error, the log begins with it.
    """
    program = ctypes.c_void_p()
    text, name = source.read_bytes(), source.name.encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None) == 0
    # On a machine with a driver, NVRTC would take code from its cache, and ptxas would print nothing.
    words = [option.encode() for option in (*options, "--no-cache")]
    flags = (ctypes.c_char_p * len(words))(*words)
    result = int(nvrtc.nvrtcCompileProgram(program, len(words), flags))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = b""
    if result == 0:
        ask_size, ask = nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN
        if any("=compute_" in option for option in options):
            ask_size, ask = nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX
        ask_size(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        assert ask(program, image) == 0
        cubin = image.raw
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if result == 0:
        return result, log.value.decode(), cubin
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return result, f"{nvrtc.nvrtcGetErrorString(result).decode()}: {log.value.decode()}", cubin


def compile_alone(source: Path, *options: str) -> tuple[int, str, bytes]:
    """Like compile_with(), but in a process of its own, as nvcc does it.

    What NVRTC has compiled before in a process can change how ptxas uses registers: a kernel that needs all
    of them then spills some.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        return alone.submit(_compile_first, source, *options).result()


def _compile_first(source: Path, *options: str) -> tuple[int, str, bytes]:
    return compile_with(load_nvrtc(), source, *options)


def in_local_memory(log: str) -> list[str]:
    """The amounts of slow local memory that ptxas reports for all kernels.

    It holds arrays that are indexed at run time, and values for which there was no register.
    """
    assert "bytes stack frame" in log, f"ptxas says of no stack frame, as with -v: {log}"
    return re.findall(r"[1-9]\d* bytes (?:stack frame|spill stores|spill loads)", log)
