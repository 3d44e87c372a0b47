"""Compiles the pack kernels to a cubin for the GPU of this host, with nvcc if it is installed, otherwise with
NVRTC.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from pathlib import Path

from peerway_measure.bench.peers import places
from peerway_measure.bench.peers.build import PROGRAMS, BuildError, build, cache_folder


def pack_cubin(architecture: str) -> Path:
    """Compile pack.cu for an architecture such as "sm_90". Raises BuildError if there is no compiler."""
    root = places.cuda_root()
    if root:
        nvcc = [str(root / "bin" / "nvcc"), "-std=c++17", "-cubin", f"-arch={architecture}"]
        return build("pack.cu", nvcc, [], "")
    return _by_nvrtc(architecture)


def _by_nvrtc(architecture: str) -> Path:
    nvrtc, name = _load_nvrtc()
    source = (PROGRAMS / "pack.cu").read_bytes()
    headers = (PROGRAMS / "faces.h").read_bytes()
    key = hashlib.sha256(source + headers + name.encode() + architecture.encode()).hexdigest()[:16]
    built = cache_folder() / f"pack-nvrtc-{key}"
    if built.is_file():
        return built
    image = _compile(nvrtc, source, architecture)
    try:
        built.parent.mkdir(parents=True, exist_ok=True)
        draft = built.with_suffix(f".{os.getpid()}")
        draft.write_bytes(image)
        draft.replace(built)
    except OSError as error:
        raise BuildError(f"cannot keep compiled kernels in {built.parent}: {error.strerror}") from None
    return built


def _compile(nvrtc: ctypes.CDLL, source: bytes, architecture: str) -> bytes:
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    option = (ctypes.c_char_p * 3)(
        b"--std=c++17", f"--gpu-architecture={architecture}".encode(), f"--include-path={PROGRAMS}".encode()
    )
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"pack.cu", 0, None, None):
        raise BuildError("NVRTC: nvrtcCreateProgram failed")
    try:
        if nvrtc.nvrtcCompileProgram(program, len(option), option):
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            lines = log.value.decode(errors="replace").splitlines() or [f"no code for {architecture}"]
            raise BuildError(f"NVRTC: {lines[0]}")
        nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetCUBIN(program, image)
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _load_nvrtc() -> tuple[ctypes.CDLL, str]:
    folders = [f / "nvidia" / name / "lib" for f in places.site_folders() for name in ("cu13", "cuda_nvrtc")]
    folders += [Path("/usr/local/cuda/lib64")]
    for folder in folders:
        for file in sorted(folder.glob("libnvrtc.so.[0-9]*")):
            if "alt" in file.name:
                continue
            for part in sorted(folder.glob("libnvrtc-builtins.so.*[0-9]")):
                ctypes.CDLL(str(part))  # loaded first, because NVRTC 13.0 looks for it only by name
            return ctypes.CDLL(str(file)), str(file)
    raise BuildError("neither nvcc nor NVRTC is installed; pip install nvidia-cuda-nvrtc")
