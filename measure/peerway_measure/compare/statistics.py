"""Medians, spreads, and how certain a difference is.

A sample is a whole run, not a record: see runs.py. If both sides were measured in turn, a sample is a turn
(order.py). If one was measured after the other, a difference is confounded with time, however small its
p-value.

The p-value is that of Mann and Whitney's test. The 95 % interval holds every ratio that this test does not
reject, and the speed-up is the median of the ratios of all pairs of samples (Hodges and Lehmann, 1963), so
that the three agree. If there are many groups, some differ by chance: Benjamini and Hochberg's correction
bounds the share of these among all that are called different.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from math import comb, floor, inf, sqrt
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from peerway_measure.compare.dependence import Dependence, dependence
from peerway_measure.compare.metric import Metric, metric_of
from peerway_measure.compare.order import by_turn, order_of
from peerway_measure.compare.runs import by_run, started

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from peerway_measure.compare.groups import Pair

Difference = Literal["faster", "slower", "no difference", "unknown"]
Verdict = Difference | Literal["confounded with time"]

CONFIDENCE = 0.95
_RISK = 1 - CONFIDENCE
_EXACT = 8  # up to this number of runs of the smaller side p is computed exactly


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a group. `spread` is half the interquartile range of the runs, relative to their median;
    None for a single run.
    """

    runs: int
    median: float
    spread: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group compared.

    `speedup` is above 1 if the second side is better; `low` and `high` bound it with 95 % confidence. `p` is
    that of this group alone, `p_adjusted` is corrected for the number of groups. Numbers are None if they
    cannot be computed: with too few runs no order of them is rare enough.

    `samples` are the runs, or the turns if the sides were measured `in_turn`, which is None if the records do
    not say it.
    """

    pair: Pair
    metric: Metric
    before: Side
    after: Side
    speedup: float | None
    low: float | None
    high: float | None
    p: float | None = None
    p_adjusted: float | None = None
    samples: tuple[int, int] = (0, 0)
    in_turn: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """What the numbers and the order of the sides say; "unknown" without an interval."""
        difference = _difference(self.low, self.high, self.p_adjusted)
        if self.in_turn is False and difference in ("faster", "slower"):
            return "confounded with time"
        return difference


class _Samples(NamedTuple):
    """The samples of both sides and, if known, how much each depends on earlier ones."""

    before: NDArray[Any]
    after: NDArray[Any]
    correlation: Dependence | None = None
    in_turn: bool | None = None


def compare_all(pairs: Iterable[Pair], metric_name: str | None = None) -> list[Comparison]:
    """Compare the groups that both sides have, and for which both measured the metric."""
    comparisons: list[Comparison] = []
    several: list[_Samples] = []
    for pair in pairs:
        if not (pair.before and pair.after):
            continue
        metric = metric_of(pair.before[0].test, metric_name)
        before, after = by_run(pair.before, metric), by_run(pair.after, metric)
        if before.size and after.size:
            samples = _samples(pair, metric, before, after)
            comparisons.append(_compared(pair, metric, (_side(before), _side(after)), samples))
            several.append(samples)
    judged_at = [i for i, c in enumerate(comparisons) if c.low is not None]
    p = _p_values([several[i][:2] for i in judged_at])
    for at, i in enumerate(judged_at):
        if (correlation := several[i].correlation) is not None:
            p[at] = _p_of_dependent(*several[i][:2], correlation)
    adjusted = _adjusted(p)
    for i, alone, together in zip(judged_at, p, adjusted, strict=True):
        comparisons[i] = replace(comparisons[i], p=float(alone), p_adjusted=float(together))
    return comparisons


def _samples(pair: Pair, metric: Metric, before: NDArray[Any], after: NDArray[Any]) -> _Samples:
    """The samples of a pair: turns for sides in turn, otherwise runs.

    Runs come with their dependence on earlier runs, if there are many. If there are few, only the order of
    the sides decides.
    """
    times = started(pair.before, metric), started(pair.after, metric)
    order = order_of(*times)
    if order is None:
        return _Samples(before, after)
    if order.in_turn:
        return _Samples(by_turn(before, order.before), by_turn(after, order.after), in_turn=True)
    if min(before.min(), after.min()) <= 0:
        return _Samples(before, after, in_turn=False)
    correlation = dependence(
        *(side[np.argsort(t, kind="stable")] for side, t in zip((before, after), times, strict=True))
    )
    if correlation is None or correlation.factor == 1:
        return _Samples(before, after, in_turn=False)
    return _Samples(before, after, replace(correlation, freedom=inf), in_turn=False)


def judged(
    sides: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    more_is_better: Sequence[bool],
    dependence: Sequence[Dependence | None],
) -> list[tuple[float | None, float | None, float | None, float | None, Difference]]:
    """Compare pairs of samples: for each, the speed-up with its interval, p corrected for all pairs, and the
    difference. `dependence` is None if the samples are independent.
    """
    ratios: list[tuple[float | None, float | None, float | None]] = []
    for (before, after), more, correlation in zip(sides, more_is_better, dependence, strict=True):
        slow, fast = (before, after) if more else (after, before)
        ratios.append(_ratios(slow, fast, correlation) if slow.min() > 0 else (None, None, None))
    certain = [i for i, (_, low, _) in enumerate(ratios) if low is not None]
    p = _p_values([sides[i] for i in certain])
    for at, i in enumerate(certain):
        if (correlation := dependence[i]) is not None:
            p[at] = _p_of_dependent(*sides[i], correlation)
    adjusted = dict(zip(certain, _adjusted(p), strict=True))
    return [
        (*numbers, p_of, _difference(numbers[1], numbers[2], p_of))
        for i, numbers in enumerate(ratios)
        for p_of in [float(adjusted[i]) if i in adjusted else None]
    ]


def runs_needed(groups: int) -> int:
    """The number of runs for each side that are needed to find a change in one of this many groups."""
    return next(n for n in count(2) if 2 / comb(2 * n, n) * groups <= _RISK)


def _compared(pair: Pair, metric: Metric, sides: tuple[Side, Side], samples: _Samples) -> Comparison:
    before, after = samples[:2]
    slow, fast = (before, after) if metric.more_is_better else (after, before)
    numbers: tuple[float | None, float | None, float | None] = (None, None, None)
    if min(s.median for s in sides) > 0 and slow.min() > 0:
        numbers = _ratios(slow, fast, samples.correlation)
    return Comparison(
        pair, metric, *sides, *numbers, samples=(before.size, after.size), in_turn=samples.in_turn
    )


def _ratios(
    slow: NDArray[Any], fast: NDArray[Any], correlation: Dependence | None = None
) -> tuple[float, float | None, float | None]:
    """The speed-up and its interval, which is None if there are too few samples."""
    ratios = np.sort((fast[:, None] / slow).ravel())
    outside = (
        _refused(slow.size, fast.size)
        if correlation is None
        else _refused_of(slow.size, fast.size, correlation)
    )
    low, high = (float(ratios[outside - 1]), float(ratios[-outside])) if outside else (None, None)
    return float(np.median(ratios)), low, high


def _difference(low: float | None, high: float | None, p: float | None) -> Difference:
    if low is None or high is None or p is None:
        return "unknown"
    if low <= 1 <= high or p > _RISK:
        return "no difference"
    return "faster" if low > 1 else "slower"


def _side(values: NDArray[Any]) -> Side:
    median = float(np.median(values))
    if values.size < 2 or median == 0:
        return Side(values.size, median, None)
    low, high = np.percentile(values, (25, 75))
    return Side(values.size, median, float(high - low) / 2 / median)


def _p_values(sides: Sequence[tuple[NDArray[Any], NDArray[Any]]]) -> NDArray[Any]:
    """The p-value of each pair of sides. Pairs with the same numbers of runs share a call of SciPy, whose
    fixed cost exceeds that of the computation.
    """
    p_values = np.empty(len(sides))
    by_size: dict[tuple[int, int], list[int]] = {}
    for i, (before, after) in enumerate(sides):
        by_size.setdefault((before.size, after.size), []).append(i)
    for indices in by_size.values():
        p_values[indices] = _mann_whitney(*(np.stack([sides[i][side] for i in indices]) for side in (0, 1)))
    return p_values


def _adjusted(p: NDArray[Any]) -> NDArray[Any]:
    """The p-values, corrected for their number."""
    stats = _stats()  # called even without samples, so that a missing SciPy is reported at once
    return np.asarray(stats.false_discovery_control(p)) if p.size else p


def _stats() -> Any:
    """SciPy's statistics. Imported late, because the import takes longer than everything else and --help does
    not need it.
    """
    from scipy import stats

    return stats


def _mann_whitney(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """Two-sided, along the last axis. If p is computed exactly, ties make it larger, never smaller."""
    smaller = min(before.shape[-1], after.shape[-1])
    method: Literal["exact", "asymptotic"] = "exact" if smaller <= _EXACT else "asymptotic"
    return np.asarray(_stats().mannwhitneyu(before, after, axis=-1, method=method).pvalue)


def _p_of_dependent(before: NDArray[Any], after: NDArray[Any], correlation: Dependence) -> float:
    """The p-value of Mann and Whitney's test, with the larger variance and the uncertainty of dependent
    samples.
    """
    above = float((after[:, None] > before).sum() + (after[:, None] == before).sum() / 2)
    far = abs(above - before.size * after.size / 2) - 0.5
    return min(
        1.0, 2 * float(_stats().t.sf(far / _width(before.size, after.size, correlation), correlation.freedom))
    )


def _refused_of(n: int, m: int, correlation: Dependence) -> int:
    """As _refused, for the test of dependent samples."""
    far = float(_stats().t.isf(_RISK / 2, correlation.freedom)) * _width(n, m, correlation)
    return max(0, floor(n * m / 2 - 0.5 - far) + 1)


def _width(n: int, m: int, correlation: Dependence) -> float:
    """The standard deviation of the statistic if there is no difference."""
    return sqrt(n * m * (n + m + 1) / 12 * correlation.factor)


@cache
def _refused(n: int, m: int) -> int:
    """The number of ratios between n and m runs that lie outside the interval at each end; 0 if there is no
    interval.

    It is computed for two sides without equal values, for which it depends only on n and m.
    """
    before, after = np.arange(n) * float(m), np.arange(float(m))

    def p(below: int) -> float:  # the p-value if `below` pairs of runs are in the rarer order
        return float(_mann_whitney(before + (m - 1 - below + 0.5), after))

    return bisect_right(range(n * m // 2 + 1), _RISK, key=p)
