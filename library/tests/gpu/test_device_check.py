"""The C++ checks of the CUDA device between two processes (programs/device_check.cpp), told one by one."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_all_that_two_processes_do_with_the_device(
    kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    build = Path(os.environ.get("PEERWAY_BUILD", ROOT / "build" / "editable"))
    program = build / "library" / "tests" / "gpu" / "programs" / "device_check"
    if not program.exists():
        pytest.skip(f"{program} is not built: run `make gpu-test`, or cmake with -DPEERWAY_GPU_TESTS=ON")
    done = run_program(program, env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    checks = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [f"{check['check']}: {check['detail']}" for check in checks if not check["ok"]]
    assert failed == []
    assert done.returncode == 0, done.stderr
    assert checks
