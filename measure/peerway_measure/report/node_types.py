"""The table by node type as a page of its own: the rows, and a plot with all points for each of them. It has
no script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby

import jinja2
from markupsafe import Markup

from peerway_common.printable import printable
from peerway_measure.compare.node_type_text import cells_of, head, notes_of, title_of, too_few
from peerway_measure.compare.node_types import Row
from peerway_measure.compare.sides import Sides
from peerway_measure.report.points import picture

_FOLDER = files("peerway_measure.report") / "assets"


@dataclass(frozen=True, slots=True)
class Part:
    """A test: its rows as text, notes about them, and their pictures."""

    title: str
    rows: list[tuple[str, ...]]
    notes: list[str]
    pictures: list[tuple[str, Markup]]


def render(rows: Sequence[Row], names: tuple[str, str], sides: Sides, factors: Sequence[str]) -> str:
    """The page as HTML. `names` are those of the files or campaigns of the two sides."""
    parts = [_part(title, list(group), sides) for title, group in groupby(rows, key=title_of)]
    return page(
        "node_types.html.j2",
        parts=parts,
        head=[printable(name) for name in head(sides)],
        both=printable(sides.heading(names)),
        few=too_few(rows),
        factors=[name for name in factors if name != "campaign"],
    )


def page(template: str, *styles: str, **values: object) -> str:
    """Render a template in the style of the pages of `peerway report`, with its own values."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        loader=jinja2.FunctionLoader(_asset),
    )
    return environment.get_template(template).render(
        css=Markup("".join(map(_asset, ("page.css", "points.css", *styles)))), **values
    )


def _part(title: str, rows: list[Row], sides: Sides) -> Part:
    pictures = []
    for row in rows:
        columns = [(printable(sides.before), row.before.values), (printable(sides.after), row.after.values)]
        counts = " and ".join(f"{len(values)} values of {name}" for name, values in columns)
        label = printable(f"{title}, {row.node_type}: {counts}")
        pictures.append((printable(row.node_type), picture(columns, row.metric.text, label)))
    notes = [printable(f"{row.node_type}: {note}") for row in rows for note in notes_of(row, sides)]
    return Part(printable(title), [tuple(map(printable, cells_of(row))) for row in rows], notes, pictures)


def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
