"""The HIP device on NVIDIA GPUs: the doubles of HIP and HIPRTC over NVIDIA's driver and NVRTC. The whole
device runs, with real streams, IPC and kernels; only what AMD's software and hardware do is not tested."""

from __future__ import annotations

import pytest
from device_checks import check_death, check_plans_and_halos, check_transfers

Settings = dict[str, str]


@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged"])
def test_transfers(path: str, hip_over_cuda: Settings) -> None:
    check_transfers("hip", path, hip_over_cuda)


def test_plans_and_halos(hip_over_cuda: Settings) -> None:
    check_plans_and_halos("hip", hip_over_cuda)


def test_the_neighbour_of_a_killed_rank_is_told(hip_over_cuda: Settings) -> None:
    check_death("hip", hip_over_cuda)
