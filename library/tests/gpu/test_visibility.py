"""Two ranks of which each sees only its own GPU, as when Slurm or a wrapper hides the others.

All paths and kinds of memory between them work as if both saw both GPUs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from check_lines import right
from launching import seeing

PROGRAMS = Path(__file__).parent / "programs"
MEMORIES = "cuda,cuda-malloc,cuda-pool"
Answers = Callable[..., list[dict[str, Any]]]


def uuids() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.split()


@pytest.fixture(autouse=True, scope="module")
def two_gpus(gpus: int) -> None:
    if gpus < 2:
        pytest.skip("needs two GPUs")


@pytest.fixture
def answers(kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]) -> Answers:
    """Run a program of this folder as two ranks that see these GPUs; returns the lines that they print."""

    def run(visible: tuple[str, str], program: str, *arguments: str) -> list[dict[str, Any]]:
        command = ["peerway", "run", "-n", "2", "--grace", "60", "--", *seeing(*visible)]
        command += [sys.executable, str(PROGRAMS / program), *arguments]
        done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
        assert done.returncode == 0, done.stderr
        return sorted(map(json.loads, done.stdout.splitlines()), key=lambda reply: reply["rank"])

    return run


@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged", "mapped"])
@pytest.mark.parametrize("visible", ["0 1", "1 0", "0,1 1", "0,1 1,0", "uuids"])
def test_memory_of_a_gpu_that_the_rank_does_not_see(visible: str, path: str, answers: Answers) -> None:
    if path in ("staged", "mapped") and visible != "0 1":
        pytest.skip("these go through the host, whatever is visible")
    first, second = uuids()[:2] if visible == "uuids" else visible.split()
    local = "host" if path == "mapped" else MEMORIES
    replies = answers((first, second), "gpu_transfers.py", path, "put,get,signal", local, "cuda")
    assert len(replies) == 2 * 3 * (local.count(",") + 1)
    for reply in replies:
        if path == "mapped" and not reply["available"]:
            continue  # this machine's CPU maps no GPU memory
        assert reply["available"], reply["why"]
        assert reply["wrong"] == []


@pytest.mark.parametrize("group", ["exchange", "lanes", "one-sided"])
def test_plans_between_gpus_hidden_from_each_other(
    group: str, plan_check: Path, kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    command = ["peerway", "run", "-n", "2", "--grace", "60", "--", *seeing("0", "1"), str(plan_check), group]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert right(done.stdout) > 0, done.stderr
    assert done.returncode == 0, done.stderr


def test_every_operation_goes_by_the_same_path_and_method(answers: Answers) -> None:
    both, apart = (answers(visible, "gpu_routes.py") for visible in (("0,1", "0,1"), ("0", "1")))
    # The numbers of the GPUs depend on the order in which each rank sees them.
    for answer in (*both, *apart):
        for decision in answer["decisions"].values():
            for name in ("from", "to", "local", "remote"):
                decision.pop(name, None)
    assert both == apart
