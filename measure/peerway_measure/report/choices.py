"""Which path each case takes, and which paths were unavailable; the page shows this below its summary."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from peerway_measure.report.routes import (
    Unavailable,
    in_words,
    memory_classes,
    spans_from_fastest,
    spans_from_records,
)
from peerway_measure.report.styles import is_path, of_last_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record


def choices(records: Sequence[Record]) -> list[tuple[str, str]]:
    """The path by size for each contiguous case. If there are records of several files, those of the last
    file count. Without records of the route, it is the fastest path, and the page says so.
    """
    cases: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        if r.shape == "contiguous":
            cases.setdefault((r.test, r.op, r.source, r.target, r.ranks, r.host), []).append(r)
    hosts, ranks = {r.host for r in records}, {r.ranks for r in records}
    chosen = []
    for rows in cases.values():
        if path := _path(of_last_file(rows)):
            first = rows[0]
            case = f"{first.test}, {first.source} to {first.target}"
            case += f", {first.ranks} ranks" if len(ranks) > 1 else ""
            chosen.append((case + (f" on {first.host}" if len(hosts) > 1 else ""), path))
    return chosen


def unavailable(several: Iterable[Unavailable], records: Iterable[Record]) -> list[tuple[str, str, str]]:
    """The paths that a route table could not measure for the memories of the records: (path, why, pair
    classes).
    """
    kinds = {memory_classes(r) for r in records}
    pairs: dict[tuple[str, str], list[str]] = {}
    for entry in several:
        if (entry.source, entry.target.split("/")[0]) in kinds:
            pairs.setdefault((entry.path, entry.why), []).append(f"{entry.source}->{entry.target}")
    return [(path, why, ", ".join(dict.fromkeys(pair_names))) for (path, why), pair_names in pairs.items()]


def unavailable_in_brief(several: Iterable[Unavailable], records: Iterable[Record]) -> list[str]:
    """The names of those paths, each with the memories between which it is unavailable, unless it is
    unavailable between all.
    """
    kinds = {memory_classes(r) for r in records}
    pairs: dict[str, dict[tuple[str, str], None]] = {}
    for entry in several:
        if (entry.source, entry.target.split("/")[0]) in kinds:
            pairs.setdefault(entry.path, {})[entry.source, entry.target] = None
    return [
        path if kinds <= set(memories) else f"{path} ({', '.join(map(_memories, memories))})"
        for path, memories in pairs.items()
    ]


def _memories(pair: tuple[str, str]) -> str:
    source, target = pair
    return source if source == target else f"{source} to {target}"


def _path(rows: Sequence[Record]) -> str:
    if spans := spans_from_records(rows):
        return in_words(spans)
    times: dict[int, dict[str, list[float]]] = {}
    for r in rows:
        if is_path(r.via):
            times.setdefault(r.bytes, {}).setdefault(r.via, []).append(r.p50_us)
    medians = {size: {via: median(ts) for via, ts in row.items()} for size, row in times.items()}
    fastest = in_words(spans_from_fastest(medians))
    return f"{fastest} (the fastest; the route was not measured)" if fastest else ""
