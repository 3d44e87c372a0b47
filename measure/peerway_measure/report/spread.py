"""Tells how much measurements of one point differ, between records or within a single one."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peerway_measure.records import Record

_TIMES = 1000  # from this percentage on, a factor is easier to read
_SPREAD = "spread"  # in `extra`: half the interquartile range of the samples, relative to their median


def quartiles(rows: Sequence[Record], field: str) -> tuple[float, float]:
    """The quartiles of the records, or of the samples if there is only one record."""
    values = [getattr(r, field) for r in rows]
    if len(values) > 1:
        low, _, high = quantiles(values, n=4, method="inclusive")
        return low, high
    spread = rows[0].extra.get(_SPREAD)
    share = min(max(spread, 0.0), 0.9) if isinstance(spread, int | float) else 0.0
    return values[0] * (1 - share), values[0] * (1 + share)


def spread_text(rows: Sequence[Record], field: str) -> str:
    """Format " ±3 %" or " ±12×": half the interquartile range relative to the median; "" if unknown."""
    middle, (low, high) = median(getattr(r, field) for r in rows), quartiles(rows, field)
    percent = 50 * (high - low) / middle if middle else 0.0
    if percent >= _TIMES:
        return f" ±{percent / 100:.0f}×"
    return f" ±{percent:.0f} %" if percent >= 1 else f" ±{percent:.1f} %" if percent >= 0.05 else ""
