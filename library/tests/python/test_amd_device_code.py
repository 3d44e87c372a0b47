"""Device code compiled for AMD GPUs by clang, with neither ROCm nor a GPU. amdgpu.h has what HIPRTC would
add. The code never ran on an AMD GPU; these tests show that it compiles, and has what the memory model needs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "library" / "src" / "device" / "cuda" / "kernels"
ARCHITECTURES = {"gfx90a": 64, "gfx942": 64, "gfx1100": 32}  # MI200, MI300, RDNA 3; threads of a wavefront
CLANGS = ("clang++-19", "clang++-20", "clang++-21", "clang++")
OLDEST = 17  # that knows gfx942


@pytest.fixture(scope="module")
def clang() -> str:
    """A clang that compiles for all of these."""
    for name in CLANGS:
        if (path := shutil.which(name)) is None:
            continue
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.search(r"clang version (\d+)", printed)
        targets = subprocess.run([path, "--print-targets"], capture_output=True, text=True, check=True).stdout
        if version is not None and int(version[1]) >= OLDEST and "amdgcn" in targets:
            return path
    pytest.skip(f"no clang {OLDEST} or newer with the target amdgcn; apt-get install clang-19")


def compile_for(clang: str, architecture: str, source: Path, *options: str) -> tuple[int, str, str]:
    """The exit code, the messages and the assembly."""
    command = [clang, "-x", "hip", f"--offload-arch={architecture}", "--cuda-device-only", "-nogpulib"]
    command += [
        "-nogpuinc",
        "-std=c++17",
        "-O3",
        "-Wall",
        "-Wextra",
        "-Werror",
        f"-I{ROOT / 'library/include'}",
    ]
    command += ["-include", str(Path(__file__).with_name("amdgpu.h")), *options, str(source)]
    done = subprocess.run([*command, "-S", "-o", "-"], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, done.stdout


def function(assembly: str, name: str) -> str:
    """The instructions of one kernel."""
    body = re.search(rf"^{name}:(.*?)^\s*\.section", assembly, re.DOTALL | re.MULTILINE)
    assert body is not None, name
    return body[1]


def compilations() -> list[Any]:
    """Each file with each architecture. The code that they include is always compiled for all, see below."""
    return [
        pytest.param(
            source, architecture, id=f"{source}-{architecture}",
            marks=[] if (source, architecture) == ("copy.cu", "gfx90a") else [pytest.mark.long],
        )
        for source in ("copy.cu", "plan.cu", "reduce.cu")
        for architecture in ARCHITECTURES
    ]  # fmt: skip


@pytest.mark.parametrize(("source", "architecture"), compilations())
def test_kernels_compile(clang: str, source: str, architecture: str) -> None:
    code, messages, assembly = compile_for(clang, architecture, KERNELS / source)
    assert code == 0, messages
    names = r"\b(?:pw_copy_\d+|pw_plan_[a-z]+_[a-z]+|pw_reduce)\b"
    kernels = set(re.findall(names, (KERNELS / source).read_text()))
    assert kernels
    for kernel in kernels:
        assert re.search(rf"\.name: +{kernel}$", assembly, re.MULTILINE), kernel
    assert set(re.findall(r"\.wavefront_size: +(\d+)", assembly)) == {str(ARCHITECTURES[architecture])}
    # Tables in the parameters are read in place: a copy of them has 700 bytes or more.
    assert max(map(int, re.findall(r"\.private_segment_fixed_size: +(\d+)", assembly))) <= 256


PROBES = """
#include "peerway/device.cuh"
using namespace peerway::device;
extern "C" __global__ void release(Word* data, Word* word) {
  *data = 7;
  detail::store_release(word, 1);
}
extern "C" __global__ void acquire(Word* word, Word* to) { *to = detail::load_acquire(word); }
extern "C" __global__ void packet(Packet* to, Packet value) { detail::store_packet(to, value); }
extern "C" __global__ void votes(unsigned* to) {
  const Warp warp;
  const Block block;
  const bool both[2] = {warp.all(warp.index() < 40), block.all(threadIdx.x < 70)};
  to[threadIdx.x] = (both[0] ? 1u : 0u) + (both[1] ? 2u : 0u) + warp.count();
}
"""

CALLS = """
#include "peerway/device.cuh"
using namespace peerway::device;
extern "C" __global__ void calls(pw_plan_handle plan, pw_fifo_handle fifo, pw_remote_handle to,
                                 pw_notify_handle signal, pw_signal_handle arrived, pw_lane_handle lane,
                                 unsigned char* from) {
  const Block block;
  Word number = 0;
  start(block, plan, blockIdx.x, gridDim.x);
  post(block, fifo, pw_fifo_put{}, &number);
  put(block, to, 0, from, 64, signal);
  send(Warp{}, lane, 1, from, 64);
  receive(Warp{}, lane, 1, from, 64);
  wait(block, fifo, number);
  wait(Thread{}, arrived, 1);
  finish(block, plan, blockIdx.x, gridDim.x);
}
"""


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_memory_is_ordered_for_the_whole_system(clang: str, architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "probes.hip"
    source.write_text(PROBES)
    code, messages, assembly = compile_for(clang, architecture, source)
    assert code == 0, messages
    # By LLVM's table of the memory model: what a release and an acquire of system scope consist of.
    expected = {
        "gfx90a": (r"buffer_wbl2.*s_waitcnt vmcnt\(0\).*(?:global|flat)_store_dwordx2", "buffer_invl2"),
        "gfx942": (r"buffer_wbl2 sc0 sc1.*s_waitcnt vmcnt\(0\).*(?:global|flat)_store_dwordx2 .*sc0 sc1",
                   "buffer_inv sc0 sc1"),
        "gfx1100": (r"s_waitcnt_vscnt null, 0x0.*(?:global|flat)_store_b64", "buffer_gl1_inv"),
    }[architecture]  # fmt: skip
    assert re.search(expected[0], function(assembly, "release"), re.DOTALL)
    assert expected[1] in function(assembly, "acquire")
    stores = re.findall(r"(?:global|flat)_store_(?:dwordx2|b64)\b", function(assembly, "packet"))
    assert len(stores) == 2, "each half of a packet is stored as a whole"


@pytest.mark.parametrize(
    ("architecture", "options"),
    [
        ("gfx90a", ["-fsyntax-only"]),
        *(pytest.param(name, [], marks=pytest.mark.long, id=name) for name in ARCHITECTURES),  # 7 s each
    ],
)
def test_all_calls_in_kernels_compile(
    clang: str, architecture: str, options: list[str], tmp_path: Path
) -> None:
    source = tmp_path / "calls.hip"
    source.write_text(CALLS)
    code, messages, _ = compile_for(clang, architecture, source, *options)
    assert code == 0, messages


def test_a_mistake_does_not_compile(clang: str, tmp_path: Path) -> None:
    source = tmp_path / "wrong.hip"
    source.write_text(PROBES.replace("warp.count()", "warp.lanes()"))
    code, messages, _ = compile_for(clang, "gfx90a", source)
    assert code != 0
    assert "lanes" in messages
