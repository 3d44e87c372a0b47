"""The halo exchange that `peerway bench halo` measures, and its spelling in records."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

MOST_GRID_DIMS, MOST_DIMS = 4, 7  # PW_MAX_DIMS, PW_MAX_ARRAY_DIMS
Width = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Halo:
    """The halo of an array that is distributed over a grid of ranks, of which the last dimension varies
    fastest.

    It holds the number of elements that each rank has in each dimension, the bytes of an element and, for
    each dimension, the layers below and above that are refreshed and whether it is periodic. Dimension d of
    the array is distributed over dimension d of the grid. Dimensions beyond those of the grid are not
    distributed.
    """

    grid: tuple[int, ...]
    local: tuple[int, ...]
    element: int
    width: tuple[Width, ...]
    periodic: tuple[bool, ...]
    corners: bool = False

    def __post_init__(self) -> None:
        if len(self.grid) > MOST_GRID_DIMS or len(self.local) > MOST_DIMS:
            raise ValueError(
                f"a grid has at most {MOST_GRID_DIMS} dimensions and an array {MOST_DIMS}, "
                f"but {_times(self.grid)} has {len(self.grid)} and {_times(self.local)} {len(self.local)}"
            )
        if len(self.grid) > len(self.local):
            raise ValueError(
                f"the grid {_times(self.grid)} has {len(self.grid)} dimensions, but the array "
                f"{_times(self.local)} only {len(self.local)} to distribute over them"
            )
        for name, values in (("width", self.width), ("periodic", self.periodic)):
            if len(values) != len(self.local):
                raise ValueError(
                    f"--{name} has {len(values)} dimensions, but the array {_times(self.local)} "
                    f"has {len(self.local)}"
                )
        for d, (extent, width) in enumerate(zip(self.local, self.width, strict=True)):
            if max(width) > extent:
                raise ValueError(
                    f"width {width[0]}:{width[1]} in dimension {d} is more than the {extent} elements that "
                    "a rank has there"
                )
        if not self.bytes:
            raise ValueError(
                f"nothing is exchanged: no dimension of the grid {_times(self.grid)} has neighbours and a "
                "width; make the grid larger, or give --width"
            )

    @property
    def ranks(self) -> int:
        """The processes of the grid."""
        return prod(self.grid)

    @property
    def bytes(self) -> int:
        """The bytes that the rank with the most neighbours receives in one exchange."""
        layers = [self._received(d) for d in range(len(self.local))]
        if self.corners:
            grown = prod(n + more for n, more in zip(self.local, layers, strict=True))
            return (grown - prod(self.local)) * self.element
        whole = prod(self.local)
        return sum(whole // n * more for n, more in zip(self.local, layers, strict=True)) * self.element

    @property
    def array_bytes(self) -> int:
        """The bytes of a rank's memory, halo included."""
        return prod(n + sum(width) for n, width in zip(self.local, self.width, strict=True)) * self.element

    @property
    def label(self) -> str:
        """The spelling in records. Parts that have their default are left out: width 1:1 over several ranks,
        periodic, no corners.
        """
        parts = [f"halo:{_times(self.grid)}", _times(self.local), str(self.element)]
        if self.width != _usual_width(self.grid, len(self.local)):
            parts.append("w" + "_".join(f"{below}:{above}" for below, above in self.width))
        if not all(self.periodic):
            parts.append("p" + "_".join(str(int(periodic)) for periodic in self.periodic))
        return "/".join([*parts, "corners"] if self.corners else parts)

    def _received(self, d: int) -> int:
        """The most layers that any rank receives in a dimension."""
        ranks = self.grid[d] if d < len(self.grid) else 1
        if self.periodic[d] or ranks > 2:
            return sum(self.width[d])
        return max(self.width[d]) if ranks == 2 else 0


def make(
    grid: Sequence[int],
    local: Sequence[int],
    element: int,
    width: Sequence[Width] | None = None,
    periodic: Sequence[bool] | None = None,
    corners: bool = False,
) -> Halo:
    """The halo of the command line. None stands for the defaults: width 1:1 over several ranks, and
    periodic.
    """
    dims = len(local)
    return Halo(
        tuple(grid),
        tuple(local),
        element,
        _usual_width(grid, dims) if width is None else tuple(width),
        (True,) * dims if periodic is None else tuple(periodic),
        corners,
    )


def of_label(label: str) -> Halo:
    """The halo that the shape of a record spells. Raises ValueError."""
    head, _, rest = label.partition(":")
    parts = rest.split("/")
    if head != "halo" or len(parts) < 3:
        raise ValueError(f"'{label}' is not a halo")
    options = {part[0]: part[1:] for part in parts[3:]}
    return make(
        parse_extents(parts[0]),
        parse_extents(parts[1]),
        int(parts[2]),
        parse_width(options["w"].replace("_", ",")) if "w" in options else None,
        [bit == "1" for bit in options["p"].split("_")] if "p" in options else None,
        "c" in options,
    )


def parse_extents(text: str) -> list[int]:
    """Read "2x4x1x1". Raises ValueError."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", text):
        raise ValueError(f"'{text}' is not a grid; write extents of at least 1 such as 2x4 or 512x512")
    return [int(part) for part in text.split("x")]


def parse_width(text: str) -> list[Width]:
    """Read "1:1,0:2": layers below and above in each dimension. Raises ValueError."""
    matches = [re.fullmatch(r"([0-9]{1,6}):([0-9]{1,6})", part.strip()) for part in text.split(",")]
    if not all(matches):
        raise ValueError(f"'{text}' is not a width; write layers below:above for each dimension, as 1:1,0:2")
    return [(int(part[1]), int(part[2])) for part in matches if part]


def parse_periodic(text: str) -> list[bool]:
    """Read "1,0": whether each dimension is periodic. Raises ValueError."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part in ("0", "1") for part in parts):
        raise ValueError(
            f"'{text}' does not say which dimensions are periodic; write 1 or 0 for each, as 1,0"
        )
    return [part == "1" for part in parts]


def _usual_width(grid: Sequence[int], dims: int) -> tuple[Width, ...]:
    ranks = [*grid, *[1] * (dims - len(grid))]
    return tuple((1, 1) if n > 1 else (0, 0) for n in ranks)


def _times(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))
