"""Whether a figure from a driver, the kernel or an agent can be true: a table of ranges, and checks by it.

A counter of -1, a register with all bits set, NaN, a utilization of 4,294,967,295 %: drivers return such
values when they know nothing. Such a figure is left out with a reason, and the others are kept. It is not
replaced by the nearest possible value, because a 0 instead of NaN would read as idle. Only a share of up to
101 % becomes 100 %: this is the rounding of a period that was measured slightly too short. Agents check what
they measure, the server checks what arrives, and readers check what an older server has stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from peerway_common.printable import shortened
from peerway_jobs.metrics import METRICS, Metric

_ROUNDING = 0.01  # a share measured over a slightly too short time may exceed 1 by this much

# The largest possible figure for each unit; _OF_METRIC has the metrics with a limit of their own.
_OF_UNIT: dict[str, float] = {
    "ratio": 1 + _ROUNDING,
    "bytes": float(1 << 62),
    "seconds": 1e13,  # CPU time: 10,000 cores for 30 years
    "watts": 10_000,
    "joules": 1e15,
    "celsius": 150,
    "hertz": 1e11,
    "processes": 1 << 22,  # the kernel's largest number of processes
    "threads": 1 << 22,
    "ticks": float(1 << 62),
    "packets": float(1 << 62),
    "errors": float(1 << 62),
    "operations": float(1 << 62),
    "faults": float(1 << 62),
    "batches": 1e12,
    "failures": 1e12,
}
_MEMORY = float(1 << 50)  # of one node or step: 1 PiB
_OF_METRIC: dict[str, float] = {
    "gpu_memory_used_bytes": float(1 << 44),
    "gpu_memory_total_bytes": float(1 << 44),
    "node_oom_kills_total": 1e12,
    "step_oom_kills_total": 1e12,
    "agent_tick_seconds": 1e6,
    "node_power_watts": 100_000,
} | {metric.name: _MEMORY for metric in METRICS.values()
     if metric.unit == "bytes" and metric.type == "gauge" and metric.kind != "gpu"}  # fmt: skip

# A part is never larger than its whole.
_PART_OF = {
    "gpu_memory_used_bytes": "gpu_memory_total_bytes",
    "node_memory_available_bytes": "node_memory_total_bytes",
}
_REGISTERS = (32, 64)  # bits; a register with all bits set has no figure, or has stopped counting

Value = float | int | None


@dataclass(frozen=True, slots=True)
class Figure:
    """The result of checking one figure: its value, or the reason why there is none."""

    value: Value
    reason: str = ""


def checked(metric: str, value: object) -> Figure:
    """Check a figure of a metric. None means that it is absent, which needs no reason."""
    if value is None:
        return Figure(None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return Figure(None, f"{metric} is {shortened(repr(value))}, which is not a number")
    if isinstance(value, float) and not math.isfinite(value):
        return Figure(None, f"{metric} is {value}, which is not a finite number")
    most = largest(METRICS[metric])
    if not 0 <= value <= most:
        return Figure(None, f"{metric} is {shortened(str(value), 24)}, which is not from 0 to {most:,.6g}")
    if METRICS[metric].unit == "ratio" and value > 1:
        return Figure(1.0)
    return Figure(value)


def register(metric: str, value: int, unit: int = 1) -> Figure:
    """Check a hardware counter of 32 or 64 bits; each count stands for `unit`."""
    if any(value == (1 << bits) - 1 for bits in _REGISTERS):
        return Figure(None, f"{metric}: all bits of its counter are set ({value})")
    return checked(metric, value * unit)


def summed(metric: str, parts: Iterable[object]) -> Figure:
    """The sum of several figures; if one cannot be true there is no sum, because it would hide that
    figure.
    """
    total: float | int = 0
    for part in parts:
        figure = checked(metric, part)
        if figure.value is None:
            return figure
        total += figure.value
    return checked(metric, total)


def largest(metric: Metric) -> float:
    """The largest possible figure of a metric."""
    return _OF_METRIC.get(metric.name, _OF_UNIT[metric.unit])


def _all_within(column: list[Any], limit: float) -> bool:
    """Whether all are numbers from 0 to the limit, as nearly always; false for some columns that are good."""
    if not column or not _NUMBERS.issuperset(map(type, column)):
        return False
    # A NaN that is not the first does not show in min and max, but in the sum.
    return min(column) >= 0 and max(column) <= limit and not math.isnan(sum(column))


# A share above 1 is looked at, because it may be a rounding.
_LIMITS = {each.name: 1.0 if each.unit == "ratio" else largest(each) for each in METRICS.values()}
_NUMBERS = {int, float}


def sift(devices: list[str], values: dict[str, list[Value]]) -> list[tuple[str, str, str]]:
    """Replace each impossible figure by None; returns (device, metric, reason) for each."""
    wrong: list[tuple[str, str, str]] = []
    for metric, column in values.items():
        limit = _LIMITS[metric]
        if _all_within(column, limit):
            continue
        for place, value in enumerate(column):
            if type(value) in (int, float) and 0 <= value <= limit:  # type: ignore[operator]
                continue
            figure = checked(metric, value)
            column[place] = figure.value
            if figure.reason:
                wrong.append((devices[place], metric, figure.reason))
    for part, whole in _PART_OF.items():
        for place, (value, most) in enumerate(zip(values.get(part, ()), values.get(whole, ()), strict=False)):
            if value is not None and most is not None and value > most:
                values[part][place] = None
                why = f"{part} is {value}, which is more than {whole}, {most}"
                wrong.append((devices[place], part, why))
    return wrong
