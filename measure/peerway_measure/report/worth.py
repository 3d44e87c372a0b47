"""The page of `peerway worth`: the answer, its tables with a picture, what is unknown, and the assumptions.
It has no script.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from peerway_common.printable import printable
from peerway_measure.report.bars import Bar, picture
from peerway_measure.report.node_types import page
from peerway_measure.worth import text
from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.hours import Field, Sum, Worth
from peerway_measure.worth.notices import Effect


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the page, with a picture above it."""

    title: str
    head: tuple[str, ...]
    rows: list[tuple[str, ...]]
    picture: Markup | None
    more: list[str]


def render(worth: Worth | None, effect: Effect | None, by: Field, resource: str, assumed: Assumptions) -> str:
    """The page."""
    a_year = assumed.year == "scaled"
    tables, answer = [], []
    if worth:
        answer.append(text.total_sentence(worth.total, resource, a_year=a_year) + ".")
        rows = [(row.application or text.NO_NAME, row.node_type, row.sum) for row in worth.rows]
        of_rows = _bars([(f"{name}, {kind}" if kind else name, each) for name, kind, each in rows], resource)
        tables.append(
            Table("By application and node type", text.head(resource, a_year=a_year),
                  [_printable(text.cells(row)) for row in worth.rows[: text.MOST_ROWS]], of_rows,
                  text.more(len(worth.rows) - text.MOST_ROWS, "row"))
        )  # fmt: skip
        if text.names_of(worth, by):
            named = [(each.name or text.NO_NAME, each) for each in worth.sums]
            tables.append(
                Table(f"By {text.HEADINGS[by]}", text.sum_head(by, resource, a_year=a_year),
                      [_printable(text.sum_cells(each)) for each in worth.sums[: text.MOST_ROWS]],
                      _bars(named, resource), text.more(len(worth.sums) - text.MOST_ROWS, "row"))
            )  # fmt: skip
    if effect:
        answer += text.effect_lines(effect, resource)
    return page(
        "worth.html.j2", "bars.css",
        answer=[printable(line) for line in answer],
        tables=tables,
        notes=[printable(line) for line in text.notes(worth.rows if worth else [])],
        assumptions=text.assumption_lines(assumed, notices=effect is not None, transfers=worth is not None),
    )  # fmt: skip


def _bars(named: list[tuple[str, Sum]], resource: str) -> Markup | None:
    """The freed hours as bars; None if none are known."""
    if all(each.freed is None for _, each in named):
        return None
    bars = [Bar(printable(name), each.freed, each.interval) for name, each in named[: text.MOST_ROWS]]
    return picture(bars, text.size, f"Freed {text.unit(resource)}")


def _printable(cells: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(printable, cells))
