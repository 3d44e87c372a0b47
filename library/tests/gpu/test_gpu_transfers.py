"""Transfers between two ranks, each on a GPU of its own where there are two: every path, both directions,
contiguous and block-strided, all kinds of memory. The program compares every byte of the target through
copies of the driver.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

Ranks = Callable[..., tuple[int, list[dict[str, Any]], str]]

NIC = "nic:torus"
PATHS = ["peer/copy", "peer/store", "mapped", "staged", NIC]


def transfer(ranks: Ranks, path: str, op: str, remote: str, local: str) -> None:
    """Check all cases; if the path says why it cannot serve the pair, skip the test."""
    for outcome in answers(ranks, path, op, remote, local):
        if not outcome["available"]:
            assert path not in ("staged", NIC), outcome["why"]
            assert outcome["why"]
            pytest.skip(f"{path}, {remote} and {local}: {outcome['why']}")
        assert outcome["cases"] > 0
        assert outcome["wrong"] == []


def answers(ranks: Ranks, path: str, op: str, remote: str, local: str) -> list[dict[str, Any]]:
    for kind in (remote, local):
        library = kind.partition("-")[0]
        if library in ("cupy", "torch") and importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    settings = {"PEERWAY_NIC": "torus"} if path == NIC else {}
    status, outcomes, errors = ranks("gpu_transfers.py", path, op, remote, local, **settings)
    assert status == 0, errors
    assert len(outcomes) == 2
    return outcomes


@pytest.mark.parametrize("pair", ["cuda cuda", "cuda host", "host cuda"])
@pytest.mark.parametrize("op", ["put", "get", "signal"])
@pytest.mark.parametrize("path", PATHS)
def test_memory_of_peerway(path: str, op: str, pair: str, two_ranks: Ranks) -> None:
    transfer(two_ranks, path, op, *pair.split())


@pytest.mark.parametrize("memory", ["cuda-malloc", "cuda-pool", "cupy", "torch"])
@pytest.mark.parametrize("op", ["put", "get"])
@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged", NIC])
def test_memory_of_others(path: str, op: str, memory: str, two_ranks: Ranks) -> None:
    transfer(two_ranks, path, op, memory, memory)


@pytest.mark.parametrize("op", ["put", "get"])
@pytest.mark.parametrize("path", ["peer/copy", "peer/store"])
def test_a_tensor_across_allocations_of_an_expandable_segment(path: str, op: str, two_ranks: Ranks) -> None:
    for outcome in answers(two_ranks, path, op, "torch-expandable", "torch-expandable"):
        assert outcome["available"], outcome["why"]
        assert outcome["cases"] > 0
        assert outcome["wrong"] == []


@pytest.mark.parametrize(
    ("memory", "reason"),
    [("cuda-async", "handleTypes"), ("malloc", "pw_region_allocate")],
)
def test_memory_that_cannot_be_shown_to_a_peer_goes_through_the_host(
    memory: str, reason: str, two_ranks: Ranks
) -> None:
    for outcome in answers(two_ranks, "peer/copy", "put", memory, "cuda"):
        assert not outcome["available"]
        assert reason in outcome["why"]
    transfer(two_ranks, "staged", "put", memory, "cuda")
    transfer(two_ranks, "staged", "get", memory, "cuda")


@pytest.mark.parametrize("path", ["peer/copy", "peer/store", "staged"])
def test_a_rank_killed_in_the_middle_is_lost_to_the_other(path: str, two_ranks: Ranks) -> None:
    status, reports, errors = two_ranks("gpu_lost.py", path)
    assert status == 137, errors
    (report,) = reports
    assert "rank 1" in report["put"]
    assert "rank 1" in report["wait"]
