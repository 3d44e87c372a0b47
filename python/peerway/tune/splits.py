"""Large transfers over several paths at once: which shares to try, and which of them are worth a place in
the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
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
Tried = list[tuple[Parts, list[Point]]]
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


def between(tried: Tried) -> Iterator[Parts]:
    """For each pair of paths the shares halfway from the best one tried to its neighbours: paths that share a
    bottleneck carry less together than alone, and end together at shares that nobody can tell beforehand.
    """
    for major, minor in sorted({(parts[0][0], parts[1][0]) for parts, _ in tried}):
        costs = {
            parts[1][1]: points[-1][1] for parts, points in tried if [p for p, _ in parts] == [major, minor]
        }
        shares = sorted(costs)
        best = shares.index(min(shares, key=lambda share: costs[share]))
        for low, high in pairwise(shares[max(0, best - 1) : best + 2]):
            if high - low > 1:
                middle = (low + high) // 2
                yield [(major, SHARES - middle), (minor, middle)]


def measured(
    costs: Costs, cases: Sequence[Case], measure: Measure, base: dict[str, Any], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """The splits worth keeping of these cases, as entries of a draft."""
    kept: list[dict[str, Any]] = []
    for case in cases:
        tried = _all(case, trials(costs[case], scales), measure, base)
        tried += _all(case, between(tried), measure, base)
        lanes = list(costs[case].items())
        if tried:
            kept += [draft.split_entry(case, *tried[index]) for index in _core.worth_keeping(tried, lanes)]
    return kept


def _all(case: Case, shares: Iterator[Parts], measure: Measure, base: dict[str, Any]) -> Tried:
    return [(parts, points) for parts in shares if (points := _try(case, parts, measure, base))]


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
