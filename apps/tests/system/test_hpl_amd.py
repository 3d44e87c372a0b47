"""apps/hpl on AMD GPUs, of which none is here: the device for HIP runs on the CPU over doubles of HIP's
run-time library and of hipBLAS and rocBLAS. It never ran on an AMD GPU.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import scipy
import test_hpl
from launching import ROOT, Run, clean_environment, library_folder, peerway
from test_hpl import expected, solution

APP = ROOT / "apps" / "hpl"
UNIT = ROOT / "library" / "tests" / "unit"
BLAS = {"cuBLAS": ["-DCUBLAS"], "hipBLAS": [], "rocBLAS": ["-DROCBLAS"]}
LONG = pytest.mark.long


def compile_on_cpu(source: Path, target: Path, *options: str) -> Path:
    """Compile for the double of HIP's run-time library, whose kernels run on the CPU."""
    flags = ["-std=c++20", "-O1", "-D__HIP__", "-DHPL_ON_CPU", "-Wno-unknown-pragmas", "-x", "c++"]
    folders = [f"-I{UNIT / 'fake_hip_runtime'}", f"-I{UNIT / 'fake_nvrtc'}"]
    command = ["c++", *flags, *folders, str(source), "-o", str(target), *options, "-ldl"]
    subprocess.run(command, check=True)
    return target


def gpu_blas(folder: Path, kind: str) -> Path:
    """A double of this library."""
    library = folder / f"fake_{kind}.so"
    source = ROOT / "apps" / "tests" / "system" / "programs" / "fake_gpu_blas.cpp"
    subprocess.run(
        ["c++", "-O2", "-shared", "-fPIC", *BLAS[kind], str(source), "-o", str(library)], check=True
    )
    return library


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_on_cpu(APP / "gpu_blas_test.cpp", tmp_path_factory.mktemp("blas") / "gpu_blas_test")


@pytest.mark.parametrize("kind", BLAS)
def test_each_vendors_blas_is_called_with_its_own_numbers(caller: Path, tmp_path: Path, kind: str) -> None:
    done = subprocess.run([caller, gpu_blas(tmp_path, kind)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{kind}, largest difference ")


def test_a_library_that_is_no_blas_is_refused(caller: Path) -> None:
    done = subprocess.run([caller, "libm.so.6"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "libm.so.6 is no cuBLAS, hipBLAS or rocBLAS" in done.stderr


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with its parts, the device for HIP among them, in a folder of its own."""
    library_folder()
    built = Path(test_hpl.build("program", "peerway"))
    folder = tmp_path_factory.mktemp("hpl")
    for name in ("hpl", "comm_peerway.so"):
        shutil.copy(built.with_name(name), folder)
    compile_on_cpu(APP / "device_gpu.cu", folder / "device_hip.so", "-shared", "-fPIC")
    for file in (Path(scipy.__file__).parents[1] / "scipy.libs").iterdir():  # the BLAS of the CPUs' panels
        name = "libopenblas.so.0" if "openblas" in file.name else file.name
        (folder / name).symlink_to(file)
    return folder / "hpl"


def command(program: Path, grid: str, *options: str) -> list[str]:
    rows, _, columns = grid.partition("x")
    ranks = str(int(rows) * int(columns))
    words = ["--grid", grid, "--device", "hip", "--threads", "1", "--json", *options]
    return [*peerway("run", "-n", ranks, "--"), str(program), *words]


def environment(program: Path) -> dict[str, str]:
    return clean_environment(LD_LIBRARY_PATH=str(program.parent))


@pytest.mark.parametrize(
    ("grid", "nb", "depth", "kind"),
    [
        ("1x1", 16, "1", "hipBLAS"),
        ("2x2", 32, "1", "rocBLAS"),
        *(
            pytest.param(*case, marks=LONG)
            for case in (("1x2", 16, "0", "rocBLAS"), ("3x1", 48, "1", "hipBLAS"))
        ),
    ],
)
def test_the_solution_is_that_of_scipy(
    run: Run, program: Path, tmp_path: Path, grid: str, nb: int, depth: str, kind: str
) -> None:
    file = tmp_path / "x"
    options = ["--n", "203", "--nb", str(nb), "--depth", depth, "--blas", str(gpu_blas(tmp_path, kind))]
    done = run(command(program, grid, *options, "--solution", str(file)), env=environment(program))
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert result["passed"]
    assert result["device"].startswith("a double of an AMD GPU (GPU 0), ")
    assert result["panels"].startswith("CPUs: ")
    np.testing.assert_allclose(
        solution(file, 203), expected(203), rtol=0, atol=1e-10 * abs(expected(203)).max()
    )


def test_the_peak_is_that_of_the_data_sheet(run: Run, program: Path, tmp_path: Path) -> None:
    options = ["--n", "100", "--nb", "16", "--blas", str(gpu_blas(tmp_path, "hipBLAS"))]
    words = [word for word in command(program, "1x1", *options) if word != "--json"]
    done = run(words, env=environment(program))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "110 CUs x 256 FP64 FLOP a clock (matrix cores) x 1700 MHz" in done.stdout


def test_without_hipblas_the_error_says_what_to_install(run: Run, program: Path) -> None:
    done = run(command(program, "1x1", "--n", "100", "--nb", "16"), env=environment(program))
    assert done.returncode == 1
    assert "no BLAS for the GPU was found; tried:" in done.stderr
    assert "Install hipblas or rocblas of ROCm" in done.stderr
