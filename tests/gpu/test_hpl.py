"""apps/hpl on GPUs: right on every grid, where ranks share GPUs, too."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from peerway.bench.peers import places

ROOT = Path(__file__).resolve().parents[2]


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
    """The option that names the toolkit's, which need not be where the loader looks."""
    root = places.cuda_root()
    found = sorted(root.glob("**/libcublas.so.1?")) if root is not None else []
    return ["--blas", str(found[0])] if found else []


# N with a narrow last panel, NB that makes many steps and few. With several rows, panels are factorized on
# the CPUs and rows are exchanged by messages, of two queues at once.
@pytest.mark.parametrize("grid", ["1x1", "1x2", "2x1", "2x2"])
def test_each_grid_solves(
    run_program: Callable[..., subprocess.CompletedProcess[str]], program: str, grid: str
) -> None:
    rows, _, columns = grid.partition("x")
    if rows != "1":
        try:
            ctypes.CDLL("libopenblas.so.0")
        except OSError:
            pytest.skip(
                "panels of several ranks need a BLAS on the CPU: apt-get install libopenblas0-pthread"
            )
    command = ["peerway", "run", "-n", str(int(rows) * int(columns)), "--", program, "--device", "cuda"]
    command += ["--grid", grid, "--n", "777,5000", "--nb", "64,300", "--depth", "0,1", "--json", *cublas()]
    done = run_program(*command, env=os.environ)
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["passed"] for result in results] == [True] * 8, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr


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
