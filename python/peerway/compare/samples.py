"""Samples of a node type: what is independent of each other among measurements on many nodes over days.

Measurements of one node are alike, and so are those of one hour. So a sample is a round: the median over all
nodes of their values, each relative to that node's own level. A slow node, or one that is missing for a
while, then changes no sample by itself. Nodes that only one side has are left out, and named.

A load that goes with the day makes neighbouring rounds alike, too. Where a side covers a day, its daily cycle
is fitted and taken out; then neighbours are joined as long as they are still correlated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from peerway.compare.runs import by_run
from peerway.records import ROUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from peerway.compare.groups import Pair
    from peerway.compare.metric import Metric
    from peerway.records import Record

_DAY_S = 86400
_LEAST_ROUNDS = 10  # below these, no correlation can be told
# In standard errors of a correlation that is none: joining too early costs power, too late costs truth.
_CORRELATED = 1.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Those of both sides. `joined`: how many neighbouring rounds one of them is. `same_nodes`: it is about
    nodes that both sides have.
    """

    before: NDArray[Any]
    after: NDArray[Any]
    joined: int
    same_nodes: bool
    left_out: tuple[str, ...] = ()


def samples_of(pair: Pair, metric: Metric) -> Samples:
    """The samples of a pair; without rounds a run is one."""
    if not all(_round(r) is not None for r in (*pair.before, *pair.after)):
        hosts = [{r.host for r in side} for side in (pair.before, pair.after)]
        return Samples(by_run(pair.before, metric), by_run(pair.after, metric), 1, hosts[0] == hosts[1])
    old, new = _by_node(pair.before, metric), _by_node(pair.after, metric)
    common = sorted(old.keys() & new.keys())
    if not common:
        return Samples(by_run(pair.before, metric), by_run(pair.after, metric), 1, False)
    levels = {node: sqrt(_median(old[node]) * _median(new[node])) for node in common}
    level = float(np.median(list(levels.values())))
    sides = [_rounds(side, metric, levels, level) for side in (pair.before, pair.after)]
    before, after = (_without_day(values, times) for values, times in sides)
    joined = 1
    while min(before.size, after.size) >= _LEAST_ROUNDS:
        correlation = (_neighbours(before) + _neighbours(after)) / 2
        if correlation * sqrt(before.size + after.size) <= _CORRELATED:
            break
        before, after, joined = _pairs(before), _pairs(after), joined * 2
    return Samples(before, after, joined, True, tuple(sorted(old.keys() ^ new.keys())))


def _by_node(records: Iterable[Record], metric: Metric) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in records:
        if (value := metric.of(record)) is not None and value > 0:
            found.setdefault(record.host, []).append(value)
    return found


def _rounds(
    records: Sequence[Record], metric: Metric, levels: dict[str, float], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The value of each round, and the seconds at which it was measured, in the order of the rounds."""
    found: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        number, value = _round(record), metric.of(record)
        if number is not None and value is not None and value > 0 and record.host in levels:
            when = datetime.fromisoformat(record.time).timestamp()
            found.setdefault(number, []).append((value / levels[record.host] * level, when))
    both = [np.median(np.array(found[number]), axis=0) for number in sorted(found)]
    return np.array([v for v, _ in both]), np.array([t for _, t in both])


def _without_day(values: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    if values.size < _LEAST_ROUNDS or times.max() - times.min() < _DAY_S:
        return values
    angle = 2 * pi * (times % _DAY_S) / _DAY_S
    waves = np.stack([np.ones_like(angle), np.sin(angle), np.cos(angle)], axis=1)
    fitted = np.linalg.lstsq(waves, np.log(values), rcond=None)[0]
    rest = (
        np.log(values) - waves @ fitted
    )  # which is narrower than the truth, by the freedom that the fit took
    return np.asarray(np.exp(fitted[0] + rest * sqrt(values.size / (values.size - 3))))


def _neighbours(values: NDArray[Any]) -> float:
    """How much neighbouring values are alike: their correlation."""
    rest = np.log(values) - np.log(values).mean()
    total = float(rest @ rest)
    return float(rest[1:] @ rest[:-1]) / total if total else 0.0


def _pairs(values: NDArray[Any]) -> NDArray[Any]:
    return np.array([np.median(values[i : i + 2]) for i in range(0, values.size - 1, 2)])


def _round(record: Record) -> int | None:
    number = record.extra.get(ROUND)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
