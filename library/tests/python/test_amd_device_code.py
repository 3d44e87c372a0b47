"""Device code compiled for AMD GPUs by clang. It never ran on an AMD GPU; these tests show that it compiles,
and has what the memory model needs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from amd_compiler import ARCHITECTURES, STRICT, compile_for, kernels_of
from launching import ROOT

KERNELS = ROOT / "library" / "src" / "device" / "cuda" / "kernels"
BENCHMARKS = ROOT / "library" / "src" / "bench" / "kernels.cu"


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
def test_kernels_compile(source: str, architecture: str) -> None:
    code, messages, assembly = compile_for(architecture, KERNELS / source, *STRICT)
    assert code == 0, messages
    names = r"\b(?:pw_copy_\d+|pw_plan_[a-z]+_[a-z]+|pw_reduce)\b"
    kernels = set(re.findall(names, (KERNELS / source).read_text()))
    assert kernels
    for kernel in kernels:
        assert re.search(rf"\.name: +{kernel}$", assembly, re.MULTILINE), kernel
    assert set(re.findall(r"\.wavefront_size: +(\d+)", assembly)) == {str(ARCHITECTURES[architecture])}
    # Tables in the parameters are read in place: a copy of them has 700 bytes or more.
    assert max(map(int, re.findall(r"\.private_segment_fixed_size: +(\d+)", assembly))) <= 256


@pytest.mark.parametrize(
    "architecture",
    ["gfx90a", *(pytest.param(name, marks=pytest.mark.long) for name in ("gfx942", "gfx1100"))],
)
def test_kernels_of_benchmarks_compile(architecture: str) -> None:
    code, messages, assembly = compile_for(architecture, BENCHMARKS, *STRICT)
    assert code == 0, messages
    assert kernels_of(assembly) == set(re.findall(r"\bbench_\w+(?=\()", BENCHMARKS.read_text()))


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
def test_memory_is_ordered_for_the_whole_system(architecture: str, tmp_path: Path) -> None:
    source = tmp_path / "probes.hip"
    source.write_text(PROBES)
    code, messages, assembly = compile_for(architecture, source, *STRICT)
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
def test_all_calls_in_kernels_compile(architecture: str, options: list[str], tmp_path: Path) -> None:
    source = tmp_path / "calls.hip"
    source.write_text(CALLS)
    code, messages, _ = compile_for(architecture, source, *STRICT, *options)
    assert code == 0, messages


def test_a_mistake_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "wrong.hip"
    source.write_text(PROBES.replace("warp.count()", "warp.lanes()"))
    code, messages, _ = compile_for("gfx90a", source, *STRICT)
    assert code != 0
    assert "lanes" in messages
