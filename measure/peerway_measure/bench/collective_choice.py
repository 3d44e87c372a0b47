"""Which method of a collective is estimated to be fastest for which size, as rows of a decision."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

KIND_NUMBERS = {"all_reduce": 0, "reduce_scatter": 1, "all_gather": 2, "broadcast": 3}  # pw_collective_kind
COMBINING = ("all_reduce", "reduce_scatter")
ORDERS = ("group", "any")  # by the numbers of pw_order

Estimates = Sequence[tuple[int, Sequence[tuple[str, float]]]]  # bytes, and methods with their microseconds


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective among so many ranks of one host."""

    kind: str
    ranks: int
    order: str

    @property
    def title(self) -> str:
        """What stands for the operation in a decision."""
        order = " in any order" if self.order == "any" and self.kind in COMBINING else ""
        return f"{self.kind}{order} among {self.ranks} ranks"


def rows(estimates: Estimates) -> Iterator[dict[str, Any]]:
    """The ranges of sizes in which one method is cheapest, in the form of route/explain.h. Sizes are powers
    of two, so a range ends at most a factor of two behind the size where two methods cost the same.
    """
    ranges = [list(part) for _, part in groupby(estimates, key=lambda size: size[1][0][0])]
    ends = [part[0][0] for part in ranges[1:]]
    for part, end in zip(ranges, [*ends, None], strict=True):
        (first, at_first), (last, at_last) = part[0], part[-1]
        known = all(math.isfinite(us) for _, us in at_first)
        yield {
            "from": first,
            "to": end,
            "shown_to": last,
            "via": at_first[0][0],
            "parts": [],
            "us_from": at_first[0][1] if known else None,
            "us_to": at_last[0][1] if known else None,
            "spread": None,
            "next": _next_best(part) if known and len(at_first) > 1 else None,
            "why": "cheapest by the costs of sends" if known else "fewest bytes; costs are not known",
            "points": [],
        }


def _next_best(part: Estimates) -> dict[str, Any]:
    """The second method at the last size, and by how much it costs more, at least and at most."""
    name = part[-1][1][1][0]
    times = [dict(methods) for _, methods in part]
    margins = [methods[1][1] / methods[0][1] - 1 for _, methods in part]
    return {
        "via": name,
        "us_from": times[0][name],
        "us_to": times[-1][name],
        "margin": [min(margins), max(margins)],
    }
