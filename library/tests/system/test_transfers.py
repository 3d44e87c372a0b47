"""Transfers between processes: every path that works between two processes of a host, both directions,
contiguous and block-strided, between all kinds of memory. The programs check every byte of the target, also
those that must not change."""

from __future__ import annotations

import functools
from itertools import product
from pathlib import Path

import nics
import pytest
import ucx_builds
from launching import ROOT
from ranks import Ranks

PATHS = ["peer/shm", "peer/shm-nt", "peer/cma", "staged", *nics.PATHS]
MAPPED = {"allocated", "part"}
KINDS = ["allocated", "part", "malloc", "odd", "file"]
Asked = tuple[str, str, str, str]  # op, memory of the target, memory of the source, group of cases


def transfer(path: str, *requests: Asked, size: int = 2, **settings: str) -> None:
    """Run the program and demand that every case was right; or that the path said why it cannot serve the
    pair."""
    settings = {**nics.settings_of(path), **settings}
    with Ranks("transfers.py", size, path, *map(",".join, requests), **settings) as ranks:
        for one in requests:
            for found in ranks.read_all():
                expect_right(path, one, size, found)
        ranks.end()


def expect_right(path: str, request: Asked, size: int, answer: dict[str, object]) -> None:
    op, target, source, _ = request
    remote = target if op == "put" else source
    possible = size == 1 or remote in MAPPED or not path.startswith("peer/shm")
    assert answer["available"] == possible, (request, answer["why"])
    if possible:
        assert answer["cases"]
        assert answer["wrong"] == [], request
    else:
        assert "pw_region_allocate" in str(answer["why"]), request


LAYOUTS = [
    (op, "allocated", "allocated", group) for op, group in product(["put", "get"], ["contiguous", "strided"])
]
SIGNALS = [("put", "allocated", "malloc", "signal")]
MEMORY: list[Asked] = []
for at, remote in enumerate(KINDS):
    local = KINDS[(at + 2) % len(KINDS)]
    MEMORY += [("put", remote, local, "kinds"), ("get", local, remote, "kinds")]


@functools.cache
def found_between_two(path: str) -> dict[Asked, list[dict[str, object]]]:
    """The results of two ranks for each request; one pair of processes handles all."""
    asked = [*LAYOUTS, *SIGNALS, *MEMORY]
    with Ranks("transfers.py", 2, path, *map(",".join, asked), **nics.settings_of(path)) as ranks:
        found = {one: ranks.read_all() for one in asked}
        ranks.end()
    return found


def expect_all_right(path: str, requests: list[Asked]) -> None:
    for one in requests:
        for found in found_between_two(path)[one]:
            expect_right(path, one, 2, found)


@pytest.mark.parametrize("path", PATHS)
def test_every_layout_arrives(path: str) -> None:
    expect_all_right(path, LAYOUTS)


@pytest.mark.parametrize("path", PATHS)
def test_a_signal_arrives_after_the_data_of_its_put(path: str) -> None:
    expect_all_right(path, SIGNALS)


ORDERED = ["peer/shm", "peer/cma", "staged", "nic:torus", *(ucx_builds.PATHS[:1] if ucx_builds.SOME else [])]
# The lines of programs/order.py that correspond to each row of the table.
ORDER_ROWS = {
    "`put` with `notify=`": ["put with notify=", "whole put with notify="],
    "several `put`, then `ctx.notify` or `ctx.start_notify`": [
        "put, notify",
        "puts with requests, start_notify",
        "put, put of blocks, notify",
        "puts over several paths, notify",
        "put of another thread, notify",
    ],
    # If the path is the route, which splits every put of this size.
    "a `put` that the route splits over several paths, with `notify=`": ["whole put with notify="],
    "`get`, then `ctx.notify`": ["get, notify"],
    "a notification, then another notification of the same signal": ["notification, notification"],
    "`put` with `notify=` in a plan or by a FIFO": ["plan's put with notify=", "FIFO's put with a signal"],
    "`notify` in a plan's builder": ["plan's notify"],
    "a plan's start, then `ctx.notify`": ["plan's start, finish, flush, notify"],
}
OUTSIDE = {"put, flush, put"}  # from the text below the table


def rows_of_the_documents() -> list[str]:
    """The first cells of the table's rows."""
    page = (ROOT / "docs" / "library" / "operations-and-signals.md").read_text()
    table = page.partition("## What is ordered after what")[2].partition("## Waiting")[0]
    cells = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")]
    return cells[2:]  # after the heading


def test_a_signal_arrives_after_all_that_the_table_of_the_documents_says(tmp_path: Path) -> None:
    """docs/library/operations-and-signals.md, "What is ordered after what": each line on each path."""
    assert rows_of_the_documents() == list(ORDER_ROWS)
    table = tmp_path / "split.json"
    table.write_text(nics.table_that_splits("nic:torus", "peer/cma"))
    settings = nics.settings_of("nic:torus") | {"PEERWAY_ROUTES": str(table)}
    if ucx_builds.SOME:
        settings |= ucx_builds.settings_of(ucx_builds.SOME, "all")
    with Ranks("order.py", 2, *ORDERED, "route", **settings) as ranks:
        for path in [*ORDERED, "route"]:
            for wrong in ranks.read_all():
                assert wrong.keys() == {line for lines in ORDER_ROWS.values() for line in lines} | OUTSIDE
                assert wrong == dict.fromkeys(wrong, 0), path
        ranks.end()


@pytest.mark.parametrize("path", PATHS)
def test_every_kind_of_memory_is_served_or_the_reason_given(path: str) -> None:
    expect_all_right(path, MEMORY)


OTHER_FORMS: list[tuple[str, str]] = [("put", "contiguous"), ("get", "contiguous"), ("put", "kinds")]


@pytest.mark.parametrize("path", nics.others())
def test_every_layout_arrives_whatever_a_nic_guarantees_or_loses(path: str) -> None:
    asked = [*OTHER_FORMS, ("put", "signal")]
    transfer(path, *((op, "malloc", "allocated", group) for op, group in asked))


@pytest.mark.parametrize(("library", "transports", "path"), ucx_builds.PAIRS)
def test_every_layout_arrives_by_ucx(library: str, transports: str, path: str) -> None:
    asked = [*OTHER_FORMS, ("get", "kinds"), ("put", "signal")]
    layouts = [(op, "malloc", "allocated", group) for op, group in asked]
    transfer(path, *layouts, **ucx_builds.settings_of(library, transports))


@pytest.mark.parametrize("path", PATHS)
def test_a_rank_is_its_own_neighbour(path: str) -> None:
    transfer(path, ("put", "odd", "file", "kinds"), ("get", "odd", "file", "kinds"), size=1)


def test_rings_of_four_ranks_move_at_once() -> None:
    transfer("staged", ("put", "malloc", "malloc", "kinds"), size=4)


@pytest.mark.parametrize("path", PATHS)
def test_offsets_and_strides_over_4_gib(path: str) -> None:
    with Ranks("large.py", 2, path, **nics.settings_of(path)) as ranks:
        found = ranks.read_all()
        ranks.end()
    assert found == [{"wrong": [], "tried": 4}] * 2
