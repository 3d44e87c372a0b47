"""What changed between two traces: the same operation at the same place, its durations on both sides, by the
statistics of `peerway compare`.

Calls of one run are no independent samples: they come in phases, and a sample is therefore the median of one
rank's calls in one of equal stretches of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway.compare.statistics import Verdict, judged
from peerway.trace.regions import enclosing
from peerway.trace.rings import Kind
from peerway.trace.store import Trace

STRETCHES = 10  # of a rank's calls: a sample each
FEWEST = 40  # calls of a group on each side
Group = tuple[str, str, int]  # operation, place, size class


@dataclass(frozen=True)
class Change:
    """One operation at one place, for messages of one size class (below 2^n bytes)."""

    operation: str
    place: str
    size_class: int
    calls: tuple[int, int]
    median_ns: tuple[float, float]
    total_ns: tuple[int, int]
    speedup: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict


def compare(before: Trace, after: Trace) -> list[Change]:
    """The groups that both have, those whose total time changed most first."""
    sides = dict(_groups(before)), dict(_groups(after))
    common = [group for group in sides[0] if group in sides[1]]
    samples = [
        tuple(_samples(trace, side[group]) for trace, side in zip((before, after), sides, strict=True))
        for group in common
    ]
    told = judged([(a, b) for a, b in samples], [False] * len(common), [None] * len(common))
    changes = []
    for group, (speedup, low, high, p, verdict) in zip(common, told, strict=True):
        durations = [
            trace["duration"][side[group]] for trace, side in zip((before, after), sides, strict=True)
        ]
        first, second = durations
        changes.append(
            Change(
                *group, (len(first), len(second)), (float(np.median(first)), float(np.median(second))),
                (int(first.sum()), int(second.sum())), speedup, low, high, p, verdict,
            )
        )  # fmt: skip
    return sorted(changes, key=lambda one: -abs(one.total_ns[1] - one.total_ns[0]))


def alone(before: Trace, after: Trace) -> tuple[list[Group], list[Group]]:
    """The groups that only one side has: a call that was added or taken away."""
    first, second = (dict(_groups(trace, 1)) for trace in (before, after))
    return sorted(set(first) - set(second)), sorted(set(second) - set(first))


def _groups(trace: Trace, fewest: int = FEWEST) -> Iterator[tuple[Group, NDArray[Any]]]:
    """The events of each group, without regions and spans of requests."""
    events = np.flatnonzero(~np.isin(trace["kind"], (Kind.SENT, Kind.RECEIVED, Kind.REGION)))
    site = trace["site"][events].astype(np.int64)
    site = np.where(site > 0, site, enclosing(trace, events))
    is_wait = trace["kind"][events] == Kind.SIGNAL  # whose bytes are a value
    size = np.where(is_wait, 0, trace["bytes"][events])
    size_class = np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64) + (size > 0)
    many = len(trace.names)
    keys = (trace["name"][events].astype(np.int64) * many + site) * 64 + size_class
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    for key, start, end in zip(found.tolist(), starts, [*starts[1:], len(order)], strict=True):
        if end - start >= fewest:
            yield (
                (trace.names[key // 64 // many], trace.names[key // 64 % many], key % 64),
                events[order[start:end]],
            )


def _samples(trace: Trace, events: NDArray[Any]) -> NDArray[Any]:
    """Medians of stretches of each rank's calls."""
    rank = trace.rank[events]
    found = []
    for one in np.unique(rank):
        own = events[rank == one]
        own = own[np.argsort(trace["begin"][own], kind="stable")]
        for part in np.array_split(trace["duration"][own], min(STRETCHES, max(1, len(own) // 4))):
            found.append(max(1.0, float(np.median(part))))
    return np.array(found)
