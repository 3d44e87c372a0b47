"""The numbers of a page besides plots: the summary table, and facts about the machines."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure.compare.metric import ranks_text
from peerway_measure.cube import shape_class
from peerway_measure.report.spread import spread_text
from peerway_measure.report.styles import curve, moves_data

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peerway_measure.records import Record
    from peerway_measure.report.styles import Style


@dataclass(frozen=True, slots=True)
class Row:
    """One curve in numbers.

    `fastest` and `widest` say whether it is the best of all paths and libraries of the same test, shape and
    pair. Limits of the hardware do not compete.
    """

    group: str
    curve: str
    small: str
    spread: str
    small_at: str
    large: str
    large_at: str
    points: int
    checked: bool
    fastest: bool
    widest: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """One environment in which records were made."""

    host: str
    device: str
    driver: str
    version: str
    records: int
    when: str


def summary(records: Iterable[Record], styles: Mapping[str, Style]) -> list[Row]:
    """A row for each curve, in the order of the sections and of the legend."""
    order = {name: i for i, name in enumerate(styles)}
    groups: dict[str, dict[str, list[Record]]] = {}
    several = list(records)
    hosts = {r.host for r in several}
    for r in several:
        name = " · ".join(
            [r.test, shape_class(r.shape), f"{r.source} to {r.target}", ranks_text(r.test, r.ranks)]
        )
        name += f" · {r.host}" if len(hosts) > 1 else ""
        groups.setdefault(name, {}).setdefault(curve(r), []).append(r)
    return [
        row for name, curves in groups.items()
        for row in _rows(name, dict(sorted(curves.items(), key=lambda item: order[item[0]])), styles)
    ]  # fmt: skip


def facts(records: Iterable[Record]) -> list[Machine]:
    """The hosts, devices, drivers and versions in the records, and when they were measured."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for r in records:
        groups.setdefault((r.host, r.device, r.driver, r.version), []).append(r.time)
    return [Machine(*key, len(times), _when(times)) for key, times in groups.items()]


def _rows(group: str, curves: dict[str, list[Record]], styles: Mapping[str, Style]) -> Iterable[Row]:
    least = min(r.bytes for rows in curves.values() for r in rows)
    smallest = {name: [r for r in rows if r.bytes == least] for name, rows in curves.items()}
    small = {name: median(r.p50_us for r in rows) for name, rows in smallest.items() if rows}
    wide = {name: _widest(rows) for name, rows in curves.items()}
    competing = [name for name in curves if not styles[name].is_limit]
    fastest = min((small[name] for name in competing if name in small), default=None)
    widest = max((wide[name][0] for name in competing), default=0.0)
    for name, rows in curves.items():
        time, (rate, at) = small.get(name), wide[name]
        several = len(curves) > 1 and name in competing
        yield Row(
            group=group,
            curve=name,
            small="" if time is None else time_text(time),
            spread="" if time is None else spread_text(smallest[name], "p50_us").strip(),
            small_at="" if time is None else size_text(least),
            large=bandwidth_text(rate) if rate else "",
            large_at=size_text(at) if rate else "",
            points=len(rows),
            checked=all(r.validated for r in rows),
            fastest=several and time == fastest,
            widest=several and rate == widest > 0,
        )


def _widest(rows: Sequence[Record]) -> tuple[float, int]:
    """The highest median bandwidth and the size that has it."""
    rates: dict[int, list[float]] = {}
    for r in rows:
        rates.setdefault(r.bytes, []).append(r.bandwidth_MBps if moves_data(r) else 0.0)
    return max((median(several), size) for size, several in rates.items())


def _when(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"
