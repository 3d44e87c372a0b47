"""A NIC at every limit that nic.h allows, and one that has no room at random: nothing hangs, no byte is
wrong, and nobody asks for more than the NIC states (limited_nic.cpp refuses that, and tells)."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from launching import LIMIT, Run, compile_nic, source_of
from mpi_stacks import build, over, over_nic_alone
from ranks import Ranks

OPTIONAL = "put_strided+put_with_word+fetch_add+event"
SMALL = "largest=4096,copied=8,names=64"
# Each set of guarantees, with the fewest optional entries allowed, and with as many as the full NIC has.
LIMITS = {
    f"guarantees {guarantees}, {name}": f"guarantees={guarantees},{limits}"
    for guarantees in range(4)
    for name, limits in {
        "small": SMALL,
        "one at a time": f"{SMALL},in_flight=1,without={OPTIONAL}",
        "busy": f"{SMALL},busy=3,without={OPTIONAL}",
        "busy with extras": "busy=3",
        "busy, one at a time": "in_flight=1,busy=3",
        "few bytes, extras": "copied=8,in_flight=2,busy=5,without=arm",
    }.items()
}


@dataclass(frozen=True, slots=True)
class Job:
    """A program of ranks, and what each rank must print."""

    program: tuple[str, ...]
    answers: tuple[dict[str, object], ...]
    limits: tuple[str, ...] = ()  # limits to run at; empty: all limits with random lack of space
    more: str = ""  # further limits


ORDER = Job(
    ("ucx_ranks.py", "order,threads,signals", str(1 << 16)),
    (
        {"wrong": 0, "value": 200},
        {"failures": [], "arrived": True, "back": True},
        {"reached": "", "beyond": "Timeout", "value": 15},
    ),
)
STRIDED = Job(
    ("transfers.py", "nic:limited", "put,malloc,allocated,few"),
    ({"available": True, "wrong": []},),
    ("guarantees 3, busy with extras", "guarantees 0, one at a time"),
    more="largest=4096,",
)
HALO = {"extents": [7, 90], "grid": [2, 1], "corners": True, "start": "ahead", "rounds": 50}
HALOS = Job(
    ("far.py", "halo.py", json.dumps(HALO)),
    ({"wrong": []},),
    ("guarantees 0, busy", "guarantees 1, one at a time"),
)
LONG = pytest.mark.long
ALWAYS = [
    pytest.param("openmpi-debian", "guarantees 3, busy", 1, marks=LONG),
    pytest.param("mpich-debian", "guarantees 0, one at a time", 1, marks=LONG),
    pytest.param("mpich-debian", "guarantees 2, busy with extras", 1, marks=LONG),
    ("openmpi-debian", "guarantees 1, few bytes, extras", 1),
]
MATRIX = [(stack, limits) for stack in ("openmpi-debian", "mpich-debian") for limits in LIMITS]
ROUNDS = int(os.environ.get("PEERWAY_TEST_NIC_LIMITS", "0"))  # of the whole matrix; each has other seeds


@pytest.fixture(scope="module")
def nic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plugin of the NIC with limits."""
    return compile_nic(source_of("limited_nic.cpp"), tmp_path_factory.mktemp("nics"))


def cases() -> list[Any]:
    """Stack, limits and seed of each case."""
    return [(*case, seed) for seed in range(ROUNDS) for case in MATRIX] or ALWAYS


@pytest.mark.parametrize(("stack", "limits", "seed"), cases())
def test_mpi_runs_at_the_limits(
    stack: str, limits: str, seed: int, nic: Path, mpi_folder: Path, run: Run
) -> None:
    program = build(stack, "mpi_verify", mpi_folder)
    stated = f"{LIMITS[limits]},seed={seed}"
    command = over(stack, nic, 2, program, "1", "20000", LIMITED_NIC=stated)
    variables = over_nic_alone(stack) | {"LIMITED_NIC": stated}
    done = run(command, env=variables, timeout=LIMIT)  # slow is not hanging
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout
    assert "limited_nic" not in done.stderr


@pytest.mark.long
def test_ranks_run_at_the_limits(nic: Path) -> None:
    """Puts, signals, threads, strided puts, plans and halos: all in one set of processes, which open the NIC
    anew with the limits of each job."""
    over_nic = {"PEERWAY_NIC": str(nic), "PEERWAY_PATHS": "nic:limited", "FAR_RANKS": "1"}
    busy = [name for name in LIMITS if ROUNDS or name.endswith((", busy", "with extras"))]
    jobs = [(job, limits, "busy-poll") for job in (ORDER, STRIDED, HALOS) for limits in job.limits or busy]
    # Sleeping ranks soon look again for space that no event announces; otherwise this would take minutes.
    jobs += [(ORDER, limits, "blocking") for limits in busy if limits.endswith("extras")]
    words = [
        json.dumps(
            [
                {**over_nic, "LIMITED_NIC": f"{job.more}{LIMITS[limits]}", "PEERWAY_WAIT": policy},
                *job.program,
            ]
        )
        for job, limits, policy in jobs
    ]
    with Ranks("in_turn.py", 2, *words) as ranks:
        for job, limits, policy in jobs:
            for answer in job.answers:
                for report in ranks.read_all():
                    assert report | answer == report, f"{job.program[0]} at {limits}, {policy}"
        ranks.end()
        assert [ranks.errors(rank) for rank in range(2)] == ["", ""]
