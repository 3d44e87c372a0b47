"""Makes the page: plots, a summary, the machine and the commands, in one file that opens offline."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from peerway_common import atomic_file
from peerway_common.printable import printable
from peerway_measure.report.choices import choices, unavailable, unavailable_in_brief
from peerway_measure.report.headline import headline
from peerway_measure.report.pairs import heat_maps
from peerway_measure.report.routes import Table
from peerway_measure.report.sections import Section, sections
from peerway_measure.report.styles import of_file, styles
from peerway_measure.report.summary import facts, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from peerway_measure.records import Record
    from peerway_measure.report.styles import Style

_FOLDER = files("peerway_measure.report") / "assets"
_SHARED = files("peerway_common") / "assets"  # with plotly.js, which the pages of jobs use as well


@dataclass(frozen=True, slots=True)
class Script:
    """A script of the page, and its hash: the page's security policy allows only scripts with these
    hashes.
    """

    text: Markup
    hash: str


def render(records: Sequence[Record], table: Table | None = None) -> str:
    """The whole page as text.

    `records` must not be empty; those of several files come from together(). `table` is a route table, for
    the borders between its paths and for the paths that it found unavailable.
    """
    records = [record.as_printable() for record in records]
    looks = styles(records)
    table = table or Table([], [])
    parts = sections(records, looks, table.lines)
    maps, unmapped = heat_maps(records)
    data = {
        "styles": {name: asdict(style) for name, style in looks.items()},
        "plots": {plot.id: plot.spec for section in parts for plot in section.plots},
        "maps": maps,
    }
    scripts = [_script(_asset(name)) for name in ("plotly/plotly-basic.min.js", "page.js")]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_asset("page.html.j2")).render(
        records=records,
        headline=headline(records),
        choices=choices(records),
        unavailable=unavailable(table.unavailable, records),
        unavailable_in_brief=unavailable_in_brief(table.unavailable, records),
        sections=parts,
        groups=_by_test(parts),
        maps=maps,
        unmapped=unmapped,
        legend=_legend(looks),
        facts=facts(records),
        summary=[
            (name, list(rows)) for name, rows in groupby(summary(records, looks), lambda row: row.group)
        ],
        unchecked=sum(not r.validated for r in records),
        commands=list(dict.fromkeys(r.command for r in records if r.command)),
        css=Markup(_asset("page.css")),
        scripts=scripts,
        data=_packed(data),
    )


def together(files: Mapping[Path, Sequence[Record]]) -> list[Record]:
    """The records of several files, each with curves of its own. The records of a single file are
    unchanged.
    """
    if len(files) == 1:
        return [*next(iter(files.values()))]
    return [
        record
        for (_, part), name in zip(files.items(), _names([*files]), strict=True)
        for record in of_file(part, name)
    ]


def _names(paths: Sequence[Path]) -> list[str]:
    """Short names that distinguish the files: their stems, or as much of their paths as is needed."""
    parts = [path.with_suffix("").parts for path in paths]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(each[-depth:]) for each in parts]
        if len(set(names)) == len(names):
            return [printable(name) for name in names]
    return [printable(str(path)) for path in paths]  # they differ only in their suffixes


def write(path: Path, page: str) -> None:
    """Write the page atomically. Raises OSError if it cannot be written, for example because the folder does
    not exist.
    """
    atomic_file.replace(path, page)


def _legend(looks: Mapping[str, Style]) -> list[tuple[str, str, str]]:
    """Legend entries that can be hidden: (kind, name, a curve that looks like it). The files come before the
    paths and peers.
    """
    named = {("file", style.file): curve for curve, style in looks.items() if style.file}
    named |= {("via", style.via): curve for curve, style in looks.items()}  # the style in the last file
    return [(kind, name, curve) for (kind, name), curve in named.items()]


def _by_test(parts: Iterable[Section]) -> dict[str, list[Section]]:
    groups: dict[str, list[Section]] = {}
    for section in parts:
        groups.setdefault(section.test, []).append(section)
    return groups


def _asset(name: str) -> str:
    folder = _SHARED if name.startswith("plotly/") else _FOLDER
    return (folder / name).read_text(encoding="utf-8")


def scripts_of(*names: str) -> list[Script]:
    """Further scripts for a page that is not the report's own."""
    return [_script(_asset(name)) for name in names]


def _script(text: str) -> Script:
    """The script for a <script> element. The element's text must be exactly the text that is hashed."""
    text = text.replace("</script", "<\\/script").replace("\r\n", "\n")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Script(Markup(text), f"sha256-{digest}")


def _packed(data: dict[str, Any]) -> str:
    """The data as JSON, compressed with gzip and coded in base64, so that it cannot end its <script> element,
    whatever the records contain.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()
