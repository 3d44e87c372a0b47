"""Acc directives on a simulated GPU at run time, on 1 to 4 processes.

The driver is a fake one, and a fake NVRTC compiles the kernels for the CPU. xacc/tests/gpu/test_xacc.py runs
the same program on a real GPU.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from test_xacc_runtime import compiled, run


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("xacc_acc"), "acc", "shapes")


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_data_kernels_reductions_queues_and_reflects(
    ranks: int, program: Path, fake_gpu: dict[str, str]
) -> None:
    done = run(ranks, program, **fake_gpu)
    assert done.returncode == 0, done.stderr
    checks, failed = (int(word) for word in done.stdout.split() if word.isdigit())
    assert failed == 0
    assert checks == 145 * ranks


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = ("gpu", "gpu_data", "gpu_kernels", "gpu_launches", "reflect", "shapes")
    return compiled(tmp_path_factory.mktemp("xacc_gpu"), *parts)


def checks_of(done: subprocess.CompletedProcess[str]) -> int:
    """The number of checks that a program made; all of them passed."""
    assert done.returncode == 0, done.stderr
    checks, failed = (int(word) for word in done.stdout.split() if word.isdigit())
    assert failed == 0
    return checks


@pytest.mark.parametrize("ranks", [2, *(pytest.param(ranks, marks=pytest.mark.long) for ranks in (1, 4))])
def test_each_data_kind_operator_type_and_reflect(
    ranks: int, scenarios: Path, fake_gpu: dict[str, str]
) -> None:
    assert checks_of(run(ranks, scenarios, "1", **fake_gpu)) > 90000 * (ranks + 1) // 2


@pytest.mark.long
def test_reflects_with_acc_where_ranks_do_not_map_each_others_memory(
    scenarios: Path, fake_gpu: dict[str, str]
) -> None:
    assert checks_of(run(2, scenarios, "1", **fake_gpu, PEERWAY_PATHS="staged")) > 90000


@pytest.mark.parametrize("ranks", [1, 4])
def test_acc_of_the_xmp_directives_on_cpus(ranks: int, scenarios: Path) -> None:
    assert checks_of(run(ranks, scenarios, "0", PEERWAY_ACC="host")) > 20000


def test_without_a_gpu_a_process_computes_on_its_cpus(program: Path, fake_gpu: dict[str, str]) -> None:
    assert run(1, program, **{**fake_gpu, "PEERWAY_ACC": "host"}).stdout == "no GPU\n"
    missing = run(1, program, PEERWAY_CUDA_LIBRARY="/nowhere/libcuda.so", PEERWAY_ACC="gpu")
    assert missing.returncode == 1
    assert "the setting acc asks for a GPU, but /nowhere/libcuda.so" in missing.stderr


ABSENT = "copy or create it by a data construct or enter data before"
WRONG = {
    "absent": (1, f"x is not present on the GPU; {ABSENT}"),
    "part": (
        2,
        "x, of 8000 bytes, is present on the GPU only in part: a range of 160 bytes begins inside it; name "
        "the same section everywhere, or one within another",
    ),
    "update": (3, f"x is not present on the GPU, and update copies what is; {ABSENT}"),
    "exit": (4, f"x is not present on the GPU, and exit data ends what enter data began; {ABSENT}"),
    "memory": (7, "cuda:0 has no 17592186044416 bytes left for x"),
    "mapped": (
        8,
        "a was mapped to an address on the GPU that is no multiple of 16 bytes; map it to memory of"
        " acc_malloc",
    ),
    "reflect": (
        6,
        "reflect with acc of a, which is not present on the GPU; add it to a data construct or enter data"
        " before",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_names_the_line(name: str, program: Path, fake_gpu: dict[str, str]) -> None:
    done = run(1, program, name, **fake_gpu)
    line, text = WRONG[name]
    assert done.returncode == 1
    assert f"prog.c:{line}: error: {text}\n" in done.stderr


def test_a_reduction_in_vain_names_the_rank_that_is_late(program: Path, fake_gpu: dict[str, str]) -> None:
    done = run(3, program, "late", **fake_gpu, PEERWAY_PLAN_TIMEOUT="3")
    assert done.returncode == 1
    assert "prog.c:12: error: epoch 2 of a plan waited 3 s in vain for rank 2; " in done.stderr


LOST = "a kernel or copy before this line of cuda:0: CUDA_ERROR_700 (a fake error)"


def test_the_host_has_a_sum_without_waiting_for_the_stream(program: Path, fake_gpu: dict[str, str]) -> None:
    done = run(1, program, "told", **fake_gpu)
    assert done.stdout == "2000.5\n"
    assert f"prog.c:10: error: {LOST}" in done.stderr  # by the next directive that waits


def test_a_kernel_that_fails_before_it_gives_its_sum_is_an_error(
    program: Path, fake_gpu: dict[str, str]
) -> None:
    done = run(1, program, "silent", **fake_gpu)
    assert done.returncode == 1
    assert f"prog.c:11: error: {LOST}" in done.stderr


def test_a_kernel_that_does_not_compile_is_an_error_with_the_lines_of_the_program(
    program: Path, fake_gpu: dict[str, str]
) -> None:
    done: subprocess.CompletedProcess[str] = run(1, program, "kernel", **fake_gpu)
    assert done.returncode == 1
    assert "prog.c:5: error:" in done.stderr
    assert "nonsense" in done.stderr
