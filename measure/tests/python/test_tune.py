"""From records to a route table, and what a new table changes: decided as data, nothing is measured."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peerway import _core
from peerway.errors import Unavailable
from peerway.paths import PathInfo
from peerway_measure.bench import runner, shapes
from peerway_measure.bench.plan import Plan
from peerway_measure.bench.results import Results
from peerway_measure.bench.session import SessionFailed
from peerway_measure.records import Record
from peerway_measure.tune import boundaries, cases, changes, draft, merged, splits
from peerway_measure.tune.run import Tuner

PAIRS = {("host", "host", op): "host->host" for op in ("put", "get")}


def record(via: str, size: int, us: float, shape: str = "contiguous", **other: Any) -> Record:
    fields: dict[str, Any] = {
        "test": "put_latency", "via": via, "op": "put", "shape": shape, "bytes": size, "ranks": 2,
        "source": "host", "target": "host", "iterations": 10, "p50_us": us, "p99_us": us, "min_us": us,
        "mean_us": us, "bandwidth_MBps": 1.0, "messages_per_s": 1.0, "validated": True, "cpu_percent": 1.0,
        "host": "n01", "device": "", "driver": "", "version": "0.1.0", "time": "2026-11-21T09:30:00Z",
        "extra": {"spread": 0.02},
    }  # fmt: skip
    return Record(**fields | other)


def table_of(*records: Record) -> dict[str, Any]:
    costs = draft.points_of(records, PAIRS)
    missing = {("host", "host", "put"): [PathInfo("mapped", False, "no GPU"), PathInfo("staged", True, "")]}
    text = _core.table_text(json.dumps(draft.table(costs, [], missing, PAIRS, 65536)))
    table = json.loads(text)
    assert isinstance(table, dict)
    return table


def test_a_draft_becomes_a_table_with_points_reasons_and_chunk() -> None:
    table = table_of(record("staged", 8, 2.0), record("staged", 4096, 4.0), record("peer/shm", 8, 1.0))
    assert [(cost["path"], len(cost["points"])) for cost in table["costs"]] == [
        ("staged", 2),
        ("peer/shm", 1),
    ]
    assert table["unavailable"] == [{"pair": "host->host", "path": "mapped", "why": "no GPU"}]
    assert table["staging chunk"] == 65536


def test_several_runs_of_a_size_are_one_point_whose_spread_is_from_run_to_run() -> None:
    costs = draft.points_of([record("staged", 8, us) for us in (2.0, 3.0, 2.2)], PAIRS)
    assert costs["put", "contiguous", "host->host"]["staged"] == [(8, 2.2, pytest.approx(0.5 / 2.2))]
    alone = draft.points_of([record("staged", 8, 2.0)], PAIRS)
    assert alone["put", "contiguous", "host->host"]["staged"] == [(8, 2.0, 0.02)]


def test_wrong_data_never_decides_a_route() -> None:
    costs = draft.points_of([record("staged", 8, 2.0, validated=False)], PAIRS)
    assert costs == {}


def test_every_class_of_strided_shapes_is_measured() -> None:
    classes = {_core.shape_class(shape.blocks, shape.block_bytes) for shape in cases.all_shapes(quick=True)}
    assert classes == {
        "contiguous", "blocks-16", "blocks-128", "blocks-1024", "blocks-8192", "blocks-large",
    }  # fmt: skip
    assert draft.shape_class_of(record("staged", 512, 1.0, shapes.strided(64, 8, 16).label)) == "blocks-16"


@pytest.mark.parametrize(
    ("slow_start", "fast_start", "sizes"),
    [
        pytest.param(
            [(8, 1.0), (512, 9.0)], [(8, 2.0), (512, 3.0)], [8, 16, 32, 64, 128, 256, 512], id="a change"
        ),
        pytest.param([(8, 1.0), (512, 2.0)], [(8, 2.0), (512, 3.0)], [], id="no change"),
        pytest.param([(8, 1.0), (512, 3.01)], [(8, 1.01), (512, 3.0)], [], id="noise"),
        pytest.param([(256, 1.0), (512, 9.0)], [(256, 2.0), (512, 3.0)], [256, 512], id="nothing between"),
        pytest.param([(8, 1.0)], [(24, 3.0)], [8, 16, 24], id="each measured elsewhere"),
    ],
)
def test_sizes_are_added_where_the_cheapest_path_changes(
    slow_start: list[tuple[int, float]], fast_start: list[tuple[int, float]], sizes: list[int]
) -> None:
    slow, other = ([(size, us, 0.02) for size, us in points] for points in (slow_start, fast_start))
    assert boundaries.sizes_between({"staged": slow, "peer/shm": other}) == sizes


def test_splits_are_tried_between_families_of_paths_only() -> None:
    points = {
        "peer/shm": [(1 << 20, 100.0, 0.0), (16 << 20, 1600.0, 0.0)],
        "peer/cma": [(1 << 20, 120.0, 0.0), (16 << 20, 1900.0, 0.0)],
        "staged": [(1 << 20, 400.0, 0.0), (16 << 20, 6400.0, 0.0)],
    }
    assert splits.candidates(points) == [["peer/shm", "staged"]]
    tried = list(splits.trials(points, splits.SCALES))
    assert tried
    for parts in tried:
        assert [path for path, _ in parts] == ["peer/shm", "staged"]
        assert sum(share for _, share in parts) == splits.SHARES
        assert parts[0][1] > parts[1][1]


def test_shares_are_tried_again_around_the_best() -> None:
    def tried(share: int, us: float, other: str = "staged") -> tuple[splits.Parts, list[draft.Point]]:
        return [("peer/copy", 256 - share), (other, share)], [(4 << 20, 9.0, 0.0), (256 << 20, us, 0.0)]

    coarse = [tried(14, 655.0), tried(19, 637.0), tried(22, 640.0), tried(27, 700.0)]
    again = [*coarse, tried(8, 660.0, "ucx/direct"), tried(9, 650.0, "ucx/direct")]
    assert [parts[1] for parts in splits.closer(again)] == [
        ("staged", 16), ("staged", 20), ("ucx/direct", 10),
    ]  # fmt: skip
    assert all(sum(share for _, share in parts) == splits.SHARES for parts in splits.closer(again))
    assert list(splits.closer([])) == []
    assert list(splits.closer([tried(19, 637.0)])) == []  # a quick tune has one share, and stays quick


@pytest.mark.parametrize("best", [8, 20, 24, 30])
def test_the_best_share_is_found_also_beyond_those_that_were_tried_first(best: int) -> None:
    """Copies take longer the more go by the engine, and from some share on the host is the slower one."""
    case = ("put", "contiguous", "cuda->cuda/nvlink")
    line = [(1 << 20, 9.0, 0.0), (256 << 20, 685.0, 0.0)]
    host = [(1 << 20, 68.0, 0.0), (256 << 20, 685.0 * 13, 0.0)]
    measured: list[int] = []

    def measure(_: draft.Case, paths: str, table: dict[str, Any]) -> Results:
        share = dict(table["splits"][0]["parts"])["staged"]
        measured.append(share)
        results = Results()
        us = 685.0 * (256 - share) / 256 + max(0, share - best) * 20
        for size in (64 << 20, 256 << 20):
            extra = {"chosen": paths, "spread": 0.001}
            results.records.append(record("route", size, us * size / (256 << 20), extra=extra))
        return results

    (kept,) = splits.measured({case: {"peer/copy": line, "staged": host}}, [case], measure, {}, splits.SCALES)
    assert abs(dict(kept["parts"])["staged"] - best) <= 1
    assert len(measured) == len(set(measured)) <= len(splits.SCALES) + 2 * splits.ROUNDS


def test_what_changed_is_told_the_largest_first() -> None:
    before = table_of(record("staged", 8, 2.0), record("peer/shm", 8, 1.0), record("peer/cma", 8, 1.0))
    after = table_of(record("staged", 8, 1.0), record("peer/shm", 8, 4.0), record("mapped", 8, 1.0))
    lines = changes.lines(before, after)
    assert lines[0] == "mapped is new for host->host"
    assert lines[1].startswith("peer/cma is gone for host->host")
    assert "peer/shm: 8 B 1 µs, now 4 µs (4 times slower)" in lines[2]
    assert "staged: 8 B 2 µs, now 1 µs (2 times faster)" in lines[3]


def test_contiguous_data_is_measured_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short time on a busy machine sufficed for puts of all shapes, and for no get."""
    plans: list[Plan] = []
    monkeypatch.setattr(runner, "run_paths", lambda plan, *_: plans.append(plan))
    with pytest.raises(Unavailable):
        Tuner([("host", "host"), ("host:malloc", "host:malloc")], [], True, lambda *_: None).run()
    strided = [case.shape.blocks > 1 for case in plans[-1].cases]
    assert strided == sorted(strided)
    assert {True, False} == set(strided)


def test_ranks_that_fail_after_the_paths_were_measured_cost_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def run_paths(plan: Plan, results: Results, *_: object) -> None:
        if plan.staging_chunks:
            return
        if results.records or plan.settings:  # the sizes around a border, and splits
            raise SessionFailed("the 2 ranks that measured ended early")
        results.pair_classes |= PAIRS
        for size in (512, 1 << 24):
            results.records += [record("staged", size, size / 100), record("peer/shm", size, 40 + size / 200)]

    monkeypatch.setattr(runner, "run_paths", run_paths)
    tuner = Tuner([("host", "host")], [], True, lambda *_: None)
    table = json.loads(tuner.run())
    assert {cost["path"] for cost in table["costs"]} == {"staged", "peer/shm"}
    assert table["splits"] == []
    assert [note.partition(" was ")[0] for note in tuner.results.notes] == [
        "put_latency around 512 B to 16 MiB", "put_latency split over peer/shm,staged"
    ]  # fmt: skip
    assert all("ended early" in note for note in tuner.results.notes)


def test_noise_is_no_change() -> None:
    before, after = (table_of(record("staged", 8, us)) for us in (2.0, 2.05))
    assert changes.lines(before, after) == ["Nothing changed by more than the spread."]
    assert changes.lines(None, after) == ["There was no table before."]


def test_a_table_between_hosts_keeps_what_was_within() -> None:
    before = table_of(record("staged", 8, 1.0), record("staged", 4096, 2.0))
    between = {("host", "host", op): "remote:host->host" for op in ("put", "get")}
    costs = draft.points_of([record("ucx/staged", 8, 9.0), record("ucx/staged", 4096, 11.0)], between)
    missing = {("host", "host", "put"): [PathInfo("staged", False, "on another host")]}
    after = json.loads(_core.table_text(json.dumps(draft.table(costs, [], missing, between, 0))))
    whole = json.loads(_core.table_text(json.dumps(merged.with_pairs_of(before, after))))
    assert {(cost["pair"], cost["path"]) for cost in whole["costs"]} == {
        ("host->host", "staged"), ("remote:host->host", "ucx/staged")
    }  # fmt: skip
    assert {(each["pair"], each["path"]) for each in whole["unavailable"]} == {
        ("host->host", "mapped"), ("remote:host->host", "staged")
    }  # fmt: skip
    assert whole["staging chunk"] == 65536
    again = json.loads(_core.table_text(json.dumps(merged.with_pairs_of(whole, after))))
    assert again["costs"] == whole["costs"]
