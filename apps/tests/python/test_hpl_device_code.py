"""The device code of apps/hpl without a GPU: panels run on the CPU, and NVRTC, nvcc and clang compile all."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest
from amd_compiler import ARCHITECTURES, clang, compile_for
from device_compilers import compile_with, expect_nvcc_compiles, in_local_memory
from launching import ROOT

APP = ROOT / "apps" / "hpl"


LONG = pytest.mark.long


@pytest.mark.parametrize(
    "architecture", [*(pytest.param(one, marks=LONG) for one in ("sm_80", "sm_100")), "sm_90"]
)
def test_the_panel_keeps_nothing_on_its_stack(nvrtc: ctypes.CDLL, tmp_path: Path, architecture: str) -> None:
    source = tmp_path / "kernel.cu"
    source.write_text('#include "panel_cuda.cuh"\n')
    options = [f"-arch={architecture}", "--std=c++20", f"-I{APP}", "-Xptxas=-v"]
    result, log, cubin = compile_with(nvrtc, source, *options)
    assert result == 0, log
    assert b"factorize_leaf" in cubin
    assert in_local_memory(log) == []


def compiled(folder: Path, name: str) -> Path:
    """A test of apps/hpl compiled as a program for the CPU."""
    program = folder / name
    unit = ROOT / "library" / "tests" / "unit"
    fakes = [f"-I{unit / fake}" for fake in ("fake_nvrtc", "fake_cuda_runtime")]
    flags = ["-std=c++20", "-O1", "-pthread", *fakes, "-Wno-unknown-pragmas"]
    subprocess.run(["c++", *flags, str(APP / f"{name}.cpp"), "-o", str(program)], check=True)
    return program


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test of the kernels alone."""
    return compiled(tmp_path_factory.mktemp("panel"), "panel_cuda_test")


@pytest.fixture(scope="module")
def launched_on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test of what the host launches, panel after panel."""
    return compiled(tmp_path_factory.mktemp("column"), "column_cuda_test")


@pytest.fixture(scope="module")
def decision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test of whether the GPUs of a column work together."""
    return compiled(tmp_path_factory.mktemp("decision"), "gpu_columns_test")


def factorize(program: Path, *words: object) -> int:
    """Check pivots and factors against a plain loop; returns 1 + the first singular column, or 0."""
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return int(done.stdout.rsplit(" ", 1)[1])


@pytest.mark.parametrize(
    ("ranks", "block", "panel", "rows", "columns", "leaf", "share"),
    [
        (1, 64, 0, 200, 32, 32, 64),  # one leaf
        pytest.param(1, 96, 0, 777, 96, 32, 256, marks=LONG),
        (1, 100, 2, 300, 70, 32, 128),  # the last leaf is narrow, and the panel is not the first one
        pytest.param(1, 64, 0, 64, 64, 32, 64, marks=LONG),  # all rows are at the top
        pytest.param(1, 64, 0, 300, 64, 16, 40, marks=LONG),  # many blocks
        (1, 1, 0, 1, 1, 32, 64),
        # the first rank has the top, and the panel is narrower than a block
        pytest.param(2, 64, 0, 200, 32, 32, 64, marks=LONG),
        pytest.param(2, 96, 1, 777, 96, 32, 256, marks=LONG),  # the second rank has it
        pytest.param(3, 70, 5, 300, 70, 32, 128, marks=LONG),
        (3, 70, 1, 140, 70, 32, 128),  # the first rank has no rows
        pytest.param(3, 64, 2, 64, 64, 32, 64, marks=LONG),  # only the rank with the top has some
        pytest.param(3, 16, 2, 500, 16, 16, 32, marks=LONG),
        pytest.param(4, 50, 7, 333, 50, 10, 30, marks=LONG),
    ],
)
def test_the_panel_is_that_of_a_plain_loop(
    on_cpu: Path, ranks: int, block: int, panel: int, rows: int, columns: int, leaf: int, share: int
) -> None:
    assert factorize(on_cpu, ranks, block, panel, rows, columns, leaf, share) == 0


@pytest.mark.parametrize(
    ("twice", "ranks"),
    [(40, 3), *(pytest.param(*case, marks=LONG) for case in ((5, 1), (5, 2), (5, 3), (40, 1), (40, 2)))],
)
def test_the_first_column_whose_pivot_is_zero_is_named(on_cpu: Path, ranks: int, twice: int) -> None:
    assert factorize(on_cpu, ranks, 64, 2, 300, 64, 32, 64, twice) == 2 * 64 + twice + 1


@pytest.mark.parametrize("ranks", [*(pytest.param(one, marks=LONG) for one in (1, 2)), 3])
def test_of_pivots_that_are_as_good_all_choose_the_same(on_cpu: Path, ranks: int) -> None:
    assert factorize(on_cpu, ranks, 64, 2, 300, 4, 32, 64, "signs") == 0
    assert factorize(on_cpu, ranks, 64, 2, 300, 64, 32, 64, "constant") == 2 * 64 + 2


def test_what_is_no_number_keeps_its_place(on_cpu: Path) -> None:
    """The first rank has no row that could be chosen instead."""
    assert factorize(on_cpu, 3, 64, 1, 128, 64, 32, 64, "nan") == 0


@pytest.mark.parametrize(
    ("ranks", "n", "nb", "units", "panels", "refused"),
    [
        pytest.param(1, 300, 64, 12, 99, 0, marks=LONG),
        pytest.param(
            2, 300, 64, 12, 99, 0, marks=LONG
        ),  # at the end the ranks have no rows, one after the other
        (4, 203, 16, 12, 99, 0),  # no interchanges after a leaf, because it has all columns
        pytest.param(3, 517, 100, 12, 3, 0, marks=LONG),
        pytest.param(2, 3000, 128, 4, 1, 0, marks=LONG),  # two blocks per rank
        # leaves of 16 columns, so that its rows fit into one block
        pytest.param(1, 1667, 70, 1, 1, 0, marks=LONG),
        pytest.param(
            3, 5000, 70, 1, 2, 0, marks=LONG
        ),  # leaves of 16 columns, so that their rows fit into one block
        (2, 13400, 32, 1, 5, 3),  # even with leaves of 4, the first panels do not fit
        pytest.param(16, 1000, 50, 12, 1, 0, marks=LONG),  # the most ranks
    ],
)
def test_panels_of_a_column_are_those_of_a_plain_loop(
    launched_on_cpu: Path, ranks: int, n: int, nb: int, units: int, panels: int, refused: int
) -> None:
    words = [str(number) for number in (ranks, n, nb, units, panels)]
    done = subprocess.run([str(launched_on_cpu), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{min(panels, -(-n // nb))} panels, {refused} refused" in done.stdout


@pytest.mark.parametrize(
    ("grid", "gpus", "unreached", "why_not"),
    [
        ("1x1", 1, -1, ""),
        ("2x2", 4, -1, ""),
        ("16x1", 16, -1, ""),
        ("1x4", 2, -1, ""),  # a column of one rank waits for no other rank
        ("2x2", 2, -1, "ranks 0 and 2 share a GPU"),
        ("2x2", 3, -1, "ranks 0 and 3 share a GPU"),  # two columns would wait for each other's turns
        ("2x2", 4, 3, "rank 3: no NVLink"),
        ("17x1", 17, -1, "a process column has 17 ranks, and kernels factorize panels of at most 16"),
    ],
)
def test_gpus_that_cannot_factorize_panels_together_are_told_apart(
    decision: Path, grid: str, gpus: int, unreached: int, why_not: str
) -> None:
    words = [str(decision), grid, str(gpus), str(unreached)]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == f"{why_not}\n"


FAKE_HIP = ROOT / "library" / "tests" / "unit" / "fake_hip_runtime"


def options_of_hip() -> list[str]:
    """As hipcc compiles, with a double of HIP's header."""
    printed = subprocess.run([clang(), "-print-resource-dir"], capture_output=True, text=True, check=True)
    wrappers = Path(printed.stdout.strip()) / "include" / "cuda_wrappers"
    options = ["-std=c++20", f"-I{FAKE_HIP}", "-isystem", str(wrappers), "-Wall", "-Wextra", "-Werror"]
    return [*options, "-include", "__clang_hip_runtime_wrapper.h"]


@pytest.mark.parametrize(
    "architecture", ["gfx90a", *(pytest.param(one, marks=LONG) for one in ARCHITECTURES if one != "gfx90a")]
)
def test_clang_compiles_kernels_for_amd_gpus(architecture: str) -> None:
    code, messages, assembly = compile_for(architecture, APP / "device_gpu.cu", *options_of_hip())
    assert code == 0, messages
    kernels = ("move_rows", "gather_rows", "scatter_rows", "copy_columns", "set_identity", "generate",
               "add_magnitudes")  # fmt: skip
    for kernel in kernels:
        assert re.search(rf"\.amdhsa_kernel _ZN3hpl\d+{kernel}E", assembly), kernel


def test_clang_compiles_the_host_code_of_the_device_for_amd_gpus() -> None:
    command = [clang(), "-x", "hip", "--cuda-host-only", "-nogpulib", "-nogpuinc", "-fsyntax-only"]
    command += [*options_of_hip(), "-include", str(ROOT / "tests" / "shared" / "amdgpu.h")]
    done = subprocess.run([*command, str(APP / "device_gpu.cu")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("source", sorted(APP.glob("*.cu")), ids=lambda path: path.name)
def test_nvcc_compiles(source: Path, tmp_path: Path) -> None:
    expect_nvcc_compiles(source, tmp_path, "-std=c++20")
