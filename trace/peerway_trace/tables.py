"""The parts of a report: tables, scatter plots and findings, with text already formatted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common.units import time_text
from peerway_trace.curve import Curve

MOST_ROWS = 20
LITTLE = 0.01  # a smaller share of the time is no finding


@dataclass
class Table:
    """One table of the report; all cells are text."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    texts: int = 1  # how many columns from the left are text


@dataclass(frozen=True)
class Finding:
    """Something that is wrong, or worth knowing."""

    text: str  # a sentence
    evidence: str = ""  # what shows it
    todo: str = ""  # what to do about it
    span: tuple[int, int] | None = None  # ns: where the timeline shows it
    rank: int | None = None

    def __str__(self) -> str:
        return " ".join(part for part in (self.text, self.evidence, self.todo) if part)

    @property
    def link(self) -> str:
        """The place in the timeline of the page; empty if there is none."""
        if self.span is None:
            return ""
        begin, end = self.span
        margin = max(1, (end - begin) // 4)
        rank = f"&rank={self.rank}" if self.rank is not None else ""
        return f"#t={max(0, begin - margin)},{end + margin}{rank}"


def by_advice(findings: list[Finding]) -> list[list[Finding]]:
    """The findings in their order, but with those of the same advice together, so that the advice is shown
    once.
    """
    groups: dict[str, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(finding.todo or f"none {number}", []).append(finding)
    return list(groups.values())


@dataclass
class Scatter:
    """Messages of one path by size (bytes) and time (ns), and the curve that they are judged by."""

    path: str
    sizes: NDArray[Any]
    ns: NDArray[Any]
    curve: Curve | None


@dataclass(frozen=True)
class Distribution:
    """Values of which the page draws the cumulative distribution, on a logarithmic axis."""

    title: str
    axis: str
    values: NDArray[Any]  # above 0
    unit: str  # "time" (ns), "size" (bytes), "rate" (MB/s) or "share"


@dataclass(frozen=True)
class Bars:
    """Counts that the page draws as bars."""

    title: str
    axis: str
    labels: list[str]
    counts: list[int]


@dataclass(frozen=True)
class Matrix:
    """Messages from each rank to each other: their number, bytes and times."""

    messages: NDArray[Any]
    bytes: NDArray[Any]
    smallest: NDArray[Any]  # bytes; 0 where there is none
    largest: NDArray[Any]
    ns: NDArray[Any]  # the sum of the times of moving data

    @property
    def mean(self) -> NDArray[Any]:
        """The mean size of a message in bytes."""
        return np.asarray(self.bytes / np.maximum(1, self.messages))

    @property
    def rate(self) -> NDArray[Any]:
        """The rate in MB/s while a message moved."""
        return np.asarray(np.where(self.ns > 0, self.bytes * 1e3 / np.maximum(1, self.ns), 0))


@dataclass
class Analysis:
    """All of a report."""

    heading: list[str]
    findings: list[Finding] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    matrix: Matrix | None = None
    scatters: list[Scatter] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    bars: list[Bars] = field(default_factory=list)
    path: NDArray[Any] | None = None  # the critical path: rows of event, begin and end
    important: NDArray[Any] | None = None  # events that the timeline should show: rows of begin, end and ns


def ns_text(ns: float) -> str:
    """A time as text."""
    return time_text(ns / 1e3) if ns else "0"


def percent(part: float) -> str:
    """A share as text."""
    return f"{100 * part:.3g} %" if part == 0 or abs(part) >= 1e-4 else "< 0.01 %"


def count_text(count: int, singular: str, many: str) -> str:
    """A number as text."""
    return f"1 {singular}" if count == 1 else f"{count:,} {many}"
