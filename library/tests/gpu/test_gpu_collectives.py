"""Collectives in GPU memory: the program of the tests on the host, which compares every bit. Ranks share a
GPU where there are fewer GPUs than ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from check_lines import right

PROGRAM = Path(__file__).resolve().parents[1] / "system" / "programs" / "collectives.py"

FEW = 11  # cases of the program

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def right_cases(kernels: Path, run_program: Run) -> Callable[..., int]:
    """Run the cases; returns how many rank 0 took part in. All must be right."""

    def run(ranks: int, *arguments: str, **settings: str) -> int:
        command = ["peerway", "run", "-n", str(ranks), "--grace", "60", "--", sys.executable, str(PROGRAM)]
        environment = {**os.environ, "PEERWAY_CACHE": str(kernels), **settings}
        done = run_program(*command, *arguments, env=environment)
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert [wrong for wrong, _ in answers] == [[]] * ranks
        return min(int(count) for _, count in answers)

    return run


@pytest.fixture
def mps(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings with which kernels of several processes run on one GPU at the same time."""
    if shutil.which("nvidia-cuda-mps-control") is None:
        pytest.skip("nvidia-cuda-mps-control is not on the PATH")
    settings = {"CUDA_MPS_PIPE_DIRECTORY": str(tmp_path), "CUDA_MPS_LOG_DIRECTORY": str(tmp_path)}
    environment = {**os.environ, **settings}
    subprocess.run(["nvidia-cuda-mps-control", "-d"], env=environment, check=True)
    yield settings
    subprocess.run(["nvidia-cuda-mps-control"], input="quit", text=True, env=environment, check=True)


def test_collectives_of_each_kind_type_and_operation(right_cases: Callable[..., int]) -> None:
    assert right_cases(2, "cuda", "graph", PEERWAY_COLLECTIVE_METHOD="two-shot") > 80


def test_waits_leave_room_on_the_gpu_for_the_kernels_that_they_wait_for(
    mps: dict[str, str], right_cases: Callable[..., int]
) -> None:
    """What combines 300,000 elements fills a GPU, and would keep the other rank from sending its own."""
    assert right_cases(2, "cuda", "stream", PEERWAY_COLLECTIVE_METHOD="one-shot", **mps) > 80


@pytest.mark.parametrize("begin", ["host", "run", "graph"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_by_the_method_of_the_table(
    ranks: int, begin: str, right_cases: Callable[..., int]
) -> None:
    assert right_cases(ranks, "cuda", begin, "few") == FEW


@pytest.mark.parametrize("method", ["one-shot", "two-shot"])
@pytest.mark.parametrize("paths", ["plan/packets", "plan/lines", "plan/straight", "plan/posted"])
def test_collectives_by_each_method_of_plans(
    paths: str, method: str, right_cases: Callable[..., int], gpus: int
) -> None:
    if paths == "plan/lines" and gpus < 2:
        pytest.skip("lines need NVLink between two GPUs; here is 1")
    settings = {"PEERWAY_PATHS": paths, "PEERWAY_COLLECTIVE_METHOD": method}
    assert right_cases(2, "cuda", "stream", "few", **settings) == FEW


@pytest.mark.parametrize("method", ["tree", "ring"])
@pytest.mark.parametrize("ranks", [3, 4])
def test_collectives_of_many_rounds(ranks: int, method: str, right_cases: Callable[..., int]) -> None:
    assert right_cases(ranks, "cuda", "graph", "few", PEERWAY_COLLECTIVE_METHOD=method) == FEW


def test_a_killed_rank_ends_a_collective_on_a_stream(kernels: Path, run_program: Run) -> None:
    program = [sys.executable, str(PROGRAM), "lost", "stream", "cuda"]
    command = ["peerway", "run", "-n", "2", "--grace", "600", "--", *program]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert done.returncode == 137, done.stderr
    kind, message, status = json.loads(done.stdout.splitlines()[-1])
    assert (kind, status) == ("PeerLost", "peer_lost")
    assert "rank 1" in message


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_kernels_combine_the_elements_of_an_all_reduce(
    ranks: int, all_reduce_check: Path, kernels: Path, run_program: Run
) -> None:
    command = ["peerway", "run", "-n", str(ranks), "--grace", "60", "--", str(all_reduce_check), "values"]
    settings = {"PEERWAY_CACHE": str(kernels), "PEERWAY_COLLECTIVE_METHOD": "one-shot"}
    done = run_program(*command, env={**os.environ, **settings})
    assert right(done.stdout) == 26 * ranks, done.stderr
    assert done.returncode == 0, done.stderr


def test_a_killed_rank_ends_an_all_reduce_inside_a_kernel(
    all_reduce_check: Path, kernels: Path, run_program: Run
) -> None:
    command = ["peerway", "run", "-n", "2", "--grace", "60", "--", str(all_reduce_check), "lost"]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert right(done.stdout) == 1, done.stderr
    assert done.returncode == 137, done.stderr
