"""The answer for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.hours import Field, Row, Sum, Worth
from peerway_measure.worth.notices import Effect


def document(
    worth: Worth | None, effect: Effect | None, by: Field, resource: str, assumed: Assumptions
) -> dict[str, Any]:
    """Everything, with the values of all assumptions. What is unknown is null."""
    answer: dict[str, Any] = {"resource": resource, "assumptions": assumed.as_dict()}
    if worth:
        answer |= {
            "rows": [_row(row) for row in worth.rows],
            "by": by,
            "sums": [_sum(each) for each in worth.sums],
            "total": _sum(worth.total),
        }
    if effect:
        answer["notices"] = asdict(effect) | {"interval": _pair(effect.interval)}
    return answer


def _row(row: Row) -> dict[str, Any]:
    gain = row.gain
    return {
        "application": row.application, "node_type": row.node_type, "hours": row.sum.hours,
        "in_transfers": gain.measured, "in_unmeasured_transfers": gain.unmeasured, "traces": gain.traces,
        "less_time": gain.value, "less_time_interval": _pair(row.interval), "freed": row.sum.freed,
        "freed_interval": _pair(row.sum.interval), "unknown_because": gain.problem,
        "measure": list(gain.commands), "notes": list(gain.notes), "averaged": row.averaged,
    }  # fmt: skip


def _sum(each: Sum) -> dict[str, Any]:
    return {"name": each.name, "hours": each.hours, "known_hours": each.known_hours, "freed": each.freed,
            "freed_interval": _pair(each.interval)}  # fmt: skip


def _pair(ends: Sequence[float] | None) -> list[float] | None:
    return None if ends is None else list(ends)
