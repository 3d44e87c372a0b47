"""Every path between two processes with GPUs, on a driver and a GDRCopy that are not there: the test doubles
of the unit tests, whose "GPU memory" is shared memory. The programs are those of the GPU tests."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import seeing

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "library" / "tests" / "gpu" / "programs"
SYSTEM_PROGRAMS = ROOT / "library" / "tests" / "system" / "programs"
PATHS = ["peer/copy", "peer/store", "staged"]


def mostly(always: str) -> list[Any]:
    """All paths; one runs always, the others in long runs. Each path runs always in some test."""
    return [path if path == always else pytest.param(path, marks=pytest.mark.long) for path in PATHS]


Moves = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def moves(doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]) -> Moves:
    """Run the program as two ranks; returns what each reports. `visible` are the GPUs that each rank sees."""

    def run(*arguments: str, visible: tuple[str, str] | None = None, **settings: str) -> list[dict[str, Any]]:
        program = [sys.executable, str(PROGRAMS / "gpu_transfers.py"), *arguments]
        command = ["peerway", "run", "-n", "2", "--", *(seeing(*visible) if visible else ()), *program]
        done = run_program(*command, env={**os.environ, **doubles, **settings})
        assert done.returncode == 0, done.stderr
        outcomes = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(outcomes) == 2 * math.prod(words.count(",") + 1 for words in arguments)
        return outcomes

    return run


def all_right(results: list[dict[str, Any]]) -> bool:
    for outcome in results:
        assert outcome["available"], (outcome["what"], outcome["why"])
        assert outcome["cases"] > 0
        assert outcome["wrong"] == [], outcome["what"]
    return True


@pytest.mark.parametrize("path", mostly("staged"))
def test_gpu_memory_of_a_peer(path: str, moves: Moves) -> None:
    assert all_right(moves(path, "put,get,signal", "cuda,cuda-malloc", "cuda,host"))


@pytest.mark.parametrize(
    ("path", "visible"),
    [
        ("peer/copy", ("0", "1")),
        pytest.param("peer/store", ("0", "1"), marks=pytest.mark.long),
        pytest.param("peer/copy", ("1", "0"), marks=pytest.mark.long),
        pytest.param("peer/copy", ("0,1", "1"), marks=pytest.mark.long),
        pytest.param("peer/copy", ("0,1", "1,0"), marks=pytest.mark.long),
    ],
)
def test_a_gpu_that_only_the_peer_sees_is_reached_directly(
    path: str, visible: tuple[str, str], moves: Moves
) -> None:
    assert all_right(moves(path, "put,get,signal", "cuda,cuda-malloc,cuda-pool", "cuda", visible=visible))


def test_a_gpu_that_may_not_be_opened_is_reached_through_the_host(moves: Moves) -> None:
    apart = {"FAKE_NVML_APART": "1"}
    for answer in moves("peer/copy", "put", "cuda", "cuda", visible=("0", "1"), **apart):
        assert not answer["available"]
        assert "--gres-flags=allow-task-sharing" in answer["why"]
    assert all_right(moves("staged", "put", "cuda", "cuda", visible=("0", "1"), **apart))


def test_gpu_memory_over_a_nic(moves: Moves) -> None:
    assert all_right(moves("nic:torus", "put,get,signal", "cuda,host", "cuda", PEERWAY_NIC="torus"))


@pytest.mark.parametrize("path", [*mostly("peer/copy"), "mapped"])
def test_gpu_memory_here_and_host_memory_of_a_peer(path: str, moves: Moves) -> None:
    assert all_right(moves(path, "put,get,signal", "host", "cuda"))


@pytest.mark.parametrize("path", mostly("peer/store"))
def test_two_ranks_on_one_gpu(path: str, moves: Moves) -> None:
    assert all_right(moves(path, "put", "cuda-pool,cuda", "cuda-malloc", "no"))


def test_the_cpu_maps_gpu_memory_by_dma_buf_without_gdrcopy(moves: Moves) -> None:
    nowhere = "/nowhere/libgdrapi.so.2"
    assert all_right(moves("mapped", "put,get", "host", "cuda", PEERWAY_GDRCOPY_LIBRARY=nowhere))


def test_mapped_says_why_it_cannot_serve(moves: Moves) -> None:
    outcomes = moves("mapped", "put", "cuda,malloc,host", "cuda,host")
    why = {tuple(outcome["what"][2:]): outcome["why"] for outcome in outcomes}
    assert "only the owner of GPU memory" in why["cuda", "host"]
    assert "pw_region_allocate" in why["malloc", "cuda"]
    assert "peer/shm" in why["host", "host"]


@pytest.mark.parametrize(
    ("memory", "reason"),
    [("malloc", "pw_region_allocate"), pytest.param("cuda-async", "handleTypes", marks=pytest.mark.long)],
)
def test_memory_that_cannot_be_exported_goes_through_the_host(memory: str, reason: str, moves: Moves) -> None:
    refused = moves("peer/copy", "put", memory, "cuda")
    assert all(not outcome["available"] and reason in outcome["why"] for outcome in refused)
    assert all_right(moves("staged", "put", memory, "cuda"))


@pytest.mark.parametrize("path", mostly("peer/copy"))
def test_a_rank_killed_in_the_middle_is_lost_to_the_other(
    path: str, doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, str(PROGRAMS / "gpu_lost.py"), path]
    done = run_program(
        "peerway", "run", "-n", "2", "--grace", "600", "--", *program, env={**os.environ, **doubles}
    )
    assert done.returncode == 137, done.stderr
    (report,) = map(json.loads, done.stdout.splitlines())
    assert report["rank"] == 0
    assert "rank 1" in report["put"]
    assert "rank 1" in report["wait"]


def test_plans_notify_and_await_signals_in_gpu_memory(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, str(SYSTEM_PROGRAMS / "device_signals.py"), "put_and_wait"]
    done = run_program("peerway", "run", "-n", "2", "--", *program, env={**os.environ, **doubles})
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2
    for answer in answers:
        assert answer["right"] == 20
        assert answer["value"] == answer["began_at"] == 40  # kernels continue from where the plan was
        assert "memory of its cuda:" in answer["refused"]
        assert answer["handles"] == [24, 24, 56]


@pytest.mark.long
def test_nothing_that_has_ended_ends_the_process(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, "-X", "faulthandler", str(SYSTEM_PROGRAMS / "lifetimes.py"), "cuda", "1"]
    done = run_program(*program, env={**os.environ, **doubles})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_runs_of_plans_between_copies_and_on_a_condition(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    scenarios = ["between,256", "between,200000", "conditional,256", "conditional,200000"]
    program = [sys.executable, str(SYSTEM_PROGRAMS / "other_device.py"), "cuda", *scenarios]
    done = run_program("peerway", "run", "-n", "2", "--", *program, env={**os.environ, **doubles})
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[]"] * 2 * len(scenarios)


def test_kernels_get_the_ends_of_lanes_and_a_fifo(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, str(SYSTEM_PROGRAMS / "device_signals.py"), "lanes_and_fifo"]
    done = run_program("peerway", "run", "-n", "2", "--", *program, env={**os.environ, **doubles})
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2
    for answer in answers:
        slot, unit, partner = 1024, 8, answer["lanes"][0][2]
        assert answer["lanes"] == [[slot, unit, partner], [slot, unit, partner]]
        assert f"no send with rank {partner} and tag 8" in answer["refused"]
        assert answer["right"] == [True] * 4
        assert answer["shown"].startswith("<peerway.Fifo on cuda:")


def test_waits_for_a_signal_in_gpu_memory_end_with_its_sender(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, str(SYSTEM_PROGRAMS / "device_signals.py"), "lost"]
    done = run_program(
        "peerway", "run", "-n", "2", "--grace", "600", "--", *program, env={**os.environ, **doubles}
    )
    assert done.returncode == 137, done.stderr
    (report,) = map(json.loads, done.stdout.splitlines())
    assert "rank 1" in report["wait"]
    assert "rank 1" in report["check"]


@pytest.mark.parametrize(
    ("ranks", "begin", "paths", "method", "few"),
    [
        (2, "stream", "", "one-shot", []),
        (2, "graph", "", "two-shot", []),
        (2, "host", "plan/straight", "two-shot", ["few"]),
        (2, "run", "plan/posted", "two-shot", ["few"]),
        (3, "graph", "", "tree", ["few"]),
        (3, "stream", "", "ring", ["few"]),
    ],
)
def test_collectives_in_gpu_memory(
    ranks: int,
    begin: str,
    paths: str,
    method: str,
    few: list[str],
    doubles: dict[str, str],
    run_program: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    program = [sys.executable, str(SYSTEM_PROGRAMS / "collectives.py"), "cuda", begin, *few]
    settings = {"PEERWAY_PATHS": paths, "PEERWAY_COLLECTIVE_METHOD": method}
    command = ["peerway", "run", "-n", str(ranks), "--", *program]
    done = run_program(*command, env={**os.environ, **doubles, **settings})
    assert done.returncode == 0, done.stderr
    for wrong, right in map(json.loads, done.stdout.splitlines()):
        assert wrong == []
        assert right == 11 if few else right > 80


def test_the_other_ranks_of_a_collective_on_streams_are_told_of_a_killed_rank(
    doubles: dict[str, str], run_program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    program = [sys.executable, str(SYSTEM_PROGRAMS / "collectives.py"), "lost", "stream", "cuda"]
    settings = {"PEERWAY_COLLECTIVE_METHOD": "two-shot"}
    done = run_program(
        "peerway",
        "run",
        "-n",
        "3",
        "--grace",
        "600",
        "--",
        *program,
        env={**os.environ, **doubles, **settings},
    )
    assert done.returncode == 137, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2
    for kind, message, status in answers:
        assert (kind, status) == ("PeerLost", "peer_lost")
        assert "rank 1" in message
