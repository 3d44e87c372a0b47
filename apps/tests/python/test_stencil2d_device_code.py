"""The device code of apps/stencil2d, compiled without a GPU: the persistent kernel by NVRTC, all by nvcc."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_compilers import ARCHITECTURES, compile_alone, expect_nvcc_compiles, in_local_memory
from launching import ROOT

APP = ROOT / "apps" / "stencil2d"

KERNEL = """
#include "persistent.cuh"
struct Threads {
  static constexpr unsigned kWarp = 32;
  __device__ unsigned block() const { return blockIdx.x; }
  __device__ unsigned index() const { return threadIdx.x; }
  __device__ unsigned count() const { return blockDim.x; }
  __device__ bool any(bool yes) const { return __syncthreads_or(yes) != 0; }
  __device__ void sync_warp() const { __syncwarp(); }
  __device__ void pause() const {}
};
using Work = stencil::Persistent;
extern "C" __global__ void __launch_bounds__(1024, 1) kernel(const __grid_constant__ Work work) {
  extern __shared__ double shared[];
  const Threads threads;
  stencil::Worker<Threads>(work, threads, shared).run();
}
"""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_persistent_kernel_compiles(tmp_path: Path, architecture: str) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text(KERNEL)
    folders = [f"-I{APP}", f"-I{ROOT / 'library' / 'include'}"]
    options = [f"-arch={architecture}", "--std=c++17", *folders, "-Xptxas=-v"]
    result, log, cubin = compile_alone(source, *options)
    assert result == 0, log
    assert b"kernel" in cubin
    assert in_local_memory(log) == []


@pytest.mark.parametrize("source", sorted(APP.glob("*.cu")), ids=lambda path: path.name)
def test_nvcc_compiles(source: Path, tmp_path: Path) -> None:
    expect_nvcc_compiles(source, tmp_path, "-std=c++20", f"-I{ROOT / 'library' / 'include'}")
