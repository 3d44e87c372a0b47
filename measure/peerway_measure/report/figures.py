"""The plots of a page as plotly's JSON: curves over sizes, bars for a single size, faces of a cube.

Records are untrusted: every text that plotly shows goes through `escape`, because plotly interprets tags in
text. The page chooses the colours, since it knows whether it is light or dark; a trace only names its curve
in `meta.curve`.
"""

from __future__ import annotations

from html import escape
from statistics import median
from typing import TYPE_CHECKING, Any

from peerway_common.units import bandwidth_text, size_text, time_text
from peerway_measure.cube import cube_face
from peerway_measure.report.axes import bar_axis, size_axis, tick_text, value_axis
from peerway_measure.report.spread import quartiles, spread_text
from peerway_measure.report.styles import curve, moves_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from peerway_measure.records import Record
    from peerway_measure.report.routes import Span
    from peerway_measure.report.styles import Style

Plot = dict[str, Any]

_STRIP = (1.015, 1.045)  # its bottom and top, relative to the height of the plot
_SAME_X = {"hovermode": "x unified", "showlegend": False}


def times(records: Sequence[Record], styles: Mapping[str, Style], spans: Sequence[Span] = ()) -> Plot:
    """Median one-way time of a message by its size. Whiskers span the middle half of the samples."""
    return _curves(records, styles, "p50_us", spans)


def bandwidths(records: Sequence[Record], styles: Mapping[str, Style], spans: Sequence[Span] = ()) -> Plot:
    """Bandwidth by the size of a message, a curve for each path and library."""
    return _curves(records, styles, "bandwidth_MBps", spans)


def bars(records: Sequence[Record], styles: Mapping[str, Style], field: str = "p50_us") -> Plot:
    """Median times or bandwidths of a single size, a bar with its value for each path and library."""
    words = time_text if field == "p50_us" else bandwidth_text
    drawn = dict(reversed(list(_by_curve(records, styles).items())))
    middles = {name: median(getattr(r, field) for r in rows) for name, rows in drawn.items()}
    data = [
        {
            "type": "bar", "orientation": "h", "x": [middles[name]], "y": [escape(name)],
            "text": [words(middles[name]) + spread_text(rows, field)], "textposition": "outside",
            "cliponaxis": False, "customdata": [_hover(name, rows)],
            "hovertemplate": "%{customdata}<extra></extra>", "meta": {"curve": name},
            "marker": {"pattern": {"shape": "/" if styles[name].is_limit else "", "fillmode": "replace"}},
        }
        for name, rows in drawn.items()
    ]  # fmt: skip
    room = 1.5  # space for the text beside the longest bar
    values = bar_axis(room * max(middles.values()), lambda v: tick_text(words(v)))
    names = {"automargin": True, "type": "category"}
    height = 80 + 34 * len(drawn)
    layout = {"xaxis": values, "yaxis": names, "height": height, "showlegend": False, "hovermode": "closest"}
    return {"data": data, "layout": layout}


def face(records: Sequence[Record], styles: Mapping[str, Style], value_range: Sequence[Record]) -> Plot:
    """The median time over the edge N of the cube. `value_range` has the records of all faces, so that the
    plots of the three have the same scale.
    """
    data = []
    for name, rows in _by_curve(records, styles).items():
        data.append(_trace(name, _by_x(rows, _edge), "p50_us", styles[name]))
    layout = {
        **_SAME_X,
        "xaxis": size_axis([_edge(r) for r in value_range], "edge N (doubles)", "N = %{x}", str),
        "yaxis": _time_axis(value_range),
    }
    return {"data": data, "layout": layout}


def _curves(
    records: Sequence[Record], styles: Mapping[str, Style], field: str, spans: Sequence[Span]
) -> Plot:
    data = []
    for name, rows in _by_curve((r for r in records if r.bytes > 0), styles).items():
        data.append(_trace(name, _by_x(rows, lambda r: r.bytes), field, styles[name]))
    if field == "p50_us":
        y = _time_axis(records)
    else:
        rates = (r.bandwidth_MBps for r in records)
        y = value_axis(rates, lambda v: tick_text(bandwidth_text(v)), "bandwidth, log scale")
    x = size_axis((r.bytes for r in records), "message size", "%{x:,} bytes", size_text)
    layout = {**_SAME_X, "xaxis": x, "yaxis": y, "shapes": _borders(spans)}
    return {"data": data, "layout": layout}


def _trace(name: str, points: Mapping[int, list[Record]], field: str, style: Style) -> dict[str, Any]:
    middles = [median(getattr(record, field) for record in rows) for rows in points.values()]
    ends = [quartiles(rows, field) for rows in points.values()]
    trace = {
        "type": "scatter",
        "mode": "lines+markers" if style.opacity == 1 else "lines",
        "opacity": style.opacity,
        "name": escape(name),
        "x": list(points),
        "y": [middle or None for middle in middles],
        "customdata": [_hover(name, rows) for rows in points.values()],
        "hovertemplate": "%{customdata}<extra></extra>",
        "line": {"dash": style.dash, "width": style.width},
        "marker": {"symbol": style.marker, "size": 7},
        "meta": {"curve": name},
    }
    if style.opacity == 1:  # only the route's band is transparent, and has no whiskers
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_digits(high - middle) for middle, (_, high) in zip(middles, ends, strict=True)],
            "arrayminus": [_digits(middle - low) for middle, (low, _) in zip(middles, ends, strict=True)],
        }
    return trace


def _digits(value: float) -> float:
    return float(f"{max(0.0, value):.4g}")


def _hover(name: str, rows: Sequence[Record]) -> str:
    """Format "<b>staged</b> 5.2 µs ±2 % · p99 6.1 µs · 12.6 GB/s", by the medians of repeated records."""
    p50, p99, rate = (
        median(getattr(r, field) for r in rows) for field in ("p50_us", "p99_us", "bandwidth_MBps")
    )
    text = f"<b>{escape(name)}</b> {time_text(p50)}{spread_text(rows, 'p50_us')} · p99 {time_text(p99)}"
    text += f" · {bandwidth_text(rate)}" if rate and moves_data(rows[0]) else ""
    return text + (f" · n={len(rows)}" if len(rows) > 1 else "")


def _borders(spans: Sequence[Span]) -> list[dict[str, Any]]:
    """A vertical line where the route changes its path, and a strip above the plot in the colour of the path;
    for a split, the strip is divided along its length.
    """
    strip = {"type": "rect", "xref": "x", "yref": "paper", "line": {"width": 0}}
    rule = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": _STRIP[1], "layer": "below"}
    strips = []
    for span in spans:
        paths = [part.split(" ")[0] for part in reversed(span.path.split(" + "))]
        high = (_STRIP[1] - _STRIP[0]) / len(paths)
        for i, path in enumerate(paths):
            ends = {"y0": _STRIP[0] + i * high, "y1": _STRIP[0] + (i + 1) * high}
            strips.append({**strip, **ends, "x0": span.first, "x1": span.last, "name": f"strip:{path}"})
    rules = [{**rule, "x0": s.first, "x1": s.first, "name": "border"} for s in spans[1:]]
    return strips + rules


def _time_axis(records: Sequence[Record]) -> dict[str, Any]:
    return value_axis((r.p50_us for r in records), lambda v: tick_text(time_text(v)), "time, log scale")


def _edge(record: Record) -> int:
    cube = cube_face(record.shape)
    assert cube is not None
    return cube.n


def _by_curve(records: Iterable[Record], styles: Mapping[str, Style]) -> dict[str, list[Record]]:
    """The records of each curve that has any, in the order of the styles."""
    by_curve: dict[str, list[Record]] = {}
    for record in records:
        by_curve.setdefault(curve(record), []).append(record)
    return {name: by_curve[name] for name in styles if name in by_curve}


def _by_x(records: Iterable[Record], x: Callable[[Record], int]) -> dict[int, list[Record]]:
    points: dict[int, list[Record]] = {}
    for record in records:
        points.setdefault(x(record), []).append(record)
    return dict(sorted(points.items()))
