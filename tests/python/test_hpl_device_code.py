"""The device code of apps/hpl without a GPU: the panel on the CPU; all compiled by NVRTC and nvcc."""

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
    source.write_text('#include "panel_cuda.cuh"\n#include "solve_cuda.cuh"\n')
    options = [f"-arch={architecture}", "--std=c++20", f"-I{APP}", "-Xptxas=-v"]
    result, log, cubin = compile_with(nvrtc, source, *options)
    assert result == 0, log
    assert b"factorize_leaf" in cubin
    assert b"solve_rows" in cubin
    assert set(re.findall(r"(\d+) bytes stack frame", log)) == {"0"}, log
    assert set(re.findall(r"(\d+) bytes spill stores", log)) == {"0"}, log


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels as a program for the CPU."""
    program = tmp_path_factory.mktemp("panel") / "panel"
    flags = [
        "-std=c++20",
        "-O1",
        "-pthread",
        f"-I{ROOT / 'tests' / 'unit' / 'fake_nvrtc'}",
        "-Wno-unknown-pragmas",
    ]
    subprocess.run(["c++", *flags, str(APP / "panel_cuda_test.cpp"), "-o", str(program)], check=True)
    return program


@pytest.mark.parametrize(
    ("rows", "columns", "leaf", "share", "twice"),
    [
        (200, 32, 32, 64, None),  # one leaf
        (777, 96, 32, 256, None),
        (300, 70, 32, 128, None),  # the last one is narrow
        (64, 64, 32, 64, None),  # all rows are at the top
        (200, 150, 64, 100, None),
        (300, 64, 16, 40, None),  # many blocks
        (1, 1, 32, 64, None),
        (200, 64, 32, 64, 5),  # a column twice: singular
    ],
)
def test_the_panel_is_that_of_a_plain_loop(
    on_cpu: Path, rows: int, columns: int, leaf: int, share: int, twice: int | None
) -> None:
    words = [str(number) for number in (rows, columns, leaf, share, twice) if number is not None]
    done = subprocess.run([str(on_cpu), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"expected {0 if twice is None else twice + 1}" in done.stdout


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
