"""From gains to hours: the rows by application and node type, and sums of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.model import Gain, Inputs, gains
from peerway_measure.worth.usage import Accounts, Usage

Field = Literal["application", "account", "project", "node_type"]
FIELDS: tuple[Field, ...] = ("application", "node_type", "account", "project")
_ENDS = (2.5, 97.5)  # per cent of the draws


@dataclass(frozen=True, slots=True)
class Sum:
    """Hours that are freed. `hours` were allocated, `known_hours` of them where the gain is known. `freed` is
    None where nothing is known, `interval` where its bounds are not.
    """

    name: str
    hours: float | None
    known_hours: float
    freed: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Row:
    """An application on a node type."""

    application: str
    node_type: str
    gain: Gain
    sum: Sum
    averaged: bool = False  # the gain is that of others: the assumption `untraced`

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the share of the run time that is saved."""
        return None if self.gain.draws is None else _ends(self.gain.draws)


@dataclass(frozen=True, slots=True)
class Worth:
    """All rows, the sums by one column of the usage, and the total."""

    rows: list[Row]
    sums: list[Sum]
    total: Sum


def worth(accounts: Accounts | None, inputs: Inputs, by: Field, assumed: Assumptions) -> Worth:
    """Join the accounts with the gains. Raises BadFile."""
    usage = accounts.rows if accounts else ()
    pairs = [(u.application, u.node_type) for u in usage] if accounts else _pairs_of(inputs)
    of_pair = gains(pairs, inputs, assumed)
    averaged: set[tuple[str, str]] = set()
    if assumed.untraced == "average":
        averaged = _fill_in(of_pair, usage)
    to_year = accounts.to_year if accounts and assumed.year == "scaled" else 1.0
    scale = (to_year, assumed.used / 100)
    grouped: dict[tuple[str, str], list[Usage]] = {pair: [] for pair in of_pair}
    for each in usage:
        grouped[each.application, each.node_type].append(each)
    rows = [
        Row(*pair, of_pair[pair], _sum("", several, of_pair, scale), pair in averaged)
        for pair, several in grouped.items()
    ]
    rows.sort(key=lambda row: (-(row.sum.hours or 0), row.application, row.node_type))
    names: dict[str, list[Usage]] = {}
    for each in usage:
        names.setdefault(getattr(each, by), []).append(each)
    sums = [_sum(name, several, of_pair, scale) for name, several in names.items()]
    sums.sort(key=lambda each: -(each.hours or 0))
    return Worth(rows, sums, _sum("total", usage, of_pair, scale))


def _pairs_of(inputs: Inputs) -> list[tuple[str, str]]:
    """Without accounts: what the shares name, on the node types that the records name."""
    types = sorted({s.node_type for s in inputs.speedups or ()})
    return [
        (application, kind) for application, own in (*inputs.shares, *inputs.stated)
        for kind in ([own] if own or not types else types)
    ]  # fmt: skip


def _sum(
    name: str, usage: Sequence[Usage], of_pair: dict[tuple[str, str], Gain], scale: tuple[float, float]
) -> Sum:
    """Add up rows; `scale` has the factor from hours to those of a year, and the share of freed hours that
    is used.
    """
    if not usage:
        return Sum(name, None, 0.0, None, None)
    to_year, used = scale
    hours: dict[tuple[str, str], float] = {}
    for each in usage:
        key = (each.application, each.node_type)
        hours[key] = hours.get(key, 0.0) + each.hours * to_year
    known = {key: value for key, value in hours.items() if of_pair[key].value is not None}
    all_hours, known_hours = (sum(several.values()) for several in (hours, known))
    if not known:
        return Sum(name, all_hours, 0.0, None, None)
    freed, draws = 0.0, np.zeros(1)
    interval = True
    for key, value in known.items():
        gain = of_pair[key]
        freed += value * used * (gain.value or 0.0)
        if gain.draws is None:
            interval = False
        else:
            draws = draws + value * used * gain.draws
    return Sum(name, all_hours, known_hours, freed, _ends(draws) if interval else None)


def _ends(draws: NDArray[Any]) -> tuple[float, float]:
    low, high = np.percentile(draws, _ENDS)
    return float(low), float(high)


def _fill_in(of_pair: dict[tuple[str, str], Gain], usage: Sequence[Usage]) -> set[tuple[str, str]]:
    """Give untraced applications the mean gain of the known ones of their node type, weighted by hours."""
    hours: dict[tuple[str, str], float] = {}
    for each in usage:
        key = (each.application, each.node_type)
        hours[key] = hours.get(key, 0.0) + each.hours
    filled = set()
    means: dict[str, Gain] = {}
    for kind in {node_type for _, node_type in of_pair}:
        known = {key: gain for key, gain in of_pair.items() if key[1] == kind and gain.value is not None}
        total = sum(hours.get(key, 0.0) for key in known)
        if not total:
            continue
        value = sum(hours[key] * (gain.value or 0.0) for key, gain in known.items()) / total
        drawn = [hours[key] / total * gain.draws for key, gain in known.items() if gain.draws is not None]
        draws = np.sum(drawn, axis=0) if len(drawn) == len(known) else None
        means[kind] = Gain(value, draws, notes=("not traced: the mean of its node type",))
    for key, gain in of_pair.items():
        if gain.untraced and key[1] in means:
            of_pair[key] = means[key[1]]
            filled.add(key)
    return filled
