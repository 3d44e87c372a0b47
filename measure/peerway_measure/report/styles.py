"""Gives each curve one look, the same in every plot of a page.

A curve is a path or peer. On a page of several files, it is a path or peer in one of them: the path keeps its
colour, and the file changes dash and marker.

The colours are those of Okabe and Ito, which people with any kind of colour blindness can distinguish
(https://jfly.uni-koeln.de/color/), without the yellow, which is invisible on white. The page has a lighter
set for dark mode. Peers are dashed, and every curve has its own marker, so that no meaning depends on colour
alone.

The route is a broad band in the colour of the text, below the path that it took. Limits of the hardware (a
bare memcpy, a bare flag) are thin, dotted and grey; their bars are hatched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peerway_measure.bench.kinds import LIMITS, ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record

_PATH = re.compile(r"(peer|mapped|staged|nic:|gpudirect:).*|ucx/(direct|staged)")
COLORS = 6  # in page.css: --color-0 to --color-5
TEXT, SOFT = -1, -2  # the colour of the text, and a softer one
FILE = "peerway report: file"  # in `extra`: the name of a record's file, on a page of several
PEERS = ("openmpi", "mpich", "ucx", "nccl", "nvshmem", "cuda")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")


# The looks of curves of earlier files, beginning with the last but one. The last file has the plain look.
_EARLIER = (("dot", "-open"), ("longdash", "-dot"), ("longdashdot", "-open-dot"))


@dataclass(frozen=True, slots=True)
class Style:
    """How a curve is drawn: the index of its colour, plotly's names of its dash and marker, its width in
    pixels.

    `via` is its path or peer (the `full_via` of its records), and `file` the name of its file if there are
    several.
    """

    via: str
    color: int
    dash: str
    marker: str
    width: float
    opacity: float = 1
    file: str = ""

    @property
    def is_limit(self) -> bool:
        """Whether it is a limit of the hardware, which does not compete with paths."""
        return self.via in LIMITS


def curve(record: Record) -> str:
    """The name of the curve to which a record belongs."""
    file = record.extra.get(FILE)
    return f"{record.full_via} · {file}" if file else record.full_via


def of_file(records: Iterable[Record], name: str) -> list[Record]:
    """Mark the records as belonging to a file with this name."""
    return [replace(record, extra={**record.extra, FILE: name}) for record in records]


def of_last_file(records: Sequence[Record]) -> list[Record]:
    """The records of the last file that has records."""
    return [r for r in records if r.extra.get(FILE) == records[-1].extra.get(FILE)]


def styles(records: Iterable[Record]) -> dict[str, Style]:
    """A style for each curve, in the order of a legend: route, paths, peers, limits of the hardware. Files
    keep their order within each.
    """
    curves = {(r.full_via, str(r.extra.get(FILE, ""))): curve(r) for r in records}
    files = list(dict.fromkeys(file for _, file in curves))
    of_via = _of_vias({via for via, _ in curves})
    ordered = sorted(curves, key=lambda key: (_rank(key[0]), files.index(key[1])))
    return {
        curves[via, file]: replace(
            _style_of_earlier_file(of_via[via], len(files) - 1 - files.index(file)), file=file
        )
        for via, file in ordered
    }


def _of_vias(vias: Iterable[str]) -> dict[str, Style]:
    ordered = sorted(vias, key=_rank)
    styles = {}
    for i, via in enumerate(via for via in ordered if via != ROUTE and via not in LIMITS):
        dash = ("solid", "dot")[i // COLORS % 2] if is_path(via) else ("dash", "dashdot")[i // COLORS % 2]
        styles[via] = Style(via, i % COLORS, dash, _MARKERS[i % len(_MARKERS)], 2)
    route = Style(ROUTE, TEXT, "solid", "circle", 9 if styles else 2, opacity=0.3 if styles else 1)
    limits = {via: Style(via, SOFT, "dot", "x", 1.5) for via in ordered if via in LIMITS}
    return {ROUTE: route, **styles, **limits}


def _style_of_earlier_file(style: Style, files_later: int) -> Style:
    """The style of the same curve in an earlier file."""
    if not files_later:
        return style
    dash, mark = _EARLIER[(files_later - 1) % len(_EARLIER)]
    if style.opacity < 1:
        return replace(style, dash=dash)
    return replace(style, dash=dash, marker=style.marker + mark)


def is_path(via: str) -> bool:
    """Whether it is the name of one of Peerway's paths."""
    return _PATH.fullmatch(via) is not None


def moves_data(record: Record) -> bool:
    """Whether the test moves bytes, and so has a bandwidth. Registration does not."""
    return record.op != "register"


def is_peer(via: str) -> bool:
    """Whether it is the name of another library, or of one of its variants (openmpi/rma)."""
    return via.split("/")[0] in PEERS and not is_path(via)


def _rank(via: str) -> tuple[int, str]:
    return (0 if via.split(" (")[0] == ROUTE else 1 if is_path(via) else 3 if via in LIMITS else 2, via)
