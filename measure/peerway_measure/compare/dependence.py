"""Measures how much samples depend on earlier ones.

Correlation makes the test of a difference less strict: the variance of the mean of such samples is estimated
from their autocovariances with Bartlett's window (Newey and West, 1987), and the test uses the degrees of
freedom of this estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST = 10  # samples of a side; with fewer, correlation cannot be estimated
# Samples over which correlation is summed up. A longer window misses less correlation, but estimates it less
# precisely.
# From 4 to 8, 6 is the first with which intervals of large node types hold 95 % (results/storage).
_WINDOW = 6


@dataclass(frozen=True, slots=True)
class Dependence:
    """How samples that follow each other in time depend on each other.

    The variance of their mean is `factor` times that of as many independent samples. This figure is known
    with `freedom` degrees of freedom.
    """

    factor: float
    freedom: float


def dependence(before: NDArray[Any], after: NDArray[Any]) -> Dependence | None:
    """Estimate from the autocorrelations of both sides, each corrected for the bias of removing its mean."""
    if min(before.size, after.size) < LEAST:
        return None
    total, factor = before.size + after.size, 1.0
    for lag in range(1, _WINDOW):
        correlation = (_correlation(before, lag) + _correlation(after, lag)) / 2 + 2 / total
        factor += 2 * (1 - lag / _WINDOW) * correlation
    return Dependence(max(1.0, factor), 1.5 * total / _WINDOW)


def _correlation(values: NDArray[Any], lag: int) -> float:
    """The correlation between values that are this many rounds apart."""
    rest = np.log(values) - np.log(values).mean()
    total = float(rest @ rest)
    return float(rest[lag:] @ rest[:-lag]) / total if total else 0.0
