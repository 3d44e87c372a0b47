"""Turns records into the draft of a route table: the points of each path in each case, as the route layer
reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from peerway import _core
from peerway.paths import PathInfo
from peerway_measure.records import Record, now

Case = tuple[str, str, str]  # op, class of shape, class of pair
Point = tuple[int, float, float]  # bytes, microseconds, spread
Costs = dict[Case, dict[str, list[Point]]]
PairClasses = Mapping[tuple[str, str, str], str]  # (source, target, op) -> pair

FORMAT, VERSION = "peerway route table", 2
MINIMUM_PART, ALIGN = 65536, 4096


def points_of(records: Iterable[Record], pair_classes: PairClasses) -> Costs:
    """The points of each path in each case, by size.

    Results with wrong data are left out. If a size was measured in several runs, its cost is their median,
    and its spread includes their differences.
    """
    by_case: dict[Case, dict[str, dict[int, list[tuple[float, float]]]]] = {}
    for record in records:
        if not record.validated:
            continue
        case = (record.op, shape_class_of(record), pair_classes[record.source, record.target, record.op])
        runs = by_case.setdefault(case, {}).setdefault(record.via, {}).setdefault(record.bytes, [])
        runs.append((record.p50_us, min(float(record.extra.get("spread", 0.0)), 1.0)))
    return {
        case: {
            path: [(size, *_pooled(runs)) for size, runs in sorted(by_size.items())]
            for path, by_size in by_path.items()
        }
        for case, by_path in by_case.items()
    }


def _pooled(runs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The median of several runs and the larger of two spreads: within a run, and between runs."""
    times = [us for us, _ in runs]
    middle = median(times)
    return middle, max(median(spread for _, spread in runs), (max(times) - min(times)) / (2 * middle))


def shape_class_of(record: Record) -> str:
    """The router's class of a record's shape."""
    blocks = re.fullmatch(r"blocks:(\d+)x(\d+)/\d+", record.shape)
    if blocks:
        return _core.shape_class(int(blocks[1]), int(blocks[2]))
    return _core.shape_class(1, max(1, record.bytes))


def table(
    costs: Costs,
    splits: Sequence[dict[str, Any]],
    paths: Mapping[tuple[str, str, str], Sequence[PathInfo]],
    pair_classes: PairClasses,
    staging_chunk: int,
) -> dict[str, Any]:
    """The draft: the content of the table's file, unchecked."""
    entries = [
        _where(case) | {"path": path, "points": [list(point) for point in points]}
        for case, by_path in costs.items()
        for path, points in by_path.items()
    ]
    missing = {
        (pair_classes[case], info.name): info.why_not
        for case, infos in paths.items()
        for info in infos
        if not info.available and pair_classes.get(case)
    }
    return {
        "format": FORMAT,
        "version": VERSION,
        "tool": f"peerway {_core.version()}",
        "date": now(),
        "machine": {"fields": _core.machine()},
        "staging chunk": staging_chunk,
        "unavailable": [{"pair": pair, "path": path, "why": why} for (pair, path), why in missing.items()],
        "costs": entries,
        "splits": list(splits),
    }


def split_entry(case: Case, parts: Sequence[tuple[str, int]], points: Sequence[Point]) -> dict[str, Any]:
    """One split of a draft. `parts` are paths with their shares of 256."""
    return _where(case) | {
        "parts": [list(part) for part in parts],
        "minimum part": MINIMUM_PART,
        "align": ALIGN,
        "points": [list(point) for point in points],
    }


def _where(case: Case) -> dict[str, Any]:
    op, shape, pair = case
    return {"op": op, "shape": shape, "pair": pair}
