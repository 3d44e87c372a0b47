"""One look for each path and peer, the same in every plot of a page.

Colours are those of Okabe and Ito, which people with any kind of colour blindness tell apart
(https://jfly.uni-koeln.de/color/), without the yellow that vanishes on white; the page has a lighter set for
dark mode. Peers are dashed, and every curve has its own marker, so that colour never carries the meaning
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

COLORS = 6  # in page.css: --color-0 to --color-5; -1 is the colour of the text
ROUTE = "route"
PEERS = ("openmpi", "mpich", "ucx", "nccl", "nvshmem", "cuda")
_MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")
_PATHS = ("peer", "mapped", "staged", "ucx", "nic:")


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
    """A style for each name, in the order of a legend: route, paths, peers. The route has the colour of the
    text.
    """
    ordered = sorted(set(vias), key=_rank)
    found = {}
    for i, via in enumerate(via for via in ordered if via != ROUTE):
        dash = ("solid", "dot")[i // COLORS % 2] if _is_path(via) else ("dash", "dashdot")[i // COLORS % 2]
        found[via] = Style(i % COLORS, dash, _MARKERS[i % len(_MARKERS)], 2)
    band = Style(-1, "solid", "circle", 9, opacity=0.3) if found else Style(-1, "solid", "circle", 2)
    route = {ROUTE: band} if ROUTE in ordered else {}
    return route | found


def _is_path(via: str) -> bool:
    return via.startswith(_PATHS) and via not in PEERS


def _rank(via: str) -> tuple[int, str]:
    return (0 if via == ROUTE else 1 if _is_path(via) else 2, via)
