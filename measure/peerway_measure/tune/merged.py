"""Merges a table that was measured between hosts into the previous table."""

from __future__ import annotations

from typing import Any


def with_pairs_of(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The new table and, in each of its lists, the previous entries of pairs that were not measured this
    time.
    """
    measured = {cost["pair"] for cost in after["costs"]}
    kept = {
        name: [entry for entry in before[name] if entry["pair"] not in measured]
        for name in ("costs", "splits", "unavailable")
    }
    same = kept["unavailable"]
    new = [entry for entry in after["unavailable"] if entry not in same]
    return after | {
        "costs": kept["costs"] + after["costs"],
        "splits": kept["splits"] + after["splits"],
        "unavailable": same + new,
        "staging chunk": before["staging chunk"] or after["staging chunk"],
    }
