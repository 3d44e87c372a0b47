"""Acc directives on a real GPU at run time: the program of test_xacc_acc.py, compiled by NVRTC."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import peerway._core

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "xacc" / "tests" / "system" / "programs" / "xacc"
LIBRARY = Path(peerway._core.__file__ or "").parent / "lib"


def compiled(folder: Path, *names: str) -> Path:
    program = folder / names[0]
    command = ["cc", "-std=c11", "-D_XCALABLEMP=201411", "-O1", f"-I{ROOT / 'library' / 'include'}"]
    command.append(f"-I{ROOT / 'xacc' / 'include'}")
    command += [*(str(PROGRAMS / f"{name}.c") for name in names), "-o", str(program)]
    command += [f"-L{LIBRARY}", f"-Wl,-rpath,{LIBRARY}", "-lpeerway_xacc", "-lpeerway"]
    subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("xacc_acc"), "acc", "shapes")


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    parts = ("gpu", "gpu_data", "gpu_kernels", "gpu_launches", "reflect", "shapes")
    return compiled(tmp_path_factory.mktemp("xacc_gpu"), *parts)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_data_kernels_reductions_queues_and_reflects(
    ranks: int, program: Path, kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    settings = {**os.environ, "PEERWAY_CACHE": str(kernels), "PEERWAY_ACC": "gpu"}
    done = run_program("peerway", "run", "-n", str(ranks), "--grace", "60", "--", program, env=settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{145 * ranks} checks, 0 failed\n"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_each_data_kind_operator_type_and_reflect(
    ranks: int, scenarios: Path, kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    settings = {**os.environ, "PEERWAY_CACHE": str(kernels), "PEERWAY_ACC": "gpu"}
    done = run_program(
        "peerway", "run", "-n", str(ranks), "--grace", "60", "--", scenarios, "1", env=settings
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" checks, 0 failed\n")
