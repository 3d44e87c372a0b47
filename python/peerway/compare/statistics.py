"""Medians, spreads and how sure a difference is.

The interval is a bootstrap of the ratio of the medians (Efron's BCa; the plain percentile interval where BCa
is not defined), the p-value is Mann and Whitney's. The seed is fixed: the same records give the same numbers.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import stats

from peerway.compare.metric import Metric, metric_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from peerway.compare.groups import Pair

Verdict = Literal["faster", "slower", "no difference", "unknown"]

CONFIDENCE = 0.95
FEW = 5  # with fewer samples a side a bootstrap interval comes out too narrow
_RESAMPLES = 9999
_SEED = 20261121
MOST_SAMPLES = 10_000  # a side of a group: what can be resampled in seconds
_AT_ONCE = 1 << 23  # numbers of one batch of resamples, so that memory stays bounded


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a group. `spread` is half the distance between the quartiles, relative to the median; None
    for a single sample.
    """

    n: int
    median: float
    spread: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One group compared. `speedup` is the ratio of the medians, above 1 when the second side is better;
    `low` and `high` bound it with 95 % confidence. None where a number cannot be had.
    """

    pair: Pair
    metric: Metric
    before: Side
    after: Side
    speedup: float | None
    low: float | None
    high: float | None
    p: float | None

    @property
    def verdict(self) -> Verdict:
        """What the interval says; "unknown" without one."""
        if self.low is None or self.high is None:
            return "unknown"
        if self.low <= 1 <= self.high:
            return "no difference"
        return "faster" if self.low > 1 else "slower"


def compare(pair: Pair, asked: str | None = None) -> Comparison | None:
    """Compares a group that both sides have; None where a side did not measure the metric."""
    metric = metric_of(pair.before[0].test, asked)
    before, after = (_values(records, metric) for records in (pair.before, pair.after))
    if before.size == 0 or after.size == 0:
        return None
    sides = _side(before), _side(after)
    slow, fast = (before, after) if metric.more_is_better else (after, before)
    speedup = _ratio(slow, fast)
    low, high = _interval(slow, fast) if speedup is not None else (None, None)
    return Comparison(pair, metric, *sides, speedup, low, high, _p_value(before, after))


def _values(records: list[Any], metric: Metric) -> NDArray[np.float64]:
    values = (metric.of(record) for record in records)
    return np.array([value for value in values if value is not None], dtype=np.float64)


def _side(values: NDArray[np.float64]) -> Side:
    median = float(np.median(values))
    if values.size < 2 or median == 0:
        return Side(values.size, median, None)
    low, high = np.percentile(values, (25, 75))
    return Side(values.size, median, float(high - low) / 2 / median)


def _ratio(slow: NDArray[np.float64], fast: NDArray[np.float64]) -> float | None:
    """Fast / slow by their medians, where neither is 0."""
    over, under = float(np.median(fast)), float(np.median(slow))
    return over / under if over > 0 and under > 0 else None


def _interval(slow: NDArray[np.float64], fast: NDArray[np.float64]) -> tuple[float | None, float | None]:
    if min(slow.size, fast.size) < 2:
        return None, None

    def statistic(a: NDArray[Any], b: NDArray[Any], axis: int = -1) -> NDArray[Any]:
        return np.asarray(np.median(b, axis=axis) / np.median(a, axis=axis))

    methods: tuple[Literal["BCa", "percentile"], ...] = ("BCa", "percentile")
    for method in methods:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # BCa is not defined for samples that hardly vary
            found = stats.bootstrap(
                (slow, fast), statistic, n_resamples=_RESAMPLES, confidence_level=CONFIDENCE, vectorized=True,
                batch=max(1, _AT_ONCE // max(slow.size, fast.size)), method=method,
                rng=np.random.default_rng(_SEED),
            ).confidence_interval  # fmt: skip
        low, high = float(found.low), float(found.high)
        if math.isfinite(low) and math.isfinite(high):
            return low, high
    return None, None


def _p_value(before: NDArray[np.float64], after: NDArray[np.float64]) -> float | None:
    if min(before.size, after.size) < 2:
        return None
    return float(stats.mannwhitneyu(before, after, alternative="two-sided").pvalue)
