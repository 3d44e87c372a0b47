"""The mirror of HIP's interface against HIP's own headers. They are in ROCm, which most machines lack; the
headers alone are enough: ROCM_PATH names a folder with include/hip/hip_runtime_api.h."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HIP = ROOT / "library" / "src" / "device" / "hip"

CHECK = """
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include <cstddef>
#include <type_traits>

#include "device/cuda/driver.h"
#include "device/hip/hip_abi.h"

// Two functions are called alike when their parameters are of the same sizes and kinds. An address is a
// pointer in HIP and a number in CUDA, which are passed in the same way.
template <typename A, typename B>
constexpr bool alike = sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
                       std::is_class_v<A> == std::is_class_v<B> &&
                       std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameCall<R (*)(A...), S (*)(B...)> : std::bool_constant<alike<R, S> && (alike<A, B> && ...)> {};

#define SAME(member, symbol) \\
  static_assert(SameCall<decltype(&::symbol), decltype(pw::cuda::Driver::member)>::value, #symbol);
PW_HIP_SAME(SAME)
#define CALL(name, ...) \\
  static_assert(SameCall<decltype(&::name), pw::cuda::CUresult (*)(__VA_ARGS__)>::value, #name);
namespace pw::hip {
using pw::cuda::CUDA_MEMCPY2D;
PW_HIP_CALLS(CALL)
}  // namespace pw::hip
#define CONSTANT(name, value) static_assert(static_cast<int>(::name) == (value), #name);
PW_HIP_CONSTANTS(CONSTANT)
// Flags that CUDA's callers pass on, and those of HIP that are macros.
static_assert(hipIpcMemLazyEnablePeerAccess == pw::cuda::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
static_assert(hipStreamNonBlocking == pw::cuda::CU_STREAM_NON_BLOCKING);
static_assert(hipEventDisableTiming == pw::cuda::CU_EVENT_DISABLE_TIMING);
static_assert(hipStreamCaptureModeRelaxed == pw::cuda::CU_STREAM_CAPTURE_MODE_RELAXED);
static_assert(hipHostRegisterPortable == pw::cuda::kHostRegisterPortable);
static_assert(hipHostRegisterMapped == pw::cuda::kHostRegisterDeviceMap);
static_assert(hipDeviceMallocFinegrained == pw::hip::kMallocFinegrained);
static_assert(sizeof(::hipDeviceProp_t) == sizeof(pw::hip::hipDeviceProp));
static_assert(offsetof(::hipDeviceProp_t, gcnArchName) == offsetof(pw::hip::hipDeviceProp, gcnArchName));
static_assert(sizeof(::hip_Memcpy2D) == sizeof(pw::cuda::CUDA_MEMCPY2D));
"""


def field_checks(theirs: str, ours: str, text: str) -> list[str]:
    """The offset and size of each field of a mirrored struct."""
    body = re.search(rf"struct {ours.rpartition('::')[2]} {{(.*?)\n}};", text, re.DOTALL)
    assert body is not None, ours
    fields = [name for names in re.findall(r"[ *]((?:\w+, )*\w+);", body[1]) for name in names.split(", ")]
    assert fields
    return [
        f"static_assert(offsetof({theirs}, {field}) == offsetof({ours}, {field}) && "
        f"sizeof({theirs}::{field}) == sizeof({ours}::{field}));"
        for field in fields
    ]


@pytest.fixture(scope="module")
def headers() -> Path:
    folder = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "include"
    if not (folder / "hip" / "hip_runtime_api.h").exists():
        pytest.skip(f"no HIP headers in {folder}; set ROCM_PATH to a ROCm, or install hip-dev")
    return folder


def compile_check(headers: Path, abi: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compile the comparison with this text of hip_abi.h."""
    mirror = folder / "device" / "hip"
    mirror.mkdir(parents=True)
    (mirror / "hip_abi.h").write_text(abi)
    driver_abi = (ROOT / "library" / "src" / "device" / "cuda" / "driver_abi.h").read_text()
    checks = [
        *field_checks("::HIP_MEMCPY3D", "pw::hip::HIP_MEMCPY3D", abi),
        *field_checks("::hip_Memcpy2D", "pw::cuda::CUDA_MEMCPY2D", driver_abi),
    ]
    source = folder / "abi.cpp"
    source.write_text(CHECK + "\n".join(checks))
    folders = (folder, headers, ROOT / "library" / "src", ROOT / "library" / "include")
    command = [
        shutil.which("g++") or "g++",
        "-std=c++20",
        "-w",
        "-fsyntax-only",
        *(f"-I{f}" for f in folders),
    ]
    return subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)


def test_the_mirror_is_hips_interface(headers: Path, tmp_path: Path) -> None:
    done = compile_check(headers, (HIP / "hip_abi.h").read_text(), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("X(hipMemoryTypeUnified, 11)", "X(hipMemoryTypeUnified, 4)"),
        ("X(hipSetDevice, int)", "X(hipSetDevice, uint64_t)"),
        ("size_t srcPitch, srcHeight;", "size_t srcHeight, srcPitch;"),
    ],
)
def test_the_check_sees_a_wrong_mirror(headers: Path, tmp_path: Path, right: str, wrong: str) -> None:
    abi = (HIP / "hip_abi.h").read_text()
    assert right in abi
    assert "static assertion failed" in compile_check(headers, abi.replace(right, wrong), tmp_path).stderr
