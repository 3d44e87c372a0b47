"""Finds nodes that differ from others of their type, by a rule that a few such nodes do not affect.

A node is odd if its median differs from the median of its type by more than 3.5 robust standard deviations
(1.4826 times the median distance; Iglewicz and Hoaglin, 1993) and by more than 5 %. With fewer than 5 nodes
of a type, none is judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from peerway_measure.compare.metric import Metric, metric_of, name_of
from peerway_measure.records import Record

LEAST_NODES = 5
LEAST_VALUES = 5  # the fewest nodes of a type against which one is judged
_DEVIATIONS, _ROBUST, _RELATIVE = 3.5, 1.4826, 0.05


@dataclass(frozen=True)
class Cell:
    """One test on one node. It is better than its type by the factor `ratio`."""

    test: str
    node: str
    type: str
    metric: Metric
    value: float
    of_type: float
    ratio: float
    odd: bool
    judged: bool


def cells(records: Iterable[Record]) -> list[Cell]:
    """The result of each test on each node."""
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    metrics: dict[str, Metric] = {}
    for name, record, value in _values(records):
        metrics.setdefault(name, metric_of(record.test))
        groups.setdefault((name, record.node_type), {}).setdefault(record.host, []).append(value)
    return [
        cell for (name, kind), nodes in groups.items() for cell in _judged(name, kind, metrics[name], nodes)
    ]


def _values(records: Iterable[Record]) -> Iterator[tuple[str, Record, float]]:
    """The values of each test, by its name. Records without a value are left out."""
    for record in records:
        value = metric_of(record.test).of(record)
        if value is not None and value > 0:
            yield name_of(record), record, value


def against(baseline: Iterable[Record], measured: Iterable[Record]) -> list[Cell]:
    """Compare each test on each node that was measured now with what a campaign measured on the same type.

    Measurements of one node differ among themselves, too. So the deviation is that of all measurements, and
    one node is enough to know it.
    """
    known: dict[tuple[str, str], list[float]] = {}
    for name, record, value in _values(baseline):
        known.setdefault((name, record.node_type), []).append(value)
    return [
        replace(cell, **_compared_with(cell, known.get((cell.test, cell.type), [])))
        for cell in cells(measured)
    ]


def _compared_with(cell: Cell, values: list[float]) -> dict[str, Any]:
    if len(values) < LEAST_VALUES:
        return {"odd": False, "judged": False}
    middle = median(values)
    deviation = _ROBUST * median(abs(value - middle) for value in values)
    return {
        "of_type": middle,
        "ratio": cell.value / middle if cell.metric.more_is_better else middle / cell.value,
        "odd": abs(cell.value - middle) > max(_DEVIATIONS * deviation, _RELATIVE * middle),
        "judged": True,
    }


def _judged(name: str, kind: str, metric: Metric, nodes: dict[str, list[float]]) -> list[Cell]:
    values = {node: median(several) for node, several in nodes.items()}
    middle = median(values.values())
    deviation = _ROBUST * median(abs(value - middle) for value in values.values())
    judged = len(values) >= LEAST_NODES
    return [
        Cell(
            name,
            node,
            kind,
            metric,
            value,
            middle,
            value / middle if metric.more_is_better else middle / value,
            judged and abs(value - middle) > max(_DEVIATIONS * deviation, _RELATIVE * middle),
            judged,
        )
        for node, value in values.items()
    ]
