"""The GPU tests: skipped, with the reason, where there is no GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peerway import _core

PROGRAMS = Path(__file__).parent / "programs"

Ranks = Callable[..., tuple[int, list[dict[str, Any]], str]]


@pytest.fixture(autouse=True, scope="session")
def gpus() -> int:
    """How many GPUs this process sees; at least one."""
    count = sum(name.startswith("cuda") for name, _ in _core.devices())
    if count == 0:
        pytest.skip(f"no GPU: {_core.why_no_cuda()}")
    return count


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of compiled kernels, one for all tests."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def two_ranks(kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]) -> Ranks:
    """Run a program of this folder as two ranks: its exit code, what it said in JSON, and its errors."""

    def run(program: str, *arguments: str, **settings: str) -> tuple[int, list[dict[str, Any]], str]:
        command = ["peerway", "run", "-n", "2", "--grace", "60", "--"]
        command += [sys.executable, str(PROGRAMS / program), *arguments]
        done = run_program(*command, env={**os.environ, "PEERWAY_CACHE": str(kernels), **settings})
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    return run
