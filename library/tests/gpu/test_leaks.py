"""What thousands of rounds leave behind: nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "rounds.py"
MOST_MEMORY = 16 << 20  # bytes that the allocators of a process may keep; 5,000 regions that stay are more


@pytest.mark.parametrize("memory", ["cuda", "torch"])
def test_rounds_of_register_import_put_and_close_leave_nothing(
    memory: str, kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    pytest.importorskip("torch")
    command = ["peerway", "run", "-n", "2", "--grace", "60", "--", sys.executable, PROGRAM, memory, "5000"]
    done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert done.returncode == 0, done.stderr
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(replies) == 2
    for reply in replies:
        assert reply["gpu"] <= 0, reply
        assert reply["descriptors"] <= 0, reply
        assert reply["memory"] < MOST_MEMORY, reply
