"""A NIC at every limit that nic.h allows, and one that has no room at random: nothing hangs, no byte is
wrong, and nobody asks for more than the NIC states (limited_card.cpp refuses that, and tells)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from launching import PROGRAMS, Run, compile_card
from mpi_stacks import build, environment, over
from ranks import Ranks

OPTIONAL = "put_strided+put_with_word+fetch_add+event"
SMALL = "largest=4096,copied=8,names=64"
# Each set of promises, with as little as a card may have, and with as much as the full card has.
LIMITS = {
    f"promises {promises}, {name}": f"promises={promises},{limits}"
    for promises in range(4)
    for name, limits in {
        "small": SMALL,
        "one at a time": f"{SMALL},in_flight=1,without={OPTIONAL}",
        "busy": f"{SMALL},busy=3,without={OPTIONAL}",
        "busy with extras": "busy=3",
        "busy, one at a time": "in_flight=1,busy=3",
        "few bytes, extras": "copied=8,in_flight=2,busy=5,without=arm",
    }.items()
}
ALWAYS = [
    ("openmpi-debian", "promises 3, busy"),
    ("mpich-debian", "promises 0, one at a time"),
    ("mpich-debian", "promises 2, busy with extras"),
    ("openmpi-debian", "promises 1, few bytes, extras"),
]
MATRIX = [(stack, limits) for stack in ("openmpi-debian", "mpich-debian") for limits in LIMITS]
ROUNDS = int(os.environ.get("PEERWAY_NIC_LIMITS", "0"))  # of the whole matrix; each has other seeds


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card at the limits."""
    return compile_card(PROGRAMS / "limited_card.cpp", tmp_path_factory.mktemp("cards"))


def cases() -> list[tuple[str, str, int]]:
    """Stack, limits and seed."""
    return [(*case, seed) for seed in range(ROUNDS) for case in MATRIX] or [(*case, 1) for case in ALWAYS]


@pytest.mark.parametrize(("stack", "limits", "seed"), cases())
def test_mpi_runs_at_the_limits(
    stack: str, limits: str, seed: int, card: Path, mpi_folder: Path, run: Run
) -> None:
    program = build(stack, "mpi_verify", mpi_folder)
    stated = f"{LIMITS[limits]},seed={seed}"
    command = over(stack, card, 2, program, "1", "20000", LIMITED_CARD=stated)
    done = run(command, env=environment(LIMITED_CARD=stated))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout
    assert "limited_card" not in done.stderr


@pytest.mark.parametrize(
    "limits", [name for name in LIMITS if ROUNDS or name.endswith((", busy", "with extras"))]
)
def test_puts_signals_and_threads_run_at_the_limits(limits: str, card: Path) -> None:
    settings = {"PEERWAY_NIC": str(card), "PEERWAY_PATHS": "nic:limited", "LIMITED_CARD": LIMITS[limits]}
    with Ranks("ucx_ranks.py", 2, "order,threads,signals", 1 << 18, FAR_RANKS="1", **settings) as ranks:
        assert ranks.read_all() == [{"wrong": 0, "value": 200}] * 2
        assert ranks.read_all() == [{"failures": [], "arrived": True, "back": True}] * 2
        assert ranks.read_all() == [{"reached": "", "beyond": "Timeout", "value": 15}] * 2
        ranks.end()
        assert [ranks.errors(rank) for rank in range(2)] == ["", ""]


@pytest.mark.parametrize("limits", ["promises 3, busy with extras", "promises 0, one at a time"])
def test_strided_puts_run_at_the_limits(limits: str, card: Path) -> None:
    settings = {"PEERWAY_NIC": str(card), "LIMITED_CARD": f"largest=4096,{LIMITS[limits]}"}
    with Ranks("transfers.py", 2, "nic:limited", "put,malloc,allocated,signal", **settings) as ranks:
        for one in ranks.read_all():
            assert one["available"], one
            assert one["wrong"] == []
        ranks.end()
        assert [ranks.errors(rank) for rank in range(2)] == ["", ""]


@pytest.mark.parametrize("limits", ["promises 0, busy", "promises 1, one at a time"])
def test_plans_and_halos_run_at_the_limits(limits: str, card: Path) -> None:
    settings = {"PEERWAY_NIC": str(card), "PEERWAY_PATHS": "nic:limited", "LIMITED_CARD": LIMITS[limits]}
    case = {"extents": [7, 90], "grid": [2, 1], "corners": True, "start": "ahead", "rounds": 50}
    with Ranks("far.py", 2, "halo.py", json.dumps(case), **settings) as ranks:
        assert [one["wrong"] for one in ranks.read_all()] == [[], []]
        ranks.end()
        assert [ranks.errors(rank) for rank in range(2)] == ["", ""]
