"""Acc directives on an AMD GPU that is simulated: the doubles of HIP and HIPRTC over those of CUDA and NVRTC.
The kernels are compiled for the CPU. xacc/tests/gpu/test_xacc_hip.py has the same doubles over an NVIDIA GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import test_xacc_acc
from xacc_compiled import (
    LOOPS,
    PEERWAY,
    PROGRAMS,
    SAMPLES,
    compiled,
    run,
    shared_program_of_all_directives,
)

Settings = dict[str, str]
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def amd_gpu(hip_settings: Settings) -> Settings:
    """The settings with which acc directives use the AMD GPU, and no other."""
    return {**hip_settings, "PEERWAY_ACC": "gpu"}


def outcome(nodes: int, program: Path, **settings: str) -> tuple[int, str, str]:
    command = [PEERWAY, "run", "-n", nodes, "--grace", 60, "--", program]
    done = run(*command, folder=program.parent, NODES=str(nodes), **settings)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=LONG) for ranks in (1, 4))])
def test_data_kernels_reductions_queues_and_reflects(ranks: int, tmp_path: Path, amd_gpu: Settings) -> None:
    program = test_xacc_acc.compiled(tmp_path, "acc", "shapes")
    done = test_xacc_acc.run(ranks, program, **amd_gpu)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{145 * ranks} checks, 0 failed\n", "")


@pytest.mark.long
def test_each_data_kind_operator_type_and_reflect(tmp_path: Path, amd_gpu: Settings) -> None:
    parts = ("gpu", "gpu_data", "gpu_kernels", "gpu_launches", "reflect", "shapes")
    program = test_xacc_acc.compiled(tmp_path, *parts)
    assert test_xacc_acc.checks_of(test_xacc_acc.run(2, program, "1", **amd_gpu)) > 90000


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=LONG), 2])
def test_every_directive_gives_what_a_sequential_program_has(
    shared_folder: Path, amd_gpu: Settings, nodes: int
) -> None:
    program = shared_program_of_all_directives(shared_folder)
    assert outcome(nodes, program, **amd_gpu) == (0, f"{nodes} nodes, 0 wrong\n", "")


def test_values_that_stay_on_gpus_are_reduced(tmp_path: Path, amd_gpu: Settings) -> None:
    status, output, errors = outcome(2, compiled(tmp_path, SAMPLES / "reduction.c"), **amd_gpu)
    assert (status, errors) == (0, "")
    assert output.count('"right": true') == 2


def test_loops_stay_on_the_host_and_give_the_same_bits(tmp_path: Path, amd_gpu: Settings) -> None:
    """HIP has no graphs with conditional nodes: the host reads after each iteration whether it goes on."""
    program = compiled(tmp_path, "-O1", LOOPS)
    on_host = outcome(2, program, **amd_gpu, PEERWAY_ACC_LOOPS="host")
    assert (on_host[0], on_host[2]) == (0, "")
    assert outcome(2, program, **amd_gpu, PEERWAY_ACC_LOOPS="graph") == on_host


def test_a_repeated_sequence_is_a_graph_of_hip(tmp_path: Path, amd_gpu: Settings) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_sequences.c")
    assert outcome(2, program, **amd_gpu) == (0, "0 wrong\n", "")


def test_coarrays_between_gpus(tmp_path: Path, amd_gpu: Settings) -> None:
    program = compiled(tmp_path, PROGRAMS / "xacc_coarrays.c")
    assert outcome(2, program, **amd_gpu) == (0, "0 wrong\n", "")


DEVICES = """
#include <openacc.h>
#include <stdio.h>
int main(void) {
  int on_gpu[3] = {0};
#pragma acc parallel copy(on_gpu)
  {
    on_gpu[0] = acc_on_device(acc_device_radeon);
    on_gpu[1] = acc_on_device(acc_device_nvidia);
    on_gpu[2] = acc_on_device(acc_device_not_host);
  }
  printf("%d %d %d", acc_get_device_type() == acc_device_radeon, acc_get_num_devices(acc_device_radeon) > 0,
         acc_get_num_devices(acc_device_nvidia));
  printf(" %d %d\\n", acc_get_num_devices(acc_device_not_host) > 0, on_gpu[2]);
  return 0;
}
"""


def test_a_program_sees_devices_of_radeon(tmp_path: Path, amd_gpu: Settings) -> None:
    (tmp_path / "devices.c").write_text(DEVICES)
    assert outcome(1, compiled(tmp_path, "devices.c"), **amd_gpu) == (0, "1 1 0 1 1\n", "")


def test_a_kernel_that_does_not_compile_is_an_error_with_the_compilers_name(
    tmp_path: Path, amd_gpu: Settings
) -> None:
    program = test_xacc_acc.compiled(tmp_path, "acc", "shapes")
    done = test_xacc_acc.run(1, program, "kernel", **amd_gpu)
    assert done.returncode == 1
    assert "prog.c:5: error:" in done.stderr
    assert "fake_hiprtc" in done.stderr
    assert "nonsense" in done.stderr


def test_out_of_memory_names_the_gpu(tmp_path: Path, amd_gpu: Settings) -> None:
    program = test_xacc_acc.compiled(tmp_path, "acc", "shapes")
    done = test_xacc_acc.run(1, program, "memory", **amd_gpu)
    assert "hip:0 has no 17592186044416 bytes left for x" in done.stderr


def test_without_any_gpu_the_reasons_of_both_vendors_are_said(tmp_path: Path, amd_gpu: Settings) -> None:
    program = test_xacc_acc.compiled(tmp_path, "acc", "shapes")
    settings = {**amd_gpu, "PEERWAY_HIP_LIBRARY": "/nowhere/libamdhip64.so"}
    done = test_xacc_acc.run(1, program, **settings)
    assert done.returncode == 1
    assert "no_cuda.so" in done.stderr
    assert "/nowhere/libamdhip64.so, which the setting hip_library names" in done.stderr
