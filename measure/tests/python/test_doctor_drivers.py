"""The doctor's child processes against made-up driver libraries, also ones that block, crash or mislead."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from peerway_measure.doctor.checks import examine
from peerway_measure.doctor.facts import CudaDevice, Facts
from peerway_measure.doctor.finding import Status
from peerway_measure.doctor.probes import gather
from peerway_measure.doctor.system import System

if TYPE_CHECKING:
    from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("g++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler for the made-up drivers")

# Two GPUs whose answers depend on their handle, so that a mix-up shows. INIT is the body of cuInit.
CUDA = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int cuInit(unsigned flags) { INIT; return 0; }
int cuDriverGetVersion(int *v) { *v = 13010; return 0; }
int cuGetErrorName(int e, const char **s) {
  *s = e == 802 ? "CUDA_ERROR_SYSTEM_NOT_READY" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int e, const char **s) { *s = "system not yet initialized"; return 0; }
int cuDeviceGetCount(int *n) { *n = 2; return 0; }
int cuDeviceGet(int *d, int i) { *d = i + 5; return 0; }
int cuDeviceGetName(char *s, int n, int d) { return snprintf(s, n, "GPU %d", d) < 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { return snprintf(s, n, "0000:%02X:00.0", d) < 0; }
int cuDeviceGetUuid_v2(void *u, int d) { memset(u, d, 16); return 0; }
int cuDeviceTotalMem_v2(size_t *n, int d) { *n = (size_t)d << 33; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) {
  if (a == 152) return 1; /* an older driver does not know the newest attribute */
  *v = a == 75 ? 9 : a == 76 ? 0 : a == 124 ? d == 5 : a == 118 ? 200 : a == 116;
  return 0;
}
int cuDeviceCanAccessPeer(int *v, int a, int b) { *v = a < b; return 0; }
int cuDeviceGetP2PAttribute(int *v, int w, int a, int b) {
  *v = w == 3 ? a > b : w == 1 ? 10 * a + b : 99;
  return 0;
}
"""
NVML = r"""
int nvmlInit_v2(void) { return 18; }
int nvmlInitWithFlags(unsigned flags) { return 18; }
const char *nvmlErrorString(int e) { return e == 18 ? "Driver/library version mismatch" : "?"; }
"""


def build(folder: Path, name: str, source: str, *flags: str) -> None:
    assert COMPILER
    file = folder / f"{name}.c"
    file.write_text(source, encoding="utf-8")
    language = ["-x", "c"]
    command = [COMPILER, *language, "-shared", "-fPIC", "-w", *flags, "-o", str(folder / name), str(file)]
    subprocess.run(command, check=True)


def examined(folder: Path, timeout: float = 60) -> Facts:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
    (folder / "root").mkdir()
    return gather(System(folder / "root", environment, timeout=timeout))


def test_cuda_answers_land_in_the_right_places(tmp_path: Path) -> None:
    build(tmp_path, "libcuda.so.1", CUDA, "-DINIT=")
    facts = examined(tmp_path)
    first, second = facts.gpus
    assert facts.driver.cuda_version == "13.1"
    assert (facts.driver.cuda_error, facts.driver.cuda_devices) == ("", 2)
    assert (first.name, first.bus_id, first.memory) == ("GPU 5", "0000:05:00.0", 5 << 33)
    assert second.uuid == "GPU-06060606-0606-0606-0606-060606060606"
    assert isinstance(first.cuda, CudaDevice)
    assert (first.cuda.compute_capability, first.cuda.rdma, first.cuda.vmm) == ("9.0", True, False)
    assert (first.cuda.rdma_ordering, first.cuda.dma_buf, first.cuda.dma_buf_mmap) == (200, True, None)
    assert second.cuda is not None
    assert second.cuda.dma_buf is False
    pairs = {(p.first, p.second): (p.access, p.atomics, p.performance_rank) for p in facts.pairs}
    assert pairs == {(0, 1): (True, False, 56), (1, 0): (False, True, 65)}


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ("return 802", "CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized"),
        ("abort()", "was killed by SIGABRT"),
        ("sleep(600)", "gave no answer within"),
    ],
)
def test_cuda_that_fails_crashes_or_blocks_becomes_a_finding(tmp_path: Path, body: str, finding: str) -> None:
    build(tmp_path, "libcuda.so.1", CUDA, f"-DINIT={body}")
    facts = examined(tmp_path, timeout=3 if "sleep" in body else 60)
    assert facts.gpus == []
    assert finding in facts.driver.cuda_error
    facts.driver.module_version = "580.159.04"
    judged = next(f for f in examine(facts) if f.id == "gpus.cuda")
    assert judged.status is Status.WARNING
    assert finding in judged.observed


def test_nvml_of_another_version_than_the_kernel_module(tmp_path: Path) -> None:
    build(tmp_path, "libnvidia-ml.so.1", NVML)
    facts = examined(tmp_path)
    assert "mismatch" in facts.driver.nvml_error.lower()
    judged = next(f for f in examine(facts) if f.id == "gpus.driver")
    assert (judged.status, judged.todo.partition(",")[0]) == (Status.WARNING, "reboot")
