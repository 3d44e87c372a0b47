"""Collectives in GPU memory: the program of the tests on the host, which compares every bit. Ranks share a
GPU where there are fewer GPUs than ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "system" / "programs" / "collectives.py"

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


@pytest.mark.parametrize(("begin", "method"), [("stream", "one-shot"), ("graph", "two-shot")])
def test_collectives_of_each_kind_type_and_operation(
    begin: str, method: str, right_cases: Callable[..., int]
) -> None:
    assert right_cases(2, "cuda", begin, PEERWAY_COLLECTIVE_METHOD=method) > 80


@pytest.mark.parametrize("begin", ["host", "run", "graph"])
@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives_by_the_method_of_the_table(
    ranks: int, begin: str, right_cases: Callable[..., int]
) -> None:
    assert right_cases(ranks, "cuda", begin, "few") == 7


@pytest.mark.parametrize("method", ["one-shot", "two-shot"])
@pytest.mark.parametrize("paths", ["plan/packets", "plan/lines", "plan/straight", "plan/posted"])
def test_collectives_by_each_method_of_plans(
    paths: str, method: str, right_cases: Callable[..., int]
) -> None:
    settings = {"PEERWAY_PATHS": paths, "PEERWAY_COLLECTIVE_METHOD": method}
    assert right_cases(2, "cuda", "stream", "few", **settings) == 7


def test_a_killed_rank_ends_a_collective_on_a_stream(kernels: Path, run_program: Run) -> None:
    program = [sys.executable, str(PROGRAM), "lost", "stream", "cuda"]
    command = ["peerway", "run", "-n", "2", "--grace", "600", "--", *program]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert done.returncode == 137, done.stderr
    kind, message, status = json.loads(done.stdout.splitlines()[-1])
    assert (kind, status) == ("PeerLost", "peer_lost")
    assert "rank 1" in message
