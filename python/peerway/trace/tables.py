"""What a report consists of: tables, scatters and findings, as text for people where they are text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from peerway.trace.curve import Curve
from peerway.units import time_text

MOST_ROWS = 20
LITTLE = 0.01  # of the time: less is no finding


@dataclass
class Table:
    """One table of the report; all cells are text, for people."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    note: str = ""
    texts: int = 1  # how many columns from the left are words


@dataclass
class Scatter:
    """Messages of one path by size (bytes) and time (ns), and the curve that they are judged by."""

    path: str
    sizes: NDArray[Any]
    ns: NDArray[Any]
    curve: Curve | None


@dataclass
class Analysis:
    """All of a report."""

    heading: list[str]
    findings: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    matrix: NDArray[Any] | None = None  # bytes from rank to rank
    scatters: list[Scatter] = field(default_factory=list)


def ns_text(ns: float) -> str:
    """A time for people."""
    return time_text(ns / 1e3) if ns else "0"


def percent(part: float) -> str:
    """A share for people."""
    return f"{100 * part:.3g} %"
