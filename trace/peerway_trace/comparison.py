"""Finds what changed between two traces: the same operation at the same place, and the messages of the same
path, pair of ranks and size, on both sides. It uses the statistics of `peerway compare`.

Calls of one run are not independent samples, because they come in phases. So a sample is the median of one
rank's calls in one of several equal stretches.

Samples of one run are still more alike than those of several runs. If a side has several traces, the
differences between its runs widen the test. A single trace of a side does not show how much runs differ, and
sides that were traced one after the other do not show what changed with time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_measure.compare.dependence import Dependence
from peerway_measure.compare.order import order_of
from peerway_measure.compare.runs import seconds
from peerway_measure.compare.statistics import Verdict, judged
from peerway_trace.lanes import SPANS
from peerway_trace.messages import match, match_signals, messages, size_classes
from peerway_trace.regions import places
from peerway_trace.rings import Kind
from peerway_trace.store import Trace

STRETCHES = 10  # the number of stretches of a rank's calls, each of which is a sample
FEWEST_TURNS = 2  # the fewest turns of a side that was traced in turn
FEWEST = 40  # the fewest calls of a group on each side
Group = tuple[str, str, int]  # operation or path, place or pair of ranks, size class
Calls = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # ranks, beginnings, durations
Samples = dict[Group, Calls]
Side = Sequence[Trace]  # the traces of one or several runs


@dataclass(frozen=True)
class Change:
    """One operation at one place, or the messages of one path, pair of ranks and size class (below 2^n
    bytes).
    """

    operation: str
    place: str
    size_class: int
    calls: tuple[int, int]  # of a run
    median_ns: tuple[float, float]
    total_ns: tuple[int, int]  # of a run
    speedup: float | None
    low: float | None
    high: float | None
    p: float | None
    verdict: Verdict
    apart: bool  # the samples differ by more than chance, whatever the verdict says of the reason


def compare(before: Side, after: Side) -> list[Change]:
    """The operations at places that both sides have, those whose total time changed most first."""
    return _changes(_runs(before, _calls), _runs(after, _calls), confounded(before, after))


def compare_messages(before: Side, after: Side) -> list[Change]:
    """The time of moving messages by path, pair of ranks and size, those whose total changed most first."""
    return _changes(_runs(before, _messages), _runs(after, _messages), confounded(before, after))


def confounded(before: Side, after: Side) -> bool:
    """Whether the sides were traced one after the other, as far as the traces say when they began."""
    times = [
        np.array([seconds(str(trace.about.get("began", ""))) for trace in side]) for side in (before, after)
    ]
    order = order_of(*times)
    return order is not None and order.turns < FEWEST_TURNS


def alone(before: Side, after: Side) -> tuple[list[Group], list[Group]]:
    """The groups of calls that only one side has, because a call was added or removed."""
    return _alone(_runs(before, _calls, 1), _runs(after, _calls, 1))


def messages_alone(before: Side, after: Side) -> tuple[list[Group], list[Group]]:
    """The groups of messages that only one side has: another path, pair or size."""
    return _alone(_runs(before, _messages, 1), _runs(after, _messages, 1))


def _alone(before: dict[Group, Any], after: dict[Group, Any]) -> tuple[list[Group], list[Group]]:
    return sorted(set(before) - set(after)), sorted(set(after) - set(before))


def _runs(
    side: Side, read: Callable[[Trace, int], Samples], fewest: int = FEWEST
) -> dict[Group, list[Calls]]:
    """For each group, its calls in each of the runs that have it."""
    result: dict[Group, list[Calls]] = {}
    for trace in side:
        for group, calls in read(trace, fewest).items():
            result.setdefault(group, []).append(calls)
    return result


def _changes(
    before: dict[Group, list[Calls]], after: dict[Group, list[Calls]], after_each_other: bool
) -> list[Change]:
    common = [group for group in before if group in after]
    by_run = [
        ([_samples(*calls) for calls in before[group]], [_samples(*calls) for calls in after[group]])
        for group in common
    ]
    samples = [(np.concatenate(first), np.concatenate(second)) for first, second in by_run]
    differences = judged(samples, [False] * len(common), [_dependence(*sides) for sides in by_run])
    changes = []
    for group, (speedup, low, high, p, difference) in zip(common, differences, strict=True):
        durations = [[calls[2] for calls in side[group]] for side in (before, after)]
        first, second = (np.concatenate(runs) for runs in durations)
        counts = [len(runs) for runs in durations]  # runs, by which totals are divided
        apart = difference in ("faster", "slower")
        verdict: Verdict = "confounded with time" if apart and after_each_other else difference
        changes.append(
            Change(
                *group, (len(first) // counts[0], len(second) // counts[1]),
                (float(np.median(first)), float(np.median(second))),
                (int(first.sum()) // counts[0], int(second.sum()) // counts[1]),
                speedup, low, high, p, "unknown" if min(counts) < 2 else verdict, apart,
            )
        )  # fmt: skip
    return sorted(changes, key=lambda change: -abs(change.total_ns[1] - change.total_ns[0]))


def _dependence(before: list[NDArray[Any]], after: list[NDArray[Any]]) -> Dependence | None:
    """How much the samples of one run have in common: how far the means of the ranks of runs on one side
    differ, compared with the means of as many independent samples. None if both sides have one run.
    """
    freedom = len(before) + len(after) - 2
    if freedom == 0:
        return None
    every = np.concatenate([*before, *after])
    ranks = np.searchsorted(np.sort(every), every, "left") + np.searchsorted(np.sort(every), every, "right")
    between = inside = 0.0
    at = 0
    for side in (before, after):
        own = ranks[at : at + sum(map(len, side))].astype(float)
        at += len(own)
        inside += float(((own - own.mean()) ** 2).sum())
        start = 0
        for run in side:
            between += len(run) * float(own[start : start + len(run)].mean() - own.mean()) ** 2
            start += len(run)
    variance = inside / max(1, len(every) - 2)
    return Dependence(max(1.0, between / freedom / variance) if variance > 0 else 1.0, freedom)


def _calls(trace: Trace, fewest: int) -> Samples:
    """The calls of each operation, place and size, without regions and without what overlaps calls."""
    events = np.flatnonzero(~np.isin(trace["kind"], SPANS))
    site = places(trace, events)
    is_wait = trace["kind"][events] == Kind.SIGNAL  # whose bytes are a value
    sizes = size_classes(np.where(is_wait, 0, trace["bytes"][events]))
    many = len(trace.names)
    keys = (trace["name"][events].astype(np.int64) * many + site) * 64 + sizes
    return {
        (trace.names[key // 64 // many], trace.names[key // 64 % many], key % 64): (
            trace.rank[events[which]], trace["begin"][events[which]], trace["duration"][events[which]],
        )
        for key, which in _grouped(keys, fewest)
    }  # fmt: skip


def _messages(trace: Trace, fewest: int) -> Samples:
    """The messages of each path or communicator, pair and size."""
    sent = messages(trace, match(trace), match_signals(trace))
    known = np.flatnonzero((sent.source >= 0) & (sent.target >= 0))
    where = trace["where"][sent.event[known]].astype(np.int64)
    size = int(max(sent.source.max(initial=0), sent.target.max(initial=0))) + 1
    pairs = sent.source[known].astype(np.int64) * size + sent.target[known]
    keys = (where * size * size + pairs) * 64 + size_classes(sent.bytes[known])
    samples: Samples = {}
    for key, which in _grouped(keys, fewest):
        path, pair = divmod(key // 64, size * size)
        group = (trace.names[path] or "unknown", f"{pair // size} to {pair % size}", key % 64)
        own = known[which]
        samples[group] = (sent.source[own], sent.begin[own], sent.moving[own])
    return samples


def _grouped(keys: NDArray[Any], fewest: int) -> Iterator[tuple[int, NDArray[Any]]]:
    order = np.argsort(keys, kind="stable")
    result, starts = np.unique(keys[order], return_index=True)
    for key, (start, end) in zip(result.tolist(), pairwise([*starts.tolist(), len(order)]), strict=True):
        if end - start >= fewest:
            yield key, order[start:end]


def _samples(rank: NDArray[Any], begin: NDArray[Any], duration: NDArray[Any]) -> NDArray[Any]:
    """The medians of consecutive parts of each rank's calls."""
    result = []
    for number in np.unique(rank):
        own = np.flatnonzero(rank == number)
        own = own[np.argsort(begin[own], kind="stable")]
        for part in np.array_split(duration[own], min(STRETCHES, max(1, len(own) // 4))):
            result.append(max(1.0, float(np.median(part))))
    return np.array(result)
