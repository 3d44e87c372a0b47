"""The HIP device between processes, with no AMD GPU: on doubles of HIP and HIPRTC, whose "GPU memory" is
shared memory and whose kernels the CPU runs. What holds on any kind of device holds on this one."""

from __future__ import annotations

import pytest
from device_checks import check_death, check_mapped, check_plans_and_halos, check_transfers
from ranks import Ranks

Settings = dict[str, str]


@pytest.mark.long  # the two below move data, too, and the same code does it for the fake GPU of CUDA
@pytest.mark.parametrize("path", ["peer/store", "peer/copy", "staged"])
def test_transfers(path: str, hip_settings: Settings) -> None:
    check_transfers("hip", path, hip_settings)


def test_the_cpu_loads_and_stores_where_the_bar_is_large(hip_settings: Settings) -> None:
    check_mapped("hip", hip_settings)


def test_plans_and_halos(hip_settings: Settings) -> None:
    check_plans_and_halos("hip", hip_settings)


def test_the_neighbour_of_a_killed_rank_is_told(hip_settings: Settings) -> None:
    check_death("hip", hip_settings)


def test_messages_never_go_by_lines(hip_settings: Settings) -> None:
    """AMD promises that 8 bytes arrive as a whole, but nothing of 128."""
    sizes = [64, 8192, 65536]
    requests = [f"methods,{size},right" for size in sizes]
    with Ranks("other_device.py", 2, "hip", *requests, **hip_settings) as ranks:
        methods = [ranks.read_all() for _ in sizes]
        ranks.end()
    assert methods[0] == [["plan/packets"]] * 2
    assert {name for both in methods for names in both for name in names} <= {"plan/packets", "plan/straight"}


def test_capsules_of_rocm_are_memory_of_hip(hip_settings: Settings) -> None:
    with Ranks("other_device.py", 1, "hip", "capsule", **hip_settings) as ranks:
        assert ranks.read(0) == ["hip", "0", "4096"]
        ranks.end()


def test_without_rocm_there_is_no_device_and_the_reason_is_said(hip_settings: Settings) -> None:
    settings = {**hip_settings, "PEERWAY_HIP_LIBRARY": "/nowhere/libamdhip64.so"}
    with Ranks("other_device.py", 1, "hip", "halo,host", **settings) as ranks:
        ranks.processes[0].wait()
        assert "/nowhere/libamdhip64.so, which the setting hip_library names" in ranks.errors(0)
