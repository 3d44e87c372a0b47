"""Halos of arrays in GPU memory: the program of the tests on the host, with the numbers copied to the GPUs
and back.
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

PROGRAM = Path(__file__).resolve().parents[1] / "system" / "programs" / "halo.py"

CASES: dict[str, dict[str, Any]] = {
    "rows of two": {"extents": [6, 7], "grid": [2]},
    "columns of two": {"extents": [6, 7], "grid": [1, 2]},
    "uneven, with corners": {"extents": [7, 9], "grid": [2, 1], "corners": True},
    "structs of 192 bytes": {"extents": [4, 6, 3], "grid": [2], "dtype": "V192"},
    "several arrays": {"extents": [7, 9], "grid": [2, 1], "arrays": 3},
    "outer layers stay untouched": {
        "extents": [8, 5],
        "grid": [2],
        "shadow": [[3, 2], 1],
        "width": [[1, 2], 0],
    },
    "long faces": {"extents": [600, 5000], "grid": [2, 1]},
    "long faces in pieces": {"extents": [5000, 600], "grid": [1, 2]},
    "four dimensions": {"extents": [8, 8, 8, 8], "grid": [1, 2], "shadow": [1, 1, 0, 0], "dtype": "V192"},
}


@pytest.mark.parametrize("start", ["host", "stream", "run"])
@pytest.mark.parametrize("name", CASES)
def test_halos_hold_what_the_neighbours_own(
    name: str, start: str, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    case = json.dumps({**CASES[name], "memory": "cuda", "start": start})
    done = run_program("peerway", "run", "-n", "2", "--grace", "60", "--", sys.executable, PROGRAM, case)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["wrong"] for answer in answers] == [[], []]
    assert all(answer["filled"] > 0 for answer in answers)


TCP = {"PEERWAY_UCX": "on", "UCX_TLS": "tcp,self,cuda_copy"}
TRANSPORTS = {
    "staged": {"PEERWAY_PATHS": "staged"},
    "ucx/staged": {"PEERWAY_PATHS": "ucx/staged", **TCP},
    "nic:torus": {"PEERWAY_PATHS": "nic:torus", "PEERWAY_NIC": "torus"},
}


def exchange(
    run_program: Callable[..., subprocess.CompletedProcess[str]], settings: dict[str, str], start: str
) -> subprocess.CompletedProcess[str]:
    """A halo of GPU memory between two ranks with these settings."""
    environment = {**os.environ, **settings}
    if "PEERWAY_UCX" in settings:
        wheels = list(Path(sys.prefix).glob("lib/python3*/site-packages/libucx/lib/libucp.so.0"))
        if not wheels:
            pytest.skip("no UCX with CUDA; install libucx-cu13")
        environment["PEERWAY_UCX_LIBRARY"] = str(wheels[0])
    case = json.dumps({**CASES["uneven, with corners"], "memory": "cuda", "start": start, "rounds": 20})
    command = ["peerway", "run", "-n", "2", "--grace", "60", "--", sys.executable, str(PROGRAM), case]
    return run_program(*command, env=environment)


def test_a_network_without_rdma_refuses_gpu_memory_and_names_the_path_that_takes_it(
    run_program: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = exchange(run_program, {"PEERWAY_PATHS": "ucx/direct", **TCP}, "host")
    assert done.returncode != 0
    assert "that takes an RDMA network, and ucx/staged does without" in done.stderr


@pytest.mark.parametrize("start", ["host", "stream", "run"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_halos_that_the_proxy_carries_hold_what_the_neighbours_own(
    transport: str, start: str, run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = exchange(run_program, TRANSPORTS[transport], start)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["wrong"] for answer in answers] == [[], []]
    assert all(answer["filled"] > 0 for answer in answers)
