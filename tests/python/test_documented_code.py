"""Every block of C and C++ that stands in the documents compiles: those for the host all at once with g++,
those of kernels all at once with NVRTC. tests/system/test_documented_python.py runs those of Python.

A block that is new in a document fails the first test until it has a line in HOST, KERNELS or ELSEWHERE.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from device_compilers import UNOPTIMIZED, compile_with, load_nvrtc
from documented_code import ROOT, blocks

# What each block needs round it: the parameters of the function that it is made into.
REGION = "peerway::Context& ctx, peerway::Region& region, std::uint64_t ny, std::uint64_t nx"
HOST = {
    "docs/library/halo.md 1": REGION,
    "docs/library/collectives.md 3": "peerway::Context& ctx, peerway::Region& result, peerway::Region& mine",
    "docs/library/collectives.md 4": "pw_context* context, pw_region* result, pw_region* mine, uint64_t n",
    "docs/library/plans.md 3": "peerway::Context& ctx, int left, peerway::Remote& target, "
    "peerway::Remote& right_arrived, pw_device gpu",
    "docs/library/teams.md 1": "int rank, int size, MPI_Comm comm",
    "docs/trace/index.md 1": "",
}
KERNELS = {
    "docs/library/collectives.md 1": None,
    "docs/library/collectives.md 2": None,
    "docs/library/plans-proxy.md 1": None,
    "docs/library/plans.md 1": None,
    "docs/library/plans.md 2": None,
    "docs/library/plans.md 4": "pw_remote_handle target, pw_notify_handle right_arrived, "
    "pw_signal_handle arrived, Word offset, const double* mine, Word bytes, Word epoch",
}
ELSEWHERE = {
    **{
        f"docs/nic/guide.md {n}": "nic/tests/system/test_nic_check.py finds it in the example"
        for n in range(1, 7)
    },
    "docs/xacc/directives.md 1": "an excerpt of a program with directives",
    "docs/xacc/directives.md 2": "an excerpt of what `peerway cc` generates",
    "docs/xacc/directives.md 3": "an excerpt of what `peerway cc` generates",
    **{
        f"docs/xacc/fortran.md {n}": "xacc/tests/system/test_fc_programs.py runs it beside Fortran"
        for n in range(1, 4)
    },
    "docs/xacc/fortran.md 4": "an excerpt of examples/xacc/cg.c",
}
BLOCKS = blocks("c", "cpp", "c++")

BEFORE_HOST = """
using namespace std::chrono_literals;
using MPI_Comm = int;
enum { MPI_BYTE };
int MPI_Bcast(void*, int, int, int, MPI_Comm);
void interior();
void boundary();
template <typename... Any> void exchange(Any&&...);
"""
BEFORE_KERNELS = """
#include <peerway/device.cuh>
__device__ void compute(double*);
constexpr unsigned kHidden = 4096;
__device__ void normalise(const float*, float*);
"""


def as_code(text: str) -> str:
    """With what a document leaves out and a compiler cannot."""
    text = re.sub(r"^( *)\.\.\.", r"\1", text, flags=re.MULTILINE)
    return re.sub(r"<<<.*?>>>", "", text.replace(", ...)", ", unsigned long long n)"))


def test_every_block_is_compiled_somewhere() -> None:
    assert sorted(BLOCKS) == sorted(HOST | KERNELS | ELSEWHERE)


def host_source() -> str:
    """All blocks of the host, each a function."""
    includes, functions = ["#include <chrono>", "#include <peerway/peerway.hpp>"], []
    for number, (name, parameters) in enumerate(HOST.items()):
        lines = as_code(BLOCKS[name]).splitlines()
        includes += [line for line in lines if line.startswith("#include")]
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        functions.append(f"void block_{number}({parameters}) {{  // {name}\n{body}\n}}\n")
    return "\n".join([*includes, BEFORE_HOST, *functions])


def test_the_blocks_for_the_host_compile(tmp_path: Path) -> None:
    source = tmp_path / "documented.cpp"
    source.write_text(host_source())
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", f"-I{ROOT / 'library' / 'include'}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_blocks_of_kernels_compile(tmp_path: Path) -> None:
    functions = []
    for number, (name, parameters) in enumerate(KERNELS.items()):
        body = as_code(BLOCKS[name]).rstrip()
        if parameters is not None:
            body = f"__global__ void part({parameters}) {{\n{body}\n}}"
        elif body.count("{") > body.count("}"):
            body += "\n}"
        opened = "using namespace peerway::device;"
        functions.append(f"namespace block_{number} {{  // {name}\n{opened}\n{body}\n}}\n")
    source = tmp_path / "documented.cu"
    source.write_text(BEFORE_KERNELS + "\n".join(functions))
    options = [
        UNOPTIMIZED,
        "-arch=compute_90",
        "--std=c++20",
        "-rdc=true",
        f"-I{ROOT / 'library' / 'include'}",
    ]
    result, log, _ = compile_with(load_nvrtc(), source, *options)
    assert result == 0, log
