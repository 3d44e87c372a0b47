"""One look for each path and peer, the same in every plot of a page.

Colours are those of Okabe and Ito, which people with any kind of colour blindness tell apart
(https://jfly.uni-koeln.de/color/), without the yellow that vanishes on white; the page has a lighter set for
dark mode. Peers are dashed, and every curve has its own marker, so that colour never carries the meaning
alone. What the hardware allows (a bare memcpy, a bare flag) is dotted in the colour of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peerway.bench.kinds import LIMITS, ROUTE

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATH = re.compile(r"(peer|mapped|staged|nic:|gpudirect:).*|ucx/(direct|staged)")
COLORS = 6  # in page.css: --color-0 to --color-5; -1 is the colour of the text
PEERS = ("openmpi", "mpich", "ucx", "nccl", "nvshmem", "cuda")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")


@dataclass(frozen=True, slots=True)
class Style:
    """How a path or peer is drawn: index of its colour, plotly's names of its dash and marker, width in
    pixels.
    """

    color: int
    dash: str
    marker: str
    width: float
    opacity: float = 1


def styles(vias: Iterable[str]) -> dict[str, Style]:
    """A style for each name, in the order of a legend: route, paths, peers, limits of the hardware."""
    ordered = sorted(set(vias), key=_rank)
    found = {}
    for i, via in enumerate(via for via in ordered if via != ROUTE and via not in LIMITS):
        dash = ("solid", "dot")[i // COLORS % 2] if _is_path(via) else ("dash", "dashdot")[i // COLORS % 2]
        found[via] = Style(i % COLORS, dash, _MARKERS[i % len(_MARKERS)], 2)
    band = Style(-1, "solid", "circle", 9, opacity=0.3) if found else Style(-1, "solid", "circle", 2)
    route = {ROUTE: band} if ROUTE in ordered else {}
    limits = {via: Style(-1, "dot", "x", 1.5) for via in ordered if via in LIMITS}
    return route | found | limits


def _is_path(via: str) -> bool:
    return _PATH.fullmatch(via) is not None


def _rank(via: str) -> tuple[int, str]:
    return (0 if via == ROUTE else 1 if _is_path(via) else 3 if via in LIMITS else 2, via)
