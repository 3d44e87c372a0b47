"""Plans, lanes and one-sided device functions between two ranks, which share a GPU where there is one:
programs/plan_check, which compares every byte of messages that differ from epoch to epoch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from check_lines import right

Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAMS = Path(__file__).parent / "programs"


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


@pytest.mark.parametrize(("group", "checks"), [("lost-on-streams", 2), ("lost-in-kernels", 3)])
def test_a_rank_killed_in_the_middle_releases_the_other(group: str, checks: int, checked: Run) -> None:
    done = checked(group)
    assert right(done.stdout) == checks, done.stderr
    assert done.returncode == 137, done.stderr


def test_a_wait_of_many_warps_slows_no_message_down(run_program: Run, gpus: int) -> None:
    if gpus < 2:
        pytest.skip(f"ranks that share a GPU take turns, which hides what a wait costs; here is {gpus}")
    done = run_program("peerway", "run", "-n", "2", "--", sys.executable, PROGRAMS / "late_peer.py")
    assert done.returncode == 0, done.stderr
    late = next(times for times in map(json.loads, done.stdout.splitlines()) if times["rank"] == 1)
    assert late["blocks"] < 5 * late["warp"], "the waiting warps poll host memory, one after another"
