"""Device code and the mirrors of NVIDIA's interfaces, checked without a GPU by NVIDIA's compiler and headers.

Needs the wheels nvidia-cuda-nvrtc and nvidia-cuda-runtime (the `test` extra has them) and g++.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import itertools
import multiprocessing
import re
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cc_programs import PRELUDE

ROOT = Path(__file__).resolve().parents[2]
CUDA = ROOT / "library" / "src" / "device" / "cuda"
KERNELS = CUDA / "kernels"
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")
# These take up to 14 s for each architecture: they become machine code in long runs, and PTX always. Parts of
# plan.cu ask for 9.0 or newer.
LARGE = {"plan.cu": "compute_100", "kernels.cu": "compute_80"}
UNOPTIMIZED = "--device-debug"  # takes a fifth of the time, and whatever is wrong is told


def file_of_wheel(wheel: str, name: str) -> Path:
    """The installed file called `name` of a wheel; fails the test with the remedy when there is none."""
    try:
        files = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        pytest.fail(f"the wheel {wheel} is not installed; python -m pip install {wheel}")
    for file in files:
        if file.name.startswith(name) and ".alt." not in file.name:
            return Path(str(file.locate())).resolve()
    pytest.fail(f"the wheel {wheel} has no {name}; reinstall it")


def load_nvrtc() -> ctypes.CDLL:
    library = file_of_wheel("nvidia-cuda-nvrtc", "libnvrtc.so.")
    # NVRTC 13.0 does not find its built-ins beside itself.
    for builtins in library.parent.glob("libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(library))


@pytest.fixture(scope="session")
def nvrtc() -> ctypes.CDLL:
    return load_nvrtc()


@pytest.fixture(scope="session")
def cuda_include() -> Path:
    return file_of_wheel("nvidia-cuda-runtime", "cuda.h").parent


def compile_with(nvrtc: ctypes.CDLL, source: Path, *options: str) -> tuple[int, str, bytes]:
    """The result code, the log and the machine code of one source; for a virtual architecture its PTX.
    The log begins with the error, if there is one.
    """
    program = ctypes.c_void_p()
    text, name = source.read_bytes(), source.name.encode()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, 0, None, None) == 0
    # Where there is a driver, NVRTC takes code from its cache, and ptxas says nothing.
    words = [option.encode() for option in (*options, "--no-cache")]
    flags = (ctypes.c_char_p * len(words))(*words)
    result = int(nvrtc.nvrtcCompileProgram(program, len(words), flags))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(max(1, size.value))
    nvrtc.nvrtcGetProgramLog(program, log)
    cubin = b""
    if result == 0:
        ask_size, ask = nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN
        if any("=compute_" in option for option in options):
            ask_size, ask = nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX
        ask_size(program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        assert ask(program, image) == 0
        cubin = image.raw
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    if result == 0:
        return result, log.value.decode(), cubin
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return result, f"{nvrtc.nvrtcGetErrorString(result).decode()}: {log.value.decode()}", cubin


def compile_alone(source: Path, *options: str) -> tuple[int, str, bytes]:
    """The same in a process of its own, as nvcc does it. What NVRTC compiled before in a process can change
    how ptxas uses registers: a kernel that needs all of them then spills some.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        return alone.submit(_compile_first, source, *options).result()


def _compile_first(source: Path, *options: str) -> tuple[int, str, bytes]:
    return compile_with(load_nvrtc(), source, *options)


def in_local_memory(log: str) -> list[str]:
    """What ptxas says that it put into slow local memory, of all kernels: arrays that are indexed at run
    time, and values for which there was no register.
    """
    assert "bytes stack frame" in log, f"ptxas says of no stack frame, as with -v: {log}"
    return re.findall(r"[1-9]\d* bytes (?:stack frame|spill stores|spill loads)", log)


def device_sources() -> list[Path]:
    return sorted(path for path in ROOT.glob("library/src/**/*.cu"))


def test_there_is_device_code() -> None:
    assert KERNELS / "copy.cu" in device_sources()


def compilations() -> list[Any]:
    """Each source for each architecture."""
    return [
        pytest.param(
            source, architecture, id=f"{source.name}-{architecture}",
            marks=[pytest.mark.long] if source.name in LARGE else [],
        )
        for source in device_sources()
        for architecture in ARCHITECTURES
    ]  # fmt: skip


def assert_kernels_of(source: Path, code: bytes) -> None:
    names = r"\b(pw_copy_\d+|pw_plan_[a-z]+_[a-z]+\b|bench_[a-z_]+(?=\())"
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


NUMBERS = [
    "double",
    "float",
    "int",
    "unsigned",
    "long",
    "unsigned long",
    "long long",
    "short",
    "char",
    "bool",
]
OPERATORS = ["sum", "product", "max", "min", "and", "or", "bit_and", "bit_or", "bit_xor"]


def uses_of_the_prelude() -> str:
    """A kernel for each reduction and atomic operation of each type that has it."""
    text = ""
    for number, operator in itertools.product(NUMBERS, OPERATORS):
        if operator.startswith("bit_") and number in ("double", "float"):
            continue
        name = f"{operator}_{number.replace(' ', '_')}"
        op = f"pwx_{operator}()"
        text += f"__global__ void reduce_{name}({number} x, pwx_total<{number}> r) {{ r.add({op}, x); }}\n"
        if number not in ("char", "bool"):
            text += f"__global__ void atomic_{name}({number}* x) {{ pwx_atomic({op}, x[0], x[1]); }}\n"
    for number, operator in itertools.product(("double", "float"), ("sum", "product")):
        value = f"pwx_complex<{number}>"
        text += f"__global__ void complex_{operator}_{number}({value} x, pwx_total<{value}> r) "
        text += f"{{ r.add(pwx_{operator}(), x); }}\n"
    return text


@pytest.mark.parametrize(
    ("architecture", "more"),
    [
        pytest.param("compute_75", [UNOPTIMIZED], id="compute_75"),
        *(pytest.param(one, [], id=one, marks=pytest.mark.long) for one in ("compute_90", "sm_75", "sm_90")),
    ],
)
def test_the_prelude_of_generated_kernels_compiles_for_all_types(
    nvrtc: ctypes.CDLL, tmp_path: Path, architecture: str, more: list[str]
) -> None:
    whole = tmp_path / "kernel.cu"
    whole.write_text(PRELUDE + uses_of_the_prelude())
    options = [f"-arch={architecture}", "--std=c++20", "--restrict", "--device-as-default-execution-space"]
    result, log, _ = compile_with(nvrtc, whole, *options, *more)
    assert (result, log.strip("\0\n")) == (0, "")


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
static_assert(CU_MEMHOSTREGISTER_DEVICEMAP == pw::cuda::kHostRegisterDeviceMap);
"""


def struct_checks(abi: str) -> str:
    """Size of each mirrored struct and offset and size of each of its fields."""
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
