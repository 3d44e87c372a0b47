"""The backend of torch.distributed on GPUs: each operation, in the order of streams and in CUDA graphs;
training by DDP and FSDP2 beside NCCL; a transformer block in inference. Ranks share a GPU where there are
fewer GPUs than ranks; NCCL cannot, so that training is then compared with gloo's on the CPU.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SYSTEM = Path(__file__).resolve().parents[1] / "system" / "programs"
HERE = Path(__file__).resolve().parent / "programs"

Run = Callable[..., subprocess.CompletedProcess[str]]
Answers = Callable[..., list[Any]]


def why_without_torch() -> str:
    """Why PyTorch cannot be used here; empty if it can."""
    if importlib.util.find_spec("torch") is None:
        return "no PyTorch (pip install 'peerway[torch]')"
    probe = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, check=False)
    return "" if done.returncode == 0 else "PyTorch has no CUDA here"


pytestmark = pytest.mark.skipif(bool(why_without_torch()), reason=why_without_torch() or "PyTorch is there")


@pytest.fixture
def answers(kernels: Path, run_program: Run, tmp_path: Path) -> Answers:
    """Run a program of so many ranks; returns the line of JSON of each."""

    def run(ranks: int, program: Path, *arguments: str) -> list[Any]:
        command = ["peerway", "run", "-n", str(ranks), "--grace", "60", "--", sys.executable, str(program)]
        meeting = str(tmp_path / "meeting")
        environment = {**os.environ, "PEERWAY_CACHE": str(kernels)}
        done = run_program(*command, meeting, *arguments, env=environment)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == ranks, done.stdout
        return lines

    return run


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_operations_on_tensors_of_gpus(ranks: int, answers: Answers) -> None:
    cases = answers(ranks, SYSTEM / "torch_operations.py", "cuda")
    assert [wrong for wrong, _ in cases] == [[]] * ranks
    assert all(right > 200 for _, right in cases)


@pytest.mark.parametrize("ranks", [2, 4])
def test_operations_in_streams_and_in_graphs(ranks: int, answers: Answers) -> None:
    assert answers(ranks, HERE / "torch_streams.py") == [[]] * ranks


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_losses_of_training_are_those_over_another_backend(
    ranks: int, kind: str, gpus: int, answers: Answers
) -> None:
    other = ("nccl", "cuda") if gpus >= ranks else ("gloo", "cpu")
    for ours, theirs in answers(ranks, SYSTEM / "torch_training.py", kind, "cuda", *other):
        assert ours == pytest.approx(theirs, rel=1e-5 if other[0] == "nccl" else 1e-3)
        assert ours[-1] < ours[0]


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_block_with_its_tensors_in_parallel_computes_what_the_whole_block_does(
    ranks: int, answers: Answers
) -> None:
    assert answers(ranks, SYSTEM / "torch_tensor_parallel.py", "cuda") == [[]] * ranks


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_other_rank_is_told_of_a_killed_rank(
    how: str, kernels: Path, run_program: Run, tmp_path: Path
) -> None:
    meeting = str(tmp_path / "meeting")
    program = [sys.executable, str(SYSTEM / "torch_lost.py"), meeting, how, "cuda"]
    command = ["peerway", "run", "-n", "2", "--grace", "600", "--", *program]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert done.returncode == 137, done.stderr
    kind, message = json.loads(done.stdout.splitlines()[-1])
    assert kind == "DistBackendError"
    assert "rank 1" in message
