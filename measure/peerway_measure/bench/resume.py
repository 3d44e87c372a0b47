"""Finds out which points a file that is continued already has, and how many records of each.

A point identifies a measurement that another run of the same command would repeat. It has the kinds of GPUs
instead of their numbers, so that a record and a case not yet measured have the same point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING

from peerway_measure.memories import kind_of
from peerway_measure.records import ALLOWED

if TYPE_CHECKING:
    from peerway_measure.bench.plan import Case
    from peerway_measure.records import Record

Recorded = Counter[str]


def of_records(records: Iterable[Record], known: Mapping[str, str], peers: Container[str]) -> Recorded:
    """Count the records of each point that were made on this host; records of Peerway must also be of this
    version. `peers` are the names of all peers.
    """
    return Counter(
        point(r.test, r.via, r.shape, r.bytes, r.ranks, r.source, r.target, r.extra.get(ALLOWED, ""))
        for r in records
        if r.host == known["host"] and (r.version == known["version"] or r.via.partition("/")[0] in peers)
    )


def of_case(case: Case, via: str, ranks: int, limit: bool = False, allowed: str = "") -> str:
    """The point of a case over one way. The `limit` of a case is measured in host memory. `allowed` are the
    paths that the route may choose from, if the user named them.
    """
    ends = ("host", "host") if limit else (case.source, case.target)
    return point(case.test, via, case.shape.label, case.shape.bytes, ranks, *ends, allowed)


def lacks(recorded: Recorded, point: str) -> bool:
    """Whether a point still needs a record. If `recorded` has a record of it, the call uses that up."""
    if recorded[point] > 0:
        recorded[point] -= 1
        return False
    return True


def point(
    test: str, via: str, shape: str, size: int, ranks: int, source: str, target: str, allowed: str = ""
) -> str:
    """The text that identifies a point."""
    return f"{test} {via} {shape} {size} {ranks} {kind_of(source)} {kind_of(target)} {allowed}"
