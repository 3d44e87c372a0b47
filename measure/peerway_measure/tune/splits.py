"""Splits of large transfers over several paths at once: which shares to try, and which of them are worth a
place in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from peerway import _core
from peerway_measure.bench.results import Results
from peerway_measure.tune import draft
from peerway_measure.tune.draft import Case, Costs, Point

SHARES = 256
# Factors of the minor share that the paths' own bandwidths suggest.
SCALES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)
QUICK_SCALES = (0.75,)
ROUNDS = 3  # rounds that try shares closer to the best one
LEAST_US = 1e-3  # the cost of a split under trial in its table, so low that it is chosen

Parts = list[tuple[str, int]]
Tried = list[tuple[Parts, list[Point]]]
Measure = Callable[[Case, str, dict[str, Any]], Results]
"""Measures one case's large sizes over the paths given, by a route table."""


def candidates(by_path: dict[str, list[Point]]) -> list[list[str]]:
    """Pairs of paths that are worth trying together: of each family ("peer", "staged", "ucx") the fastest for
    large sizes.
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


def closer(tried: Tried) -> Iterator[Parts]:
    """For each pair of paths, new shares to try: halfway from the best one to its neighbours, or as far
    beyond it if it has none on that side.

    Paths that share a bottleneck carry less together than alone, so the shares with which they end at the
    same time cannot be predicted.
    """
    for major, minor in sorted({(parts[0][0], parts[1][0]) for parts, _ in tried}):
        costs = {
            parts[1][1]: points[-1][1] for parts, points in tried if [p for p, _ in parts] == [major, minor]
        }
        shares = sorted(costs)
        if len(shares) < 2:
            continue
        best = shares.index(min(shares, key=lambda share: costs[share]))
        at, last = shares[best], best == len(shares) - 1
        below = (shares[best - 1] + at) // 2 if best else max(1, 2 * at - shares[1])
        above = min(SHARES // 2, 2 * at - shares[best - 1]) if last else (at + shares[best + 1]) // 2
        for share in sorted({below, above} - costs.keys()):
            yield [(major, SHARES - share), (minor, share)]


def measured(
    costs: Costs, cases: Sequence[Case], measure: Measure, base: dict[str, Any], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """The splits of these cases that are worth keeping, as entries of a draft."""
    kept: list[dict[str, Any]] = []
    for case in cases:
        tried = _measure_all(case, trials(costs[case], scales), measure, base)
        lanes = list(costs[case].items())
        for _ in range(ROUNDS):
            tried += _measure_all(case, closer(_of_worthy_pairs(tried, lanes)), measure, base)
        kept += [draft.split_entry(case, *tried[index]) for index in _worthy(tried, lanes)]
    return kept


def _worthy(tried: Tried, lanes: list[tuple[str, list[Point]]]) -> list[int]:
    """The trial of each pair of paths that deserves a place in the table, if any."""
    return _core.worth_keeping(tried, lanes) if tried else []


def _of_worthy_pairs(tried: Tried, lanes: list[tuple[str, list[Point]]]) -> Tried:
    """All trials of the pairs of paths that are better together than the best path alone."""
    pairs = [_paths(tried[index][0]) for index in _worthy(tried, lanes)]
    return [trial for trial in tried if _paths(trial[0]) in pairs]


def _paths(parts: Parts) -> set[str]:
    return {path for path, _ in parts}


def _measure_all(case: Case, shares: Iterator[Parts], measure: Measure, base: dict[str, Any]) -> Tried:
    return [(parts, points) for parts in shares if (points := _measure_split(case, parts, measure, base))]


def _measure_split(case: Case, parts: Parts, measure: Measure, base: dict[str, Any]) -> list[Point]:
    """The points of one split, measured with a table in which it is the cheapest choice."""
    entry = draft.split_entry(case, parts, [(1, LEAST_US, 0.0), (1 << 40, LEAST_US, 0.0)])
    results = measure(case, ",".join(path for path, _ in parts), base | {"splits": [entry]})
    points = []
    for record in results.records:
        chosen = str(record.extra.get("chosen", ""))
        if record.validated and all(path in chosen for path, _ in parts):
            points.append((record.bytes, record.p50_us, min(1.0, float(record.extra.get("spread", 0.0)))))
    return sorted(points)
