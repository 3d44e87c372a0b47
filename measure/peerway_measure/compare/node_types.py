"""The table by node type, in the form in which centres publish an upgrade: node type, n, before, after,
speed-up %; with what distinguishes an effect from chance.

A sample is a round of a campaign (samples.py). A difference is called an effect of the upgrade only if
nothing else changed. Other changes are named, and the row is then "not attributable".

If the sides were measured one after the other, everything that changed with time is part of the difference.
From ten rounds a side on, the correlation between successive rounds widens the interval; with fewer rounds
the row is "confounded with time".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np

from peerway_measure.compare.changes import moved_besides
from peerway_measure.compare.groups import Pair, pair_up
from peerway_measure.compare.metric import Metric, metric_of, name_of
from peerway_measure.compare.order import order_of
from peerway_measure.compare.runs import started
from peerway_measure.compare.samples import Samples, samples_of
from peerway_measure.compare.statistics import Difference, Verdict, judged
from peerway_measure.records import STATE_WANTED
from peerway_measure.storage.states import STATES, test_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record

Attribution = Verdict | Literal["not attributable"]
NO_TYPE = "(no type)"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a row: the number of measurements and nodes, their mean and median, and half the
    interquartile range relative to the median.
    """

    n: int
    nodes: int
    mean: float
    median: float
    spread: float | None
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One test on one node type.

    `mean_percent` is the published number, the difference of the means. `percent`, `low` and `high` are of
    the samples. `widened` is the factor by which correlated rounds widened the interval. `in_turn` says
    whether both sides were measured in turn, None if the records do not say it.
    """

    pair: Pair
    metric: Metric
    node_type: str
    before: Side
    after: Side
    mean_percent: float | None
    percent: float | None
    low: float | None
    high: float | None
    p: float | None
    samples: tuple[int, int]
    widened: float
    besides: tuple[str, ...]
    omitted: tuple[str, ...]
    difference: Difference
    in_turn: bool | None
    enough_rounds: bool

    @property
    def verdict(self) -> Attribution:
        """The verdict on the upgrade."""
        if self.difference in ("faster", "slower") and self.besides:
            return "not attributable"
        if self.difference in ("faster", "slower") and self.in_turn is False and not self.enough_rounds:
            return "confounded with time"
        return self.difference


def rows(
    before: Iterable[Record],
    after: Iterable[Record],
    factors: Sequence[str] = (),
    metric_name: str | None = None,
) -> list[Row]:
    """A row for each test and node type that both sides have. Within a test, the types keep their order."""
    pairs = [p for p in pairs_of(before, after, factors) if p.before and p.after]
    pairs.sort(key=lambda p: str(p.key.get("node_type")))
    pairs.sort(key=lambda p: tuple(str(v) for n, v in p.key.as_dict().items() if n != "node_type"))
    drawn = [
        (p, metric, samples_of(p, metric))
        for p in pairs
        for metric in [metric_of(p.before[0].test, metric_name)]
    ]
    drawn = [(p, metric, s) for p, metric, s in drawn if s.before.size and s.after.size]
    judgements = judged(
        [(s.before, s.after) for _, _, s in drawn],
        [metric.more_is_better for _, metric, _ in drawn],
        [s.correlation for _, _, s in drawn],
    )
    return [_row(p, m, s, factors, *numbers) for (p, m, s), numbers in zip(drawn, judgements, strict=True)]


def of_one_side(
    before: Iterable[Record], after: Iterable[Record], factors: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Test and node type of each group that only one side has, and which therefore has no row."""
    names: tuple[list[str], list[str]] = ([], [])
    for pair in pairs_of(before, after, factors):
        if not (pair.before and pair.after):
            r = (pair.before or pair.after)[0]
            names[0 if pair.before else 1].append(f"{name_of(r)}, of {r.node_type or NO_TYPE}")
    return names


def pairs_of(before: Iterable[Record], after: Iterable[Record], factors: Sequence[str]) -> list[Pair]:
    """The groups of each test and node type, whether one or both sides have them."""
    return pair_up(map(_as_wanted, before), map(_as_wanted, after), ("node_type",), factors)


def _as_wanted(record: Record) -> Record:
    """The record with the requested cache state in its shape.

    A read whose caches held something else remains the same test. Otherwise an upgrade that changes what
    caches hold would have no row. The state that was found is in `state`, and counts as a change.
    """
    wanted = record.extra.get(STATE_WANTED)
    return replace(record, test=test_of(wanted)) if isinstance(wanted, str) and wanted in STATES else record


def _row(
    pair: Pair,
    metric: Metric,
    samples: Samples,
    factors: Sequence[str],
    speedup: float | None,
    low: float | None,
    high: float | None,
    p: float | None,
    difference: Difference,
) -> Row:
    old, new = (_side(records, metric) for records in (pair.before, pair.after))
    good, bad = (new.mean, old.mean) if metric.more_is_better else (old.mean, new.mean)
    order = order_of(started(pair.before, metric), started(pair.after, metric))
    besides = moved_besides(pair, (*factors, *(("host",) if samples.same_nodes else ())))
    return Row(
        pair,
        metric,
        str(pair.key.get("node_type") or NO_TYPE),
        old,
        new,
        (good / bad - 1) * 100 if bad else None,
        _percent(speedup),
        _percent(low),
        _percent(high),
        p,
        (samples.before.size, samples.after.size),
        sqrt(samples.correlation.factor) if samples.correlation else 1.0,
        tuple(besides),
        samples.omitted,
        difference,
        None if order is None else order.in_turn,
        samples.correlation is not None,
    )


def _side(records: Sequence[Record], metric: Metric) -> Side:
    values = np.array([v for r in records if (v := metric.of(r)) is not None])
    middle = float(np.median(values))
    low, high = np.percentile(values, (25, 75))
    spread = float(high - low) / 2 / middle if values.size > 1 and middle else None
    return Side(
        values.size,
        len({r.host for r in records}),
        float(values.mean()),
        middle,
        spread,
        tuple(map(float, values)),
    )


def _percent(ratio: float | None) -> float | None:
    return None if ratio is None else (ratio - 1) * 100
