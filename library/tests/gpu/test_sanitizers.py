"""NVIDIA's compute-sanitizer finds nothing in the device code of plans, lanes and one-sided operations.

It runs one kernel at a time, so two ranks of one process are driven in turn, and no kernel waits for a later
one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from check_lines import right

from peerway_measure.bench.peers import places


@pytest.fixture(scope="session")
def sanitizer() -> str:
    toolkit = places.cuda_root()
    folders = [str(toolkit / "bin")] if toolkit is not None else []
    folders += ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer"]
    found = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path=os.pathsep.join(folders)
    )
    if found is None:
        pytest.skip("compute-sanitizer was not found on the PATH, in the CUDA toolkit or in /usr/local/cuda")
    return found


def test_two_ranks_in_turn(
    plan_check: Path, kernels: Path, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = run_program(plan_check, "in-turn", env={**os.environ, "PEERWAY_CACHE": str(kernels)})
    assert right(done.stdout) > 0, done.stderr
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_it_finds_nothing(
    tool: str,
    sanitizer: str,
    plan_check: Path,
    kernels: Path,
    run_program: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = run_program(
        # A driver that refuses one kind of handle is asked for another kind, which is no error of the
        # program.
        sanitizer, "--report-api-errors", "no", "--tool", tool, "--error-exitcode", "9",
        "--print-limit", "20", plan_check, "in-turn",
        env={**os.environ, "PEERWAY_CACHE": str(kernels)},
    )  # fmt: skip
    said = done.stdout + done.stderr
    assert done.returncode != 9, said
    assert right(done.stdout) > 0, said
    assert done.returncode == 0, said
