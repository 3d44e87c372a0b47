"""Large transfers over several paths at once: which shares to try, and which of them are worth a place in
the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from peerway import _core
from peerway.bench.results import Results
from peerway.tune import draft
from peerway.tune.draft import Case, Costs, Point

SHARES = 256
SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)  # of the minor share that the paths alone would suggest
QUICK_SCALES = (0.75,)
LEAST_US = 1e-3  # the cost of a split on trial in its own table, so that it is taken

Parts = list[tuple[str, int]]
Measure = Callable[[Case, str, dict[str, Any]], Results]
"""Measures one case's large sizes over the paths given, by a route table."""


def candidates(by_path: dict[str, list[Point]]) -> list[list[str]]:
    """Pairs of paths worth trying together: of each family ("peer", "staged", "ucx") the fastest for large
    sizes.
    """
    largest = max(points[-1][0] for points in by_path.values())
    families: dict[str, tuple[float, str]] = {}
    for path, points in by_path.items():
        if points[-1][0] == largest:
            family = path.partition("/")[0]
            families[family] = min(families.get(family, (float("inf"), "")), (points[-1][1], path))
    ranked = [path for _, path in sorted(families.values())]
    return [[ranked[0], other] for other in ranked[1:]]


def trials(by_path: dict[str, list[Point]], scales: Sequence[float]) -> Iterator[Parts]:
    """The shares to measure for a case."""
    for paths in candidates(by_path):
        lanes = [(path, by_path[path]) for path in paths]
        proposed = _core.propose_split(lanes, by_path[paths[0]][-1][0])
        if len(proposed) != 2:
            continue
        (major, _), (minor, share) = sorted(proposed, key=lambda part: -part[1])
        shares = {min(SHARES // 2, max(2, round(share * scale))) for scale in scales}
        for tried in sorted(shares):
            yield [(major, SHARES - tried), (minor, tried)]


def measured(
    costs: Costs, cases: Sequence[Case], measure: Measure, base: dict[str, Any], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """The splits worth keeping of these cases, as entries of a draft."""
    kept: list[dict[str, Any]] = []
    for case in cases:
        tried = [
            (parts, points)
            for parts in trials(costs[case], scales)
            if (points := _try(case, parts, measure, base))
        ]
        lanes = list(costs[case].items())
        if tried:
            kept += [draft.split_entry(case, *tried[index]) for index in _core.worth_keeping(tried, lanes)]
    return kept


def _try(case: Case, parts: Parts, measure: Measure, base: dict[str, Any]) -> list[Point]:
    """The points of one split, measured by a table that has it as the cheapest choice."""
    entry = draft.split_entry(case, parts, [(1, LEAST_US, 0.0), (1 << 40, LEAST_US, 0.0)])
    results = measure(case, ",".join(path for path, _ in parts), base | {"splits": [entry]})
    points = []
    for record in results.records:
        chosen = str(record.extra.get("chosen", ""))
        if record.validated and all(path in chosen for path, _ in parts):
            points.append((record.bytes, record.p50_us, min(1.0, float(record.extra.get("spread", 0.0)))))
    return sorted(points)
