"""From records to the draft of a route table: the points of each path in each case, as the route layer reads
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peerway import _core
from peerway.paths import PathInfo
from peerway.records import Record, now

Case = tuple[str, str, str]  # op, class of shape, class of pair
Point = tuple[int, float, float]  # bytes, microseconds, spread
Costs = dict[Case, dict[str, list[Point]]]
PairClasses = Mapping[tuple[str, str], str]

FORMAT, VERSION = "peerway route table", 1
MINIMUM_PART, ALIGN = 65536, 4096


def points_of(records: Iterable[Record], pair_classes: PairClasses) -> Costs:
    """The points of each path in each case, by size. Results that moved wrong data are left out."""
    found: Costs = {}
    for record in records:
        if not record.validated:
            continue
        case = (record.op, shape_class_of(record), pair_classes[record.source, record.target])
        points = found.setdefault(case, {}).setdefault(record.via, [])
        spread = float(record.extra.get("spread", 0.0))
        points.append((record.bytes, record.p50_us, min(spread, 1.0)))
    for paths in found.values():
        for points in paths.values():
            points.sort()
    return found


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
    """The draft: as the table's file, without fitted lines."""
    entries = [
        _where(case) | {"path": path, "points": [list(point) for point in points]}
        for case, by_path in costs.items()
        for path, points in by_path.items()
    ]
    missing = {
        (pair_classes[source, target], info.name): info.why_not
        for (source, target, _), infos in paths.items()
        for info in infos
        if not info.available and pair_classes.get((source, target))
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
    """One split of a draft; `parts` are paths with shares of 256."""
    return _where(case) | {
        "parts": [list(part) for part in parts],
        "minimum part": MINIMUM_PART,
        "align": ALIGN,
        "points": [list(point) for point in points],
    }


def _where(case: Case) -> dict[str, Any]:
    op, shape, pair = case
    return {"op": op, "shape": shape, "pair": pair}
