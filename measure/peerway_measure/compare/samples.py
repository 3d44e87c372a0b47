"""Makes the samples of a node type: independent values from measurements on many nodes over days.

Measurements on one node are alike, and so are those of one hour. So a sample is a round: the mean over all
nodes of their values, each relative to that node's own level, without the largest and the smallest fifth.
Then a slow node, or one that is missing for a while, changes no sample by itself, and for many nodes the mean
is more precise than the median. Nodes that only one side has are left out, and named.

A load that follows the time of day makes successive rounds alike, too. If a side covers a day, its daily
cycle is fitted and removed. The remaining correlation widens the test (dependence.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import pi, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from peerway_measure.compare.dependence import LEAST, Dependence, dependence
from peerway_measure.compare.runs import by_run
from peerway_measure.records import ROUND

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from peerway_measure.compare.groups import Pair
    from peerway_measure.compare.metric import Metric
    from peerway_measure.records import Record

_DAY_S = 86400
_CUT = 0.2  # the share of a round's nodes that is left out at each end


@dataclass(frozen=True, slots=True)
class Samples:
    """The samples of both sides.

    `correlation` says how much successive rounds depend on each other; None if that cannot be estimated, or
    if the samples are runs instead of rounds. `same_nodes`: the samples are of nodes that both sides have.
    """

    before: NDArray[Any]
    after: NDArray[Any]
    correlation: Dependence | None
    same_nodes: bool
    omitted: tuple[str, ...] = ()


def samples_of(pair: Pair, metric: Metric) -> Samples:
    """The samples of a pair of groups. Without rounds, each run is a sample."""
    if not all(_round(r) is not None for r in (*pair.before, *pair.after)):
        hosts = [{r.host for r in side} for side in (pair.before, pair.after)]
        return Samples(by_run(pair.before, metric), by_run(pair.after, metric), None, hosts[0] == hosts[1])
    old, new = _by_node(pair.before, metric), _by_node(pair.after, metric)
    common = sorted(old.keys() & new.keys())
    if not common:
        return Samples(by_run(pair.before, metric), by_run(pair.after, metric), None, False)
    levels = {node: sqrt(_median(old[node]) * _median(new[node])) for node in common}
    level = float(np.median(list(levels.values())))
    sides = [_rounds(side, metric, levels, level) for side in (pair.before, pair.after)]
    before, after = (_without_day(values, times) for values, times in sides)
    correlation = dependence(before, after)
    return Samples(before, after, correlation, True, tuple(sorted(old.keys() ^ new.keys())))


def _by_node(records: Iterable[Record], metric: Metric) -> dict[str, list[float]]:
    by_node: dict[str, list[float]] = {}
    for record in records:
        if (value := metric.of(record)) is not None and value > 0:
            by_node.setdefault(record.host, []).append(value)
    return by_node


def _rounds(
    records: Sequence[Record], metric: Metric, levels: dict[str, float], level: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The value of each round, and the seconds at which it was measured, in the order of the rounds."""
    by_round: dict[int, list[tuple[float, float]]] = {}
    for record in records:
        number, value = _round(record), metric.of(record)
        if number is not None and value is not None and value > 0 and record.host in levels:
            when = datetime.fromisoformat(record.time).timestamp()
            by_round.setdefault(number, []).append((value / levels[record.host] * level, when))
    both = [np.array(by_round[number]) for number in sorted(by_round)]
    return np.array([_middle(b[:, 0]) for b in both]), np.array([np.median(b[:, 1]) for b in both])


def _middle(values: NDArray[Any]) -> float:
    """The mean without the extremes. Of three values, one at each end is left out."""
    cut = max(1, int(_CUT * values.size)) if values.size > 2 else 0
    return float(np.sort(values)[cut : values.size - cut].mean())


def _without_day(values: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    if values.size < LEAST or times.max() - times.min() < _DAY_S:
        return values
    angle = 2 * pi * (times % _DAY_S) / _DAY_S
    waves = np.stack([np.ones_like(angle), np.sin(angle), np.cos(angle)], axis=1)
    fitted = np.linalg.lstsq(waves, np.log(values), rcond=None)[0]
    rest = np.log(values) - waves @ fitted
    # The fit used three degrees of freedom, so the rest is too narrow by this factor.
    return np.asarray(np.exp(fitted[0] + rest * sqrt(values.size / (values.size - 3))))


def _round(record: Record) -> int | None:
    number = record.extra.get(ROUND)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _median(values: Sequence[float]) -> float:
    return float(np.median(values))
