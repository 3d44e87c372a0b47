"""Which path a report says is taken where, and what was unavailable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_records import cube, curves, record

from peerway_measure.report.choices import choices, unavailable
from peerway_measure.report.page import render, together
from peerway_measure.report.routes import TableError, read_table

TABLE = {
    "format": "peerway route table", "version": 2, "costs": [], "splits": [],
    "unavailable": [
        {"pair": "host->host", "path": "peer/copy", "why": "no device here copies"},
        {"pair": "host->host:malloc", "path": "peer/copy", "why": "no device here copies"},
        {"pair": "host->host", "path": "peer/cma", "why": "Yama forbids <it>"},
        {"pair": "cuda->cuda/nvlink", "path": "mapped", "why": "not of these records"},
    ],
}  # fmt: skip


def test_the_paths_of_each_case_are_named_with_their_sizes() -> None:
    ((case, path),) = choices([*curves(("put_bw",))])
    assert case == "put_bw, host to host"
    assert path == "peer/store to 16 KiB, peer/copy from 32 KiB"


def test_without_the_route_the_fastest_path_is_named_as_such() -> None:
    some = [record(via="staged"), record(via="peer/shm", p50_us=0.26), record(via="openmpi", p50_us=0.25)]
    assert choices(some) == [
        ("put_latency, host to host", "peer/shm (the fastest; the route was not measured)")
    ]


def test_where_no_path_moves_contiguous_bytes_there_is_no_choice() -> None:
    assert choices([record(via="flag"), record(test="registration", via="cache"), *cube(("staged",))]) == []


def test_of_several_files_the_last_is_told() -> None:
    old, new = [record(via="staged")], [record(via="peer/shm")]
    ((_, path),) = choices(together({Path("old"): old, Path("new"): new}))
    assert path.startswith("peer/shm")


def test_what_was_unavailable_is_said_once_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TABLE))
    table = read_table(tmp_path / "t.json")
    assert unavailable(table.unavailable, [record(), record(target="host:malloc")]) == [
        ("peer/copy", "no device here copies", "host->host, host->host:malloc"),
        ("peer/cma", "Yama forbids <it>", "host->host"),
    ]


def test_a_path_that_only_some_memories_lack_is_named_with_them(tmp_path: Path) -> None:
    """peer/cma is unavailable from host to host, and may be the choice from host to host:malloc."""
    (tmp_path / "t.json").write_text(json.dumps(TABLE))
    table = read_table(tmp_path / "t.json")
    page = render([record(), record(target="host:malloc")], table)
    assert "unavailable: peer/copy, peer/cma (host)</summary>" in page


@pytest.mark.parametrize("entry", [{"pair": "host", "path": "staged", "why": ""}, {"pair": "a->b"}, 3])
def test_an_entry_that_cannot_be_read_is_refused(tmp_path: Path, entry: object) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TABLE | {"unavailable": [entry]}))
    with pytest.raises(TableError, match=r"t\.json: unavailable\[0\] cannot be read"):
        read_table(tmp_path / "t.json")


def test_the_page_says_so_before_the_plots(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps(TABLE))
    page = render([*curves()], read_table(tmp_path / "t.json"))
    order = ['class="headline"', 'id="choices"', "Yama forbids &lt;it&gt;", 'class="plot"', 'id="summary"']
    places = [page.index(part) for part in order]
    assert places == sorted(places)
