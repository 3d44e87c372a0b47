"""The device code of apps/hpl, compiled without a GPU: the panel's kernels by NVRTC, all by nvcc."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from test_device_code import ROOT, compile_with, nvrtc

from peerway.bench.peers import places

__all__ = ["nvrtc"]  # the fixture

APP = ROOT / "apps" / "hpl"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_panel_keeps_nothing_on_its_stack(nvrtc: ctypes.CDLL, tmp_path: Path, architecture: str) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text('#include "panel_cuda.cuh"\n')
    options = [f"-arch={architecture}", "--std=c++20", f"-I{APP}", "-Xptxas=-v"]
    result, log, cubin = compile_with(nvrtc, source, *options)
    assert result == 0, log
    assert b"factorize_leaf" in cubin
    assert set(re.findall(r"(\d+) bytes stack frame", log)) == {"0"}, log
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}, log


@pytest.mark.parametrize("source", sorted(APP.glob("*.cu")), ids=lambda path: path.name)
def test_nvcc_compiles(source: Path, tmp_path: Path) -> None:
    root = places.cuda_root()
    if root is None:
        pytest.skip("nvcc is not here: pip install nvidia-cuda-nvcc, or set CUDA_HOME")
    command = [str(root / "bin" / "nvcc"), "-std=c++20", "-O3", "-arch=sm_90", "-c", str(source)]
    done = subprocess.run(
        [*command, "-o", str(tmp_path / "object.o")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
