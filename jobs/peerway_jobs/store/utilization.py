"""Rollups of how much of the cluster was in use, by node type, so that long ranges need no samples.

A row has the sums over the minutes of one step of time. A longer step adds up the same minutes, and a mean is
a sum divided by another: cores allocated by cores, for example. So a minute is added to a row of each step
when it is recorded, and nothing is read again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.stored import LAST_S, MOST_SIZE, TEXT, number, readable
from peerway_jobs.store.transaction import transaction

DAY_S = 86_400
MINUTE_S = 60
# Of a row, sums over minutes. `…_measured` is the size of the nodes that sent figures then, `power_minutes`
# the minutes in which a GPU reported its power, `node_power_minutes` those in which a whole node did.
FIGURES = (
    "minutes", "nodes", "cores", "cores_allocated", "cores_measured", "cores_used",
    "gpus", "gpus_allocated", "gpus_measured", "gpus_used",
    "memory", "memory_allocated", "memory_measured", "memory_used", "power_minutes", "watts",
    "node_power_minutes", "node_watts",
)  # fmt: skip
KEPT_S = {MINUTE_S: DAY_S, 900: 7 * DAY_S, 14_400: 366 * DAY_S}  # by the length of a step
Range = Literal["hour", "day", "month"]
RANGES: dict[str, tuple[int, int]] = {  # length and step, in seconds
    "hour": (3600, MINUTE_S),
    "day": (DAY_S, 900),
    "month": (30 * DAY_S, 14_400),
}
SHARES = {  # name of a curve: its sums
    "cpu_allocated": ("cores_allocated", "cores"),
    "cpu_used": ("cores_used", "cores_measured"),
    "gpu_allocated": ("gpus_allocated", "gpus"),
    "gpu_used": ("gpus_used", "gpus_measured"),
    "memory_allocated": ("memory_allocated", "memory"),
    "memory_used": ("memory_used", "memory_measured"),
    "watts": ("watts", "power_minutes"),
    "node_watts": ("node_watts", "node_power_minutes"),
}
_AMOUNT = number(0, MOST_SIZE)
UTILIZATION = {
    "step": number(1, DAY_S, whole=True),
    "at": number(0, LAST_S, whole=True),
    "node_type": TEXT,
    **dict.fromkeys(FIGURES, _AMOUNT),
}
_ADD = (
    f"INSERT INTO utilization (step, at, node_type, {', '.join(FIGURES)}) "
    f"VALUES ({', '.join('?' * (3 + len(FIGURES)))}) ON CONFLICT (step, at, node_type) DO UPDATE SET "
    + ", ".join(f"{name} = utilization.{name} + excluded.{name}" for name in FIGURES)
)
Sums = dict[str, float]


@dataclass
class TypeUse:
    """The use of the nodes of one type over a range. A curve has one value a step, None where it is unknown;
    shares are between 0 and 1. The other figures are those of the last step with any.
    """

    nodes: float = 0
    cores: float = 0
    gpus: float = 0
    curves: dict[str, list[float | None]] = field(default_factory=dict)


@dataclass
class Utilization:
    """The use of the cluster over a range: a value each `step` seconds, from `begin` on."""

    begin: int
    step: int
    whole: TypeUse
    types: dict[str, TypeUse]
    unreadable: list[str]


def record(store: JobStore, at: float, minute: Mapping[str, Mapping[str, float]]) -> None:
    """Add the figures of a minute by node type, and drop what has been kept long enough."""
    rows = [
        (step, int(at // step * step), node_type, *(figures.get(name, 0.0) for name in FIGURES))
        for node_type, figures in minute.items()
        for step in KEPT_S
    ]
    with store.lock, transaction(store.writer) as base:
        base.executemany(_ADD, rows)
        for step, kept in KEPT_S.items():
            base.execute("DELETE FROM utilization WHERE step = ? AND at < ?", (step, int(at - kept)))


def utilization(base: Connection, now: float, length: Range) -> Utilization:
    """The use up to now. A row that cannot be read is left out and named."""
    seconds, step = RANGES[length]
    begin = int(now // step * step) - seconds + step
    columns = seconds // step
    rows: defaultdict[str, dict[int, Sums]] = defaultdict(dict)
    unreadable: set[str] = set()
    query = "SELECT * FROM utilization WHERE step = ? AND at >= ? AND at < ?"
    for row in base.execute(query, (step, begin, begin + seconds)):
        values, names = readable(UTILIZATION, row)
        unreadable.update(f"utilization.{name}" for name in names)
        if not names:
            rows[values["node_type"]][(values["at"] - begin) // step] = _sums(values)
    types = {name: _type_use(rows[name], columns) for name in sorted(rows)}
    return Utilization(begin, step, _whole(rows, types, columns), types, sorted(unreadable))


def _sums(values: Mapping[str, Any]) -> Sums:
    return {name: float(values[name]) for name in FIGURES}


def _type_use(rows: Mapping[int, Sums], columns: int) -> TypeUse:
    curves = {
        name: [_ratio(rows.get(column), *sums) for column in range(columns)] for name, sums in SHARES.items()
    }
    last = rows[max(rows)] if rows else {}
    sizes = {name: _ratio(last, name, "minutes") or 0.0 for name in ("nodes", "cores", "gpus")}
    return TypeUse(**sizes, curves=curves)


def _whole(rows: Mapping[str, Mapping[int, Sums]], types: Mapping[str, TypeUse], columns: int) -> TypeUse:
    """All types together. Their power is the sum of their means, because each has minutes of its own."""
    added: defaultdict[int, Sums] = defaultdict(lambda: dict.fromkeys(FIGURES, 0.0))
    for several in rows.values():
        for column, sums in several.items():
            for name in FIGURES:
                added[column][name] += sums[name]
    whole = _type_use(added, columns)
    for name in ("nodes", "cores", "gpus"):
        setattr(whole, name, sum(getattr(each, name) for each in types.values()))
    for name in ("watts", "node_watts"):
        for column in range(columns):
            powers = [each.curves[name][column] for each in types.values()]
            known = [power for power in powers if power is not None]
            whole.curves[name][column] = sum(known) if known else None
    return whole


def _ratio(sums: Sums | None, above: str, below: str) -> float | None:
    if not sums or not sums.get(below):
        return None
    return sums[above] / sums[below]
