"""Which nodes are not like others of their type: by a rule that a few of them do not move.

A node is odd when its median is further from the median of its type than 3.5 robust standard deviations
(1.4826 times the median distance; Iglewicz and Hoaglin, 1993) and by more than 5 %. With fewer than 5 nodes
of a type none is judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from peerway.compare.metric import Metric, metric_of
from peerway.records import Record

LEAST_NODES = 5
_DEVIATIONS, _ROBUST, _RELATIVE = 3.5, 1.4826, 0.05


@dataclass(frozen=True)
class Cell:
    """One test on one node. `ratio`: better than its type by this factor."""

    test: str
    node: str
    type: str
    metric: Metric
    value: float
    of_type: float
    ratio: float
    odd: bool
    judged: bool


def name_of(record: Record) -> str:
    """A test with all that tells it apart."""
    size = f" {record.bytes}" if record.bytes else ""
    return f"{record.test} {record.via} {record.shape}{size} {record.ranks}"


def cells(records: Iterable[Record]) -> list[Cell]:
    """Each test on each node."""
    groups: dict[tuple[str, str], dict[str, list[float]]] = {}
    metrics: dict[str, Metric] = {}
    for record in records:
        name = name_of(record)
        metric = metrics.setdefault(name, metric_of(record.test))
        value = metric.of(record)
        if value is not None and value > 0:
            groups.setdefault((name, record.node_type), {}).setdefault(record.host, []).append(value)
    return [
        cell for (name, kind), nodes in groups.items() for cell in _judged(name, kind, metrics[name], nodes)
    ]


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
