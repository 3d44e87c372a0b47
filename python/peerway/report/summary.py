"""The numbers of a page that are no plots: the summary table and the facts of the machines."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from peerway.bench.kinds import LIMITS
from peerway.cube import shape_class
from peerway.units import bandwidth_text, size_text, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway.records import Record


@dataclass(frozen=True, slots=True)
class Row:
    """One curve in numbers. `fastest` and `widest`: best of all paths and peers of the same test, shape and
    pair; limits of the hardware do not compete.
    """

    group: str
    via: str
    small: str
    small_at: str
    large: str
    large_at: str
    points: int
    checked: bool
    fastest: bool
    widest: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """One kind of surroundings that records were made in."""

    host: str
    device: str
    driver: str
    version: str
    records: int
    when: str


def summary(records: Iterable[Record], vias: Iterable[str]) -> list[Row]:
    """A row for each curve, in the order of the sections and of the legend."""
    order = {via: i for i, via in enumerate(vias)}
    groups: dict[str, dict[str, list[Record]]] = {}
    several = list(records)
    hosts = {r.host for r in several}
    for r in several:
        name = " · ".join([r.test, shape_class(r.shape), f"{r.source} to {r.target}", f"{r.ranks} ranks"])
        name += f" · {r.host}" if len(hosts) > 1 else ""
        groups.setdefault(name, {}).setdefault(r.via, []).append(r)
    return [
        row for name, curves in groups.items()
        for row in _rows(name, dict(sorted(curves.items(), key=lambda item: order[item[0]])))
    ]  # fmt: skip


def facts(records: Iterable[Record]) -> list[Machine]:
    """The hosts, devices, drivers and versions in the records, and when they were measured."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for r in records:
        groups.setdefault((r.host, r.device, r.driver, r.version), []).append(r.time)
    return [Machine(*key, len(times), _when(times)) for key, times in groups.items()]


def _rows(group: str, curves: dict[str, list[Record]]) -> Iterable[Row]:
    least = min(r.bytes for rows in curves.values() for r in rows)
    small = {via: _median([r for r in rows if r.bytes == least], "p50_us") for via, rows in curves.items()}
    wide = {via: _widest(rows) for via, rows in curves.items()}
    fastest = min((t for via, t in small.items() if t is not None and via not in LIMITS), default=None)
    widest = max((rate for via, (rate, _) in wide.items() if via not in LIMITS), default=0.0)
    for via, rows in curves.items():
        time, (rate, at) = small[via], wide[via]
        several = len(curves) > 1
        yield Row(
            group=group,
            via=via,
            small=time_text(time) if time is not None else "",
            small_at=size_text(least) if time is not None else "",
            large=bandwidth_text(rate) if rate else "",
            large_at=size_text(at) if rate else "",
            points=len(rows),
            checked=all(r.validated for r in rows),
            fastest=several and via not in LIMITS and time == fastest,
            widest=several and via not in LIMITS and rate == widest > 0,
        )


def _widest(rows: Sequence[Record]) -> tuple[float, int]:
    """The highest median bandwidth and the size that has it."""
    rates: dict[int, list[float]] = {}
    for r in rows:
        rates.setdefault(r.bytes, []).append(r.bandwidth_MBps)
    return max((median(several), size) for size, several in rates.items())


def _median(rows: Sequence[Record], field: str) -> float | None:
    return median(getattr(r, field) for r in rows) if rows else None


def _when(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"
