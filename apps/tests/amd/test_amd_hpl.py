"""apps/hpl on AMD GPUs (`make amd-test`). Nobody who works on Peerway has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from launching import ROOT

RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def program(amd: dict[str, str]) -> str:
    """The program, after building it with the device for HIP."""
    command = [sys.executable, str(ROOT / "apps" / "hpl" / "build.py")]
    command += ["--only", "program", "--only", "peerway", "--only", "hip"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "hipcc was not found" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


@pytest.mark.parametrize("grid", ["1x1", "1x2", "2x1"])
def test_each_grid_solves(run_program: RunProgram, program: str, amd: dict[str, str], grid: str) -> None:
    rows, _, columns = grid.partition("x")
    command = ["peerway", "run", "-n", str(int(rows) * int(columns)), "--", program, "--device", "hip"]
    command += ["--grid", grid, "--n", "777,5000", "--nb", "64,256", "--depth", "0,1", "--json"]
    done = run_program(*command, env={**os.environ, **amd})
    print(done.stdout)  # for the report
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [result["passed"] for result in results] == [True] * 8, done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
