"""Plans, lanes and one-sided device functions between two GPUs: programs/plan_check, which compares
every byte of messages that differ from epoch to epoch.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from told import right

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True, scope="module")
def two_gpus(gpus: int) -> None:
    if gpus < 2:
        pytest.skip(f"plans between GPUs need 2 of them; here is {gpus}")


@pytest.fixture
def checked(plan_check: Path, kernels: Path, run_program: Run) -> Run:
    """Run one group of checks as two ranks."""

    def run(group: str) -> subprocess.CompletedProcess[str]:
        command = ["peerway", "run", "-n", "2", "--grace", "60", "--", plan_check, group]
        return run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})

    return run


@pytest.mark.parametrize("group", ["exchange", "lanes", "one-sided", "refusals"])
def test_between_two_ranks(group: str, checked: Run) -> None:
    done = checked(group)
    assert right(done.stdout) > 0, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("group", ["lost-on-streams", "lost-in-kernels"])
def test_a_rank_killed_in_the_middle_releases_the_other(group: str, checked: Run) -> None:
    done = checked(group)
    assert right(done.stdout) == 2, done.stderr
    assert done.returncode == 137, done.stderr
