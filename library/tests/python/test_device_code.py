"""Device code and the mirrors of NVIDIA's interfaces, checked without a GPU by NVIDIA's compiler and headers.

Needs the wheels nvidia-cuda-nvrtc and nvidia-cuda-runtime (the `test` extra has them) and g++.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from device_compilers import ARCHITECTURES, UNOPTIMIZED, compile_with, in_local_memory

ROOT = Path(__file__).resolve().parents[3]
CUDA = ROOT / "library" / "src" / "device" / "cuda"
KERNELS = CUDA / "kernels"
# These take up to 14 s per architecture: they are compiled to machine code only in long runs, and always to
# PTX. Parts of plan.cu need 9.0 or newer.
LARGE = {"plan.cu": "compute_100", "kernels.cu": "compute_80"}


def device_sources() -> list[Path]:
    return sorted(path for path in ROOT.glob("library/src/**/*.cu"))


def test_there_is_device_code() -> None:
    assert KERNELS / "copy.cu" in device_sources()


def compilations() -> list[Any]:
    """Each source with each architecture."""
    return [
        pytest.param(
            source, architecture, id=f"{source.name}-{architecture}",
            marks=[pytest.mark.long] if source.name in LARGE else [],
        )
        for source in device_sources()
        for architecture in ARCHITECTURES
    ]  # fmt: skip


def assert_kernels_of(source: Path, code: bytes) -> None:
    names = r"\b(pw_copy_\d+|pw_plan_[a-z]+_[a-z]+\b|pw_reduce\b|bench_[a-z_]+(?=\())"
    kernels = set(re.findall(names, source.read_text()))
    assert kernels
    for kernel in kernels:
        assert kernel.encode() in code


@pytest.mark.parametrize("name", LARGE)
def test_large_files_compile_to_ptx(nvrtc: ctypes.CDLL, name: str) -> None:
    (source,) = (path for path in device_sources() if path.name == name)
    options = [
        UNOPTIMIZED,
        f"-arch={LARGE[name]}",
        "--std=c++17",
        f"-I{source.parent}",
        f"-I{ROOT / 'library' / 'include'}",
    ]
    result, log, ptx = compile_with(nvrtc, source, *options)
    assert result == 0, log
    assert_kernels_of(source, ptx)


@pytest.mark.parametrize(("source", "architecture"), compilations())
def test_compiles(nvrtc: ctypes.CDLL, source: Path, architecture: str) -> None:
    folders = [f"-I{source.parent}", f"-I{ROOT / 'library' / 'include'}"]
    options = [f"-arch={architecture}", "--std=c++17", *folders, "-Xptxas=-v"]
    result, log, cubin = compile_with(nvrtc, source, *options)
    assert result == 0, log
    assert cubin[:4] == b"\x7fELF"
    assert_kernels_of(source, cubin)
    if source.parent != KERNELS:  # a benchmark's kernel that holds two whole plans may use the stack
        return
    assert in_local_memory(log) == []


def test_a_mistake_does_not_compile(nvrtc: ctypes.CDLL, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text("__global__ void kernel() { undeclared(); }\n")
    result, log, _ = compile_with(nvrtc, wrong, "-arch=sm_90")
    assert result != 0
    assert "undeclared" in log


def gxx(source: Path, *include: Path) -> subprocess.CompletedProcess[str]:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.fail("g++ is not installed; apt-get install g++")
    command = [compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in include), str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


STRUCTS = (
    "CUuuid",
    "CUDA_CONDITIONAL_NODE_PARAMS",
    "CUipcMemHandle",
    "CUmemPoolPtrExportData",
    "CUmemLocation",
    "CUmemAccessDesc",
    "CUmemAllocationProp",
    "CUmemPoolProps",
    "CUDA_MEMCPY2D",
    "CUDA_MEMCPY3D",
    "CUlaunchAttribute",
    "CUlaunchConfig",
)

ABI_CHECK = """
#include <cuda.h>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include "device/cuda/driver.h"

// Two functions are called alike when their parameters are of the same sizes and kinds; our types are named
// by ourselves.
template <typename A, typename B>
constexpr bool alike = sizeof(A) == sizeof(B) && alignof(A) == alignof(B) &&
                       std::is_pointer_v<A> == std::is_pointer_v<B> &&
                       std::is_class_v<A> == std::is_class_v<B> &&
                       std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <typename A, typename B>
struct SameCall : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
  requires(sizeof...(A) == sizeof...(B))
struct SameCall<R (*)(A...), S (*)(B...)> : std::bool_constant<alike<R, S> && (alike<A, B> && ...)> {};

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define FUNCTION(name, symbol, ...)                                                                    \\
  static_assert(SameCall<decltype(&::name), decltype(pw::cuda::Driver::name)>::value, symbol);         \\
  static_assert(std::string_view(TEXT(name)) == symbol, symbol);
PW_CUDA_FUNCTIONS(FUNCTION)

#define CONSTANT(name, value) static_assert(static_cast<int>(::name) == (value), #name);
PW_CUDA_CONSTANTS(CONSTANT)
static_assert(CU_MEMHOSTREGISTER_PORTABLE == pw::cuda::kHostRegisterPortable);
static_assert(CU_GRAPH_COND_ASSIGN_DEFAULT == pw::cuda::kConditionAssignDefault);
static_assert(sizeof(::CUgraphNodeParams) == sizeof(pw::cuda::CUgraphNodeParams));
static_assert(CU_MEMHOSTREGISTER_DEVICEMAP == pw::cuda::kHostRegisterDeviceMap);
"""


def struct_checks(abi: str) -> str:
    """Check the size of each mirrored struct, and offset and size of each of its fields."""
    lines = []
    for struct in STRUCTS:
        body = re.search(rf"struct {struct} {{(.*?)\n}};", abi, re.DOTALL)
        assert body is not None, struct
        lines.append(f"static_assert(sizeof(::{struct}) == sizeof(pw::cuda::{struct}));")
        flat = re.sub(r"struct {.*?}", "struct", body[1], flags=re.DOTALL)  # the nested struct as one field
        declared = re.findall(r"[ *]((?:\w+(?:\[\d+\])?, )*\w+)(?:\[\d+\])?;", flat)
        fields = [name for names in declared for name in names.split(", ")]
        assert fields, struct
        for field in fields:
            theirs, ours = f"::{struct}", f"pw::cuda::{struct}"
            lines.append(f"static_assert(offsetof({theirs}, {field}) == offsetof({ours}, {field}));")
            lines.append(f"static_assert(sizeof({theirs}::{field}) == sizeof({ours}::{field}));")
    return "\n".join(lines)


def test_driver_mirror_is_the_drivers_interface(cuda_include: Path, tmp_path: Path) -> None:
    source = tmp_path / "abi.cpp"
    source.write_text(ABI_CHECK + struct_checks((CUDA / "driver_abi.h").read_text()))
    done = gxx(source, cuda_include, ROOT / "library" / "src", ROOT / "library" / "include")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        pytest.param("X(CU_MEMORYTYPE_DEVICE, 2)", "X(CU_MEMORYTYPE_DEVICE, 3)", marks=pytest.mark.long),
        ('"cuMemAlloc_v2", CUdeviceptr*, size_t', '"cuMemAlloc_v2", CUdeviceptr*, int'),
        pytest.param('"cuMemFree_v2"', '"cuMemFree"', marks=pytest.mark.long),
        ("unsigned short usage;\n  unsigned char gpu", "unsigned usage;\n  unsigned char gpu"),
    ],
)
def test_the_check_sees_a_wrong_mirror(cuda_include: Path, tmp_path: Path, right: str, wrong: str) -> None:
    abi = (CUDA / "driver_abi.h").read_text()
    assert right in abi
    folder = tmp_path / "device" / "cuda"
    folder.mkdir(parents=True)
    (folder / "driver_abi.h").write_text(abi.replace(right, wrong))
    shutil.copy(CUDA / "driver.h", folder)
    source = tmp_path / "abi.cpp"
    source.write_text(ABI_CHECK + struct_checks(abi))
    done = gxx(source, tmp_path, cuda_include, ROOT / "library" / "src", ROOT / "library" / "include")
    assert "static assertion failed" in done.stderr


def test_nvrtc_mirror_is_nvrtcs_interface(cuda_include: Path, tmp_path: Path) -> None:
    text = (CUDA / "nvrtc.cpp").read_text()
    form = r"^  ((?:int|const char ?\*) ?\(\*(nvrtc\w+)\)\([^;]*?\)) =\s+nullptr;"
    functions = re.findall(form, text, re.MULTILINE)
    assert len(functions) == text.count("get(nvrtc"), "this test cannot read a function of the mirror"
    source = tmp_path / "nvrtc.cpp"
    same_call = ABI_CHECK.partition("#define TEXT_OF")[0].replace("<cuda.h>", "<nvrtc.h>")
    lines = [same_call, "using Program = nvrtcProgram;"]
    for declaration, name in functions:
        mirror = declaration.replace(f"(*{name})", f"(*mirror_of_{name})")
        lines.append(f"extern {mirror};")
        lines.append(f"static_assert(SameCall<decltype(&{name}), decltype(mirror_of_{name})>::value);")
    source.write_text("\n".join(lines))
    done = gxx(source, cuda_include, ROOT / "library" / "src", ROOT / "library" / "include")
    assert done.returncode == 0, done.stderr
