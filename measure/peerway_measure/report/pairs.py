"""Heat maps of device pairs: for each test and size, the time or bandwidth from each source to each
target.
"""

from __future__ import annotations

import re
from statistics import median
from typing import TYPE_CHECKING, Any

from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure.bench.kinds import LIMITS, ROUTE
from peerway_measure.cube import cube_face
from peerway_measure.report.styles import FILE, PEERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record

MOST_CELLS = 250_000  # in all maps of a page: 27 sizes of 96 devices, about the most that a browser can draw

_MEASURES = {"bandwidth": ("bandwidth_MBps", bandwidth_text), "time": ("p50_us", time_text)}


def heat_maps(records: Sequence[Record]) -> tuple[list[dict[str, Any]], list[str]]:
    """The maps, and a line for each map that would have more cells than a page can hold.

    There is a map for each test, host and shape with two pairs or more. It has the devices and, for each size
    and measure, a matrix of values [source][target] and one of texts. A pair shows its route, or its best
    path if the route was not measured. Cube faces are left out.
    """
    groups: dict[tuple[str, str, str, str], list[Record]] = {}
    for r in records:
        if cube_face(r.shape) is None and r.via not in (*PEERS, *LIMITS):
            groups.setdefault((r.test, r.shape, r.host, str(r.extra.get(FILE, ""))), []).append(r)
    hosts = {r.host for r in records}
    maps, omitted, cells = [], [], 0
    for (test, shape, host, file), rows in groups.items():
        if len({(r.source, r.target) for r in rows}) < 2:
            continue
        name = " · ".join([test, shape, *([host] if len(hosts) > 1 else []), *([file] if file else [])])
        sources, targets = _devices(r.source for r in rows), _devices(r.target for r in rows)
        by_size: dict[int, list[Record]] = {}
        for r in rows:
            by_size.setdefault(r.bytes, []).append(r)
        needed = len(sources) * len(targets) * len(by_size)
        if cells + needed > MOST_CELLS:
            counts = f"{len(sources):,} sources, {len(targets):,} targets and {len(by_size):,} sizes"
            omitted.append(f"{name}: {counts} are {needed:,} cells; a page holds {MOST_CELLS:,}")
            continue
        cells += needed
        maps.append({
            "name": name, "sources": sources, "targets": targets,
            "sizes": [
                {"text": size_text(size), **_matrices(several, sources, targets)}
                for size, several in sorted(by_size.items())
            ],
        })  # fmt: skip
    return maps, omitted


def _matrices(rows: Iterable[Record], sources: list[str], targets: list[str]) -> dict[str, Any]:
    cells: dict[tuple[str, str], list[Record]] = {}
    for r in rows:
        cells.setdefault((r.source, r.target), []).append(r)
    best = {pair: _best(several) for pair, several in cells.items()}
    matrices: dict[str, Any] = {}
    for measure, (field, text) in _MEASURES.items():
        values: list[list[float | None]] = []
        texts: list[list[str]] = []
        vias: list[list[str]] = []
        for source in sources:
            chosen = [best.get((source, target)) for target in targets]
            numbers = [median(getattr(r, field) for r in several) if several else None for several in chosen]
            values.append([number or None for number in numbers])
            texts.append([text(number) if number else "" for number in numbers])
            vias.append([several[0].full_via if several else "" for several in chosen])
        matrices[measure] = {"z": values, "text": texts, "via": vias}
    return matrices


def _best(rows: Sequence[Record]) -> list[Record]:
    """The records of the route, or of the path with the lowest median time."""
    by_via: dict[str, list[Record]] = {}
    for r in rows:
        by_via.setdefault(r.full_via, []).append(r)
    if ROUTE in by_via:
        return by_via[ROUTE]
    return min(by_via.values(), key=lambda several: median(r.p50_us for r in several))


def _devices(names: Iterable[str]) -> list[str]:
    """Sort devices by number: cuda:2 before cuda:10."""
    return sorted(set(names), key=lambda name: [_with_numbers(part) for part in re.split(r"([0-9]+)", name)])


def _with_numbers(part: str) -> tuple[int, str]:
    """A sort key of text in which numbers are compared by their value."""
    digits = part.lstrip("0")
    return (len(digits), digits) if part.isascii() and part.isdigit() else (0, part)
