"""The HIP device on NVIDIA GPUs: the doubles of HIP and HIPRTC over NVIDIA's driver and NVRTC. The whole
device runs, with real streams, IPC and kernels; only what AMD's software and hardware do is not tested."""

from __future__ import annotations

import pytest
from device_checks import check_death, check_plans_and_halos, check_transfers
from device_compilers import file_of_wheel
from launching import compile_double

Settings = dict[str, str]


@pytest.fixture(scope="module")
def hip_over_cuda(gpus: int, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings that make the NVIDIA GPUs devices of HIP, and of nothing else."""
    import pynvml

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


@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged"])
def test_transfers(path: str, hip_over_cuda: Settings) -> None:
    check_transfers("hip", path, hip_over_cuda)


def test_plans_and_halos(hip_over_cuda: Settings) -> None:
    check_plans_and_halos("hip", hip_over_cuda)


def test_the_neighbour_of_a_killed_rank_is_told(hip_over_cuda: Settings) -> None:
    check_death("hip", hip_over_cuda)
