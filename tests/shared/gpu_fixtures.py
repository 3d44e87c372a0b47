"""Fixtures of the tests on GPUs. Without a GPU these tests are skipped, with the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import ROOT, compile_double, library_folder

PROGRAMS = ROOT / "library" / "tests" / "gpu" / "programs"

Ranks = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture(scope="session")
def gpus() -> int:
    """The number of GPUs that this process sees, at least one."""
    from peerway import _core

    count = sum(name.startswith("cuda") for name, _ in _core.devices())
    if count == 0:
        pytest.skip(f"no GPU: {_core.why_none('cuda')}")
    return count


@pytest.fixture(autouse=True)
def on_a_gpu(request: pytest.FixtureRequest) -> None:
    """Skip the tests in folders named `gpu` if there is no GPU."""
    if request.path.parent.name == "gpu":
        request.getfixturevalue("gpus")


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled kernels, shared by all tests."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="session")
def hip_over_cuda(gpus: int, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings that make the NVIDIA GPUs devices of HIP, and of nothing else."""
    import pynvml
    from device_compilers import file_of_wheel

    pynvml.nvmlInit()
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(pynvml.nvmlDeviceGetHandleByIndex(0))
    folder = tmp_path_factory.mktemp("hip")
    return {
        "PEERWAY_HIP_LIBRARY": str(compile_double("fake_hip", folder)),
        "PEERWAY_HIPRTC_LIBRARY": str(compile_double("fake_hiprtc", folder)),
        "PEERWAY_CUDA_LIBRARY": str(folder / "no_cuda.so"),
        "PEERWAY_CACHE": str(folder / "cache"),
        "FAKE_HIP_OVER": "libcuda.so.1",
        "FAKE_HIPRTC_OVER": str(file_of_wheel("nvidia-cuda-nvrtc", "libnvrtc.so.")),
        "FAKE_HIPRTC_ARCH": f"sm_{major}{minor}",
    }


@pytest.fixture(scope="session")
def amd(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The settings of ranks on AMD GPUs; without one the tests are skipped, with the reason."""
    from peerway import _core

    if not any(name.startswith("hip") for name, _ in _core.devices()):
        pytest.skip(f"no AMD GPU: {_core.why_none('hip')}")
    return {"PEERWAY_CACHE": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture
def two_ranks(kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]) -> Ranks:
    """Run a program of the library's GPU tests as two ranks; returns exit code, lines of JSON and errors."""

    def run(program: str, *arguments: str, **settings: str) -> tuple[int, list[dict[str, Any]], str]:
        command = ["peerway", "run", "-n", "2", "--grace", "60", "--"]
        command += [sys.executable, str(PROGRAMS / program), *arguments]
        done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels), **settings})
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return run


def compiled_by_nvcc(source: Path, folder: Path) -> Path:
    """The program of a source file, compiled for this machine's GPU. Skips the test if there is no nvcc."""
    from peerway_measure.bench.peers import gpus as present_gpus
    from peerway_measure.bench.peers import places

    toolkit = places.cuda_root()
    if toolkit is None:
        pytest.skip("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    library = library_folder()
    program = folder / source.stem
    command = [str(toolkit / "bin" / "nvcc"), f"-arch={present_gpus.present().architecture}", "-std=c++20"]
    command += ["-O2", "-lineinfo", f"-I{ROOT / 'library' / 'include'}", str(source)]
    command += ["-o", str(program), f"-L{library}", "-lpeerway", "-Xlinker", f"-rpath={library}"]
    command += [*places.nvcc_flags(toolkit), "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"{' '.join(command)}\n{built.stderr}{built.stdout}"
    return program


@pytest.fixture(scope="session")
def plan_check(gpus: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/plan_check, compiled by nvcc for this machine's GPU."""
    return compiled_by_nvcc(PROGRAMS / "plan_check" / "plan_check.cu", tmp_path_factory.mktemp("plan_check"))


@pytest.fixture(scope="session")
def all_reduce_check(gpus: int, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/all_reduce_check, compiled by nvcc for this machine's GPU."""
    return compiled_by_nvcc(PROGRAMS / "all_reduce_check.cu", tmp_path_factory.mktemp("all_reduce_check"))
