"""apps/hpl on GPUs is right on every grid, even if ranks share GPUs."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from peerway_measure.bench.peers import places

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def program() -> str:
    if places.cuda_root() is None:
        pytest.skip("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    command = [sys.executable, str(ROOT / "apps" / "hpl" / "build.py")]
    command += ["--only", "program", "--only", "peerway", "--only", "cuda"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def cublas() -> list[str]:
    """The option for the toolkit's cuBLAS, which the loader may not find by itself."""
    root = places.cuda_root()
    found = sorted(root.glob("**/libcublas.so.1?")) if root is not None else []
    return ["--blas", str(found[0])] if found else []


def panels(grid: str, gpus: int) -> str:
    """Where panels are factorized: not on GPUs that ranks share, because their kernels wait for each
    other.
    """
    rows, _, columns = grid.partition("x")
    if rows == "1" or int(rows) * int(columns) <= gpus:
        return "GPUs"
    try:
        ctypes.CDLL("libopenblas.so.0")
    except OSError:
        pytest.skip("CPUs' panels need a BLAS: apt-get install libopenblas0-pthread, or use more GPUs")
    return f"CPUs: ranks 0 and {gpus} share a GPU"


# N with a narrow last panel and, with several rows, last ones of fewer blocks than ranks; NB that makes many
# steps and few. With several rows, rows are exchanged by messages, of two queues at once.
@pytest.mark.parametrize(
    ("grid", "start"),
    [
        ("1x1", "auto"),
        ("1x2", "auto"),
        ("2x1", "auto"),
        ("2x2", "host"),
        ("2x2", "stream"),
        ("3x1", "auto"),
        ("4x1", "auto"),
    ],
)
def test_each_grid_solves(
    run_program: Callable[..., subprocess.CompletedProcess[str]],
    program: str,
    gpus: int,
    grid: str,
    start: str,
) -> None:
    rows, _, columns = grid.partition("x")
    expected = panels(grid, gpus)
    command = ["peerway", "run", "-n", str(int(rows) * int(columns)), "--", program, "--device", "cuda"]
    command += ["--grid", grid, "--n", "777,5000", "--nb", "64,300", "--depth", "0,1", "--json", *cublas()]
    done = run_program(*command, "--start", start, env=os.environ)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["passed"] for result in results] == [True] * 8, done.stdout + done.stderr
    assert {result["panels"] for result in results} == {expected}
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("grid", ["1x1", "2x1", "2x2"])
def test_a_singular_matrix_names_its_column(
    run_program: Callable[..., subprocess.CompletedProcess[str]], program: str, gpus: int, grid: str
) -> None:
    rows, _, columns = grid.partition("x")
    expected = panels(grid, gpus)
    command = ["peerway", "run", "-n", str(int(rows) * int(columns)), "--", program, "--device", "cuda"]
    command += ["--grid", grid, "--n", "777", "--nb", "64", "--matrix", "constant", "--json", *cublas()]
    done = run_program(*command, env=os.environ)
    (result,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert (result["info"], result["passed"], result["panels"]) == (2, False, expected)
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize("start", ["auto", "host", "stream"])
def test_panels_arrive_however_they_are_started(
    run_program: Callable[..., subprocess.CompletedProcess[str]], program: str, start: str
) -> None:
    command = ["peerway", "run", "-n", "2", "--", program, "--device", "cuda", "--grid", "1x2"]
    command += ["--n", "777,5000", "--nb", "64,300", "--start", start, "--json", *cublas()]
    done = run_program(*command, env=os.environ)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["passed"] for result in results] == [True] * 4, done.stdout + done.stderr
    assert start == "auto" or {result["start"] for result in results} == {start}
