"""Writes the headline of a page: whether the automatic choice of the path is right, and how other libraries
compare.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from peerway_common.units import size_text
from peerway_measure.bench.kinds import LIMITS, ROUTE
from peerway_measure.report.styles import FILE, is_path, is_peer, of_last_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence, Sized

    from peerway_measure.records import Record

_NEAR = 1.1  # times that differ by less than a tenth count as equal

# A point, at which results are compared: test, shape, bytes, ranks, source, target, host.
Point = tuple[str, str, int, int, str, str, str]


def headline(records: Sequence[Record]) -> list[str]:
    """Some sentences about the records. With several files, they are about the last file with a case."""
    cases: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        cases.setdefault((r.test, r.shape, r.ranks, r.source, r.target, r.host), []).append(r)
    latest = [of_last_file(rows) for rows in cases.values()]
    points = _points(r for rows in latest for r in rows)
    sentences = [*_of_choice(points), *_of_tools(points)]
    sentences = sentences or ["No automatic choice (route) and no other tool was measured beside the paths."]
    several = {
        str(last[0].extra.get(FILE, ""))
        for last, rows in zip(latest, cases.values(), strict=True)
        if len(last) < len(rows)
    }
    if several:
        sentences.append(
            f"Of what several files have measured, this judges {' and '.join(sorted(several))} alone."
        )
    return sentences


def _points(records: Iterable[Record]) -> dict[Point, dict[str, float]]:
    """The median time of each path and library at each point. Limits of the hardware do not compete."""
    times: dict[Point, dict[str, list[float]]] = {}
    for r in records:
        if r.via not in LIMITS and r.p50_us > 0:
            point = (r.test, r.shape, r.bytes, r.ranks, r.source, r.target, r.host)
            times.setdefault(point, {}).setdefault(r.full_via, []).append(r.p50_us)
    return {
        point: {via: median(several) for via, several in vias.items()}
        for point, vias in times.items()
    }  # fmt: skip


def _of_choice(points: dict[Point, dict[str, float]]) -> list[str]:
    """Compare the route with the fastest of the paths that were measured alone."""
    off: dict[Point, tuple[float, str]] = {}
    for point, vias in points.items():
        paths = {via: time for via, time in vias.items() if is_path(via)}
        if ROUTE in vias and paths:
            best = min(paths, key=paths.__getitem__)
            off[point] = vias[ROUTE] / paths[best], best
    if not off:
        return []
    near = sum(ratio <= _NEAR for ratio, _ in off.values())
    text = f"The automatic choice (route) is within 10 % of the fastest path at {near:,} of {_count(off)}."
    if near < len(off):
        point = max(off, key=lambda point: off[point][0])
        test, _, count, _, source, target, _ = point
        ratio, best = off[point]
        text += f" At worst it takes {ratio:.1f} times as long as {best}:"
        text += f" {test}, {size_text(count)}, {source} to {target}."
    return [text]


def _of_tools(points: dict[Point, dict[str, float]]) -> list[str]:
    """Compare Peerway with the best of the other libraries. Peerway's result is that of the route, which
    programs use; if it was not measured, that of the fastest path.
    """
    by_route, by_paths = _Against(), _Against()
    for vias in points.values():
        paths = [time for via, time in vias.items() if is_path(via)]
        tools = {via: time for via, time in vias.items() if is_peer(via)}
        if tools and ROUTE in vias:
            by_route.add(vias[ROUTE], tools)
        elif tools and paths:
            by_paths.add(min(paths), tools)
    fastest = "elsewhere the fastest path is" if by_route.ratios else "the fastest path is"
    clauses = [*by_route.clauses("the route is"), *by_paths.clauses(fastest)]
    if not clauses:
        return []
    names = ", ".join(sorted(by_route.tools | by_paths.tools))
    return [f"Against the best of {names}, {'; '.join(clauses)}. Less than 10 % is equal."]


@dataclass(slots=True)
class _Against:
    """Points at which something was compared with the best of the other libraries."""

    ratios: list[float] = field(default_factory=list)
    tools: set[str] = field(default_factory=set)

    def add(self, ours: float, tools: dict[str, float]) -> None:
        self.ratios.append(min(tools.values()) / ours)
        self.tools |= set(tools)

    def clauses(self, subject: str) -> list[str]:
        """How often each was faster. At all other points they were equal. Empty without points."""
        if not self.ratios:
            return []
        faster, slower = sum(r > _NEAR for r in self.ratios), sum(r < 1 / _NEAR for r in self.ratios)
        return [f"{subject} faster at {faster:,} of {_count(self.ratios)}, slower at {slower:,}"]


def _count(points: Sized) -> str:
    return f"{len(points):,} point{'' if len(points) == 1 else 's'}"
