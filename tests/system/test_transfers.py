"""Transfers between processes: every path of the host, both directions, contiguous and block-strided, between
all kinds of memory. The programs check every byte of the target, also those that must not change."""

from __future__ import annotations

import cards
import pytest
from ranks import Ranks

PATHS = ["peer/shm", "peer/shm-nt", "peer/cma", "staged", *cards.PATHS]
MAPPED = {"allocated", "part"}
KINDS = ["allocated", "part", "malloc", "odd", "file"]


def transfer(path: str, op: str, target: str, source: str, group: str, size: int = 2) -> None:
    """Run the program and demand that every case was right; or that the path said why it cannot serve the
    pair."""
    settings = cards.settings_of(path)
    with Ranks("transfers.py", size, path, op, target, source, group, **settings) as ranks:
        found = ranks.read_all()
        ranks.end()
    remote = target if op == "put" else source
    possible = size == 1 or remote in MAPPED or not path.startswith("peer/shm")
    for one in found:
        assert one["available"] == possible, one["why"]
        if possible:
            assert one["cases"] > 0
            assert one["wrong"] == []
        else:
            assert "pw_allocate" in one["why"]


@pytest.mark.parametrize("group", ["contiguous", "strided"])
@pytest.mark.parametrize("op", ["put", "get"])
@pytest.mark.parametrize("path", PATHS)
def test_every_layout_arrives(path: str, op: str, group: str) -> None:
    transfer(path, op, "allocated", "allocated", group)


@pytest.mark.parametrize("path", PATHS)
def test_a_signal_arrives_after_the_data_of_its_put(path: str) -> None:
    transfer(path, "put", "allocated", "malloc", "signal")


@pytest.mark.parametrize("remote", KINDS)
@pytest.mark.parametrize("op", ["put", "get"])
@pytest.mark.parametrize("path", PATHS)
def test_every_kind_of_memory_is_served_or_the_reason_given(path: str, op: str, remote: str) -> None:
    local = KINDS[(KINDS.index(remote) + 2) % len(KINDS)]
    target, source = (remote, local) if op == "put" else (local, remote)
    transfer(path, op, target, source, "kinds")


@pytest.mark.parametrize("op", ["put", "get"])
@pytest.mark.parametrize("path", PATHS)
def test_a_rank_is_its_own_neighbour(path: str, op: str) -> None:
    transfer(path, op, "odd", "file", "kinds", size=1)


def test_rings_of_four_ranks_move_at_once() -> None:
    transfer("staged", "put", "malloc", "malloc", "kinds", size=4)


@pytest.mark.parametrize("path", PATHS)
def test_offsets_and_strides_over_4_gib(path: str) -> None:
    with Ranks("large.py", 2, path, **cards.settings_of(path)) as ranks:
        found = ranks.read_all()
        ranks.end()
    assert found == [{"wrong": [], "tried": 4}] * 2
