"""The wait policy `blocking` for GPUs: the host sleeps until the driver wakes it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[1] / "system" / "programs" / "wait_policy.py"
WAITED = "1"  # seconds


@pytest.mark.parametrize("operation", ["cuda", "cuda/stream"])
def test_a_wait_for_a_plan_leaves_the_cpu_to_others(
    operation: str, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    command = ["peerway", "run", "-n", "2", "--grace", "60", "--", sys.executable]
    done = run_program(*command, PROGRAM, operation, "blocking", WAITED)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    usage = next(each for each in lines if isinstance(each, dict))
    assert usage["error"] == ""
    assert usage["wall"] > float(WAITED) / 2
    assert usage["share"] < 0.1
