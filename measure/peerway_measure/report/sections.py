"""The sections of a page: one for each test, shape and pair of devices, with its plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peerway_common.units import size_text
from peerway_measure.bench.kinds import KINDS, MBPS
from peerway_measure.cube import cube_face
from peerway_measure.report import figures
from peerway_measure.report.routes import Line, Span, in_words, spans_from_records, spans_from_table
from peerway_measure.report.styles import of_last_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peerway_measure.records import Record
    from peerway_measure.report.styles import Style

FACES = {
    "i": "one contiguous block",
    "j": "N rows of N doubles",
    "k": "N² single doubles",
}
_BANDWIDTH = "Bandwidth"


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: the id of its element, a heading, a text for screen readers, and plotly's JSON."""

    id: str
    title: str
    label: str
    spec: figures.Plot


@dataclass(frozen=True, slots=True)
class Section:
    """The plots and tables of one test, shape and pair."""

    id: str
    test: str
    title: str
    where: str
    note: str
    plots: list[Plot]


def sections(records: Sequence[Record], styles: Mapping[str, Style], table: Sequence[Line]) -> list[Section]:
    """All sections in the order in which their first records appear."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        shape = "cube" if cube_face(r.shape) else r.shape
        groups.setdefault((r.test, r.op, shape, r.source, r.target, r.ranks, r.host), []).append(r)
    hosts = {r.host for r in records}
    result = []
    for i, rows in enumerate(groups.values()):
        where = _where(rows[0]) + (f" on {rows[0].host}" if len(hosts) > 1 else "")
        make = _cube if cube_face(rows[0].shape) else _sizes
        result.append(make(f"section-{i}", where, rows, styles, table))
    return result


def _sizes(
    name: str, where: str, rows: Sequence[Record], styles: Mapping[str, Style], table: Sequence[Line]
) -> Section:
    first, title = rows[0], rows[0].shape
    sizes = sorted({r.bytes for r in rows})
    if len(sizes) == 1:
        kind = KINDS.get(first.test)
        rate = kind is not None and kind.column == MBPS and any(r.bandwidth_MBps > 0 for r in rows)
        heading = f"{_BANDWIDTH} (median)" if rate else _time_heading(first.test)
        spec = figures.bars(rows, styles, MBPS if rate else "p50_us")
        plots = [_plot(f"{name}-bars", f"{heading}, {size_text(sizes[0])}", where, first, spec)]
        return Section(name, first.test, title, where, "", plots)
    spans = spans_from_records(of_last_file(rows)) or spans_from_table(table, first, sizes)
    plots = [
        _plot(f"{name}-time", _time_heading(first.test), where, first, figures.times(rows, styles, spans))
    ]
    if first.op in ("put", "get") and any(r.bandwidth_MBps > 0 for r in rows):
        drawn = figures.bandwidths(rows, styles, spans)
        plots.append(_plot(f"{name}-bandwidth", _BANDWIDTH, where, first, drawn))
    return Section(name, first.test, title, where, _route_note(spans), plots)


def _cube(
    name: str, where: str, rows: Sequence[Record], styles: Mapping[str, Style], _: Sequence[Line]
) -> Section:
    plots = []
    for across, title in FACES.items():
        faces = [r for r in rows if (face := cube_face(r.shape)) and face.across == across]
        if faces:
            several = len({r.shape for r in rows}) > len(FACES)
            spec = figures.face(faces, styles, rows) if several else figures.bars(faces, styles)
            plots.append(_plot(f"{name}-{across}", f"Face {across} · {title}", where, rows[0], spec))
    note = (
        "Median time, one way, of the faces of an N × N × N array of doubles [i][j][k], by the index that is "
        "fixed."
    )
    return Section(name, rows[0].test, "cube faces", where, note, plots)


def _time_heading(test: str) -> str:
    kind = KINDS.get(test)
    if kind and kind.windowed:
        return "Time per message, many under way (median)"
    if kind and kind.one_way_trips == 1:
        return "Time of one whole operation (median)"
    return "Time of one message, one way (median)"


def _plot(name: str, title: str, where: str, record: Record, spec: figures.Plot) -> Plot:
    return Plot(name, title, f"{record.test}, {where}: {title}", spec)


def _route_note(spans: Iterable[Span]) -> str:
    several = list(spans)
    return f"Route (strip above the plots): {in_words(several)}." if several else ""


def _where(record: Record) -> str:
    return f"{record.source} to {record.target}, {record.ranks} rank{'s' if record.ranks != 1 else ''}"
