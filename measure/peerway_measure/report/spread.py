"""How much measurements of one point differ: between records, or within a single one."""

from __future__ import annotations

from statistics import median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peerway_measure.records import Record

_TIMES = 1000  # percent, from which a number of times is read more easily
_SPREAD = "spread"  # in the extra of a record: half the distance of its samples' quartiles, relative


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
    """Format " ±3 %" or " ±12×": half the distance of the quartiles; "" if unknown."""
    middle, (low, high) = median(getattr(r, field) for r in rows), quartiles(rows, field)
    percent = 50 * (high - low) / middle if middle else 0.0
    if percent >= _TIMES:
        return f" ±{percent / 100:.0f}×"
    return f" ±{percent:.0f} %" if percent >= 1 else f" ±{percent:.1f} %" if percent >= 0.05 else ""
