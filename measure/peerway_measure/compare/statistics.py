"""Medians, spreads, and how certain a difference is. A sample is a whole run, not a record: see runs.py.

The p-value is Mann and Whitney's, on the runs of both sides. The 95 % interval holds every ratio that this
test does not refuse, and the speed-up is the median of the ratios of all pairs of runs (Hodges and Lehmann,
1963), so that the three agree. Of many groups some differ by chance: Benjamini and Hochberg's correction
bounds the share of those among all that are called different. Of sides in turn a sample is a turn (order.py);
between sides one after the other a difference is confounded with time, whatever its p.
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

Verdict = Literal["faster", "slower", "no difference", "unknown"]
Finding = Verdict | Literal["confounded with time"]

CONFIDENCE = 0.95
_RISK = 1 - CONFIDENCE
_EXACT = 8  # runs of the smaller side up to which p is counted out, not approximated


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a group. `spread` is half the distance between the quartiles of the runs, relative to their
    median; None for a single run.
    """

    runs: int
    median: float
    spread: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group compared. `speedup` is above 1 when the second side is better; `low` and `high` bound it with
    95 % confidence. `p` is of this group alone, `p_adjusted` counts in how many groups there are. None where
    a number cannot be had: with too few runs no order of them is rare enough. `samples` are the runs, or the
    turns of sides that were measured `in_turn`, which is None where the records do not tell.
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
    def verdict(self) -> Finding:
        """What the numbers say; "unknown" without an interval."""
        verdict = _verdict(self.low, self.high, self.p_adjusted)
        return (
            "confounded with time" if self.in_turn is False and verdict in ("faster", "slower") else verdict
        )


class _Samples(NamedTuple):
    """The samples of both sides, and how much each depends on the one before, if that is known."""

    before: NDArray[Any]
    after: NDArray[Any]
    alike: Dependence | None = None
    in_turn: bool | None = None


def compare_all(pairs: Iterable[Pair], metric_name: str | None = None) -> list[Comparison]:
    """Compares the groups that both sides have and measured the metric of."""
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
        if (alike := several[i].alike) is not None:
            p[at] = _p_of_dependent(*several[i][:2], alike)
    adjusted = _together(p)
    for i, alone, together in zip(judged_at, p, adjusted, strict=True):
        comparisons[i] = replace(comparisons[i], p=float(alone), p_adjusted=float(together))
    return comparisons


def _samples(pair: Pair, metric: Metric, before: NDArray[Any], after: NDArray[Any]) -> _Samples:
    """Turns of sides in turn. Of others the runs, and how much they depend on those before them: they are
    many, or few and then the order alone decides.
    """
    times = started(pair.before, metric), started(pair.after, metric)
    order = order_of(*times)
    if order is None:
        return _Samples(before, after)
    if order.in_turn:
        return _Samples(by_turn(before, order.before), by_turn(after, order.after), in_turn=True)
    if min(before.min(), after.min()) <= 0:
        return _Samples(before, after, in_turn=False)
    alike = dependence(
        *(side[np.argsort(t, kind="stable")] for side, t in zip((before, after), times, strict=True))
    )
    if alike is None or alike.factor == 1:
        return _Samples(before, after, in_turn=False)
    return _Samples(before, after, replace(alike, freedom=inf), in_turn=False)


def judged(
    sides: Sequence[tuple[NDArray[Any], NDArray[Any]]],
    more_is_better: Sequence[bool],
    dependence: Sequence[Dependence | None],
) -> list[tuple[float | None, float | None, float | None, float | None, Verdict]]:
    """For each pair of samples: the speed-up with its interval, p corrected for all pairs, and the verdict.
    `dependence` is None if the samples are independent.
    """
    ratios: list[tuple[float | None, float | None, float | None]] = []
    for (before, after), more, alike in zip(sides, more_is_better, dependence, strict=True):
        slow, fast = (before, after) if more else (after, before)
        ratios.append(_ratios(slow, fast, alike) if slow.min() > 0 else (None, None, None))
    certain = [i for i, (_, low, _) in enumerate(ratios) if low is not None]
    p = _p_values([sides[i] for i in certain])
    for at, i in enumerate(certain):
        if (alike := dependence[i]) is not None:
            p[at] = _p_of_dependent(*sides[i], alike)
    adjusted = dict(zip(certain, _together(p), strict=True))
    return [
        (*numbers, p_of, _verdict(numbers[1], numbers[2], p_of))
        for i, numbers in enumerate(ratios)
        for p_of in [float(adjusted[i]) if i in adjusted else None]
    ]


def runs_needed(groups: int) -> int:
    """How many runs per side are needed to find a change in one of this many groups."""
    return next(n for n in count(2) if 2 / comb(2 * n, n) * groups <= _RISK)


def _compared(pair: Pair, metric: Metric, sides: tuple[Side, Side], samples: _Samples) -> Comparison:
    before, after = samples[:2]
    slow, fast = (before, after) if metric.more_is_better else (after, before)
    numbers: tuple[float | None, float | None, float | None] = (None, None, None)
    if min(s.median for s in sides) > 0 and slow.min() > 0:
        numbers = _ratios(slow, fast, samples.alike)
    return Comparison(
        pair, metric, *sides, *numbers, samples=(before.size, after.size), in_turn=samples.in_turn
    )


def _ratios(
    slow: NDArray[Any], fast: NDArray[Any], alike: Dependence | None = None
) -> tuple[float, float | None, float | None]:
    """The speed-up and its interval, which is None if there are too few samples."""
    ratios = np.sort((fast[:, None] / slow).ravel())
    outside = _refused(slow.size, fast.size) if alike is None else _refused_of(slow.size, fast.size, alike)
    low, high = (float(ratios[outside - 1]), float(ratios[-outside])) if outside else (None, None)
    return float(np.median(ratios)), low, high


def _verdict(low: float | None, high: float | None, p: float | None) -> Verdict:
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
    """The p-value of each pair of sides; pairs with the same numbers of runs share a call, since a call costs
    more than what it computes.
    """
    p_values = np.empty(len(sides))
    alike: dict[tuple[int, int], list[int]] = {}
    for i, (before, after) in enumerate(sides):
        alike.setdefault((before.size, after.size), []).append(i)
    for indices in alike.values():
        p_values[indices] = _mann_whitney(*(np.stack([sides[i][side] for i in indices]) for side in (0, 1)))
    return p_values


def _together(p: NDArray[Any]) -> NDArray[Any]:
    """The p-values corrected for their number."""
    stats = _stats()  # without samples too: what is not installed is told the first time
    return np.asarray(stats.false_discovery_control(p)) if p.size else p


def _stats() -> Any:
    """SciPy's statistics, imported late because it takes longer than everything else and --help does not need
    it.
    """
    from scipy import stats

    return stats


def _mann_whitney(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
    """Two-sided, along the last axis. If p is computed exactly, ties make it larger, never smaller."""
    smaller = min(before.shape[-1], after.shape[-1])
    method: Literal["exact", "asymptotic"] = "exact" if smaller <= _EXACT else "asymptotic"
    return np.asarray(_stats().mannwhitneyu(before, after, axis=-1, method=method).pvalue)


def _p_of_dependent(before: NDArray[Any], after: NDArray[Any], alike: Dependence) -> float:
    """Mann and Whitney's test with the larger variance and the uncertainty of dependent samples."""
    above = float((after[:, None] > before).sum() + (after[:, None] == before).sum() / 2)
    far = abs(above - before.size * after.size / 2) - 0.5
    return min(1.0, 2 * float(_stats().t.sf(far / _width(before.size, after.size, alike), alike.freedom)))


def _refused_of(n: int, m: int, alike: Dependence) -> int:
    """Like _refused, with the test for dependent samples."""
    far = float(_stats().t.isf(_RISK / 2, alike.freedom)) * _width(n, m, alike)
    return max(0, floor(n * m / 2 - 0.5 - far) + 1)


def _width(n: int, m: int, alike: Dependence) -> float:
    """The standard deviation of the statistic if nothing changed."""
    return sqrt(n * m * (n + m + 1) / 12 * alike.factor)


@cache
def _refused(n: int, m: int) -> int:
    """How many of the ratios between n and m runs lie outside the interval at each end. 0: there is none.

    Any two sides with no ties have the same answer, so these have: all differences between them are distinct.
    """
    before, after = np.arange(n) * float(m), np.arange(float(m))

    def p(below: int) -> float:  # when so many runs of `before` and `after` are in the order that is rarer
        return float(_mann_whitney(before + (m - 1 - below + 0.5), after))

    return bisect_right(range(n * m // 2 + 1), _RISK, key=p)
