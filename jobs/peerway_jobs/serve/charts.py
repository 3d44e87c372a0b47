"""Small graphs of the cluster's use as SVG paths. The server draws them, so that they need no script; their
colours are those of the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peerway_jobs.store.utilization import TypeUse

WIDTH, HEIGHT = 1000, 100  # of the view box
COLUMNS = 96  # at most, so that a page with many types stays small
Values = Sequence[float | None]


@dataclass(frozen=True)
class Chart:
    """One graph. `allocated` is the outline of an area, empty for an amount; `used` is a line. `top` is the
    value at the upper edge. The last figures are those of the newest step that has one.
    """

    name: str  # cpu, gpu, memory, power, node_power or waiting
    allocated: str
    used: str
    top: float
    last_allocated: float | None
    last_used: float | None


def charts(use: TypeUse) -> list[Chart]:
    """The graphs of which something is known."""
    drawn = []
    for name in ("cpu", "gpu", "memory"):
        allocated, used = use.curves[f"{name}_allocated"], use.curves[f"{name}_used"]
        if not any(value is not None for value in (*allocated, *used)):
            continue
        drawn.append(
            Chart(name, area(_fewer(allocated), 1), line(_fewer(used), 1), 1, last(allocated), last(used))
        )
    return [*drawn, *amounts("power", use.curves["watts"]), *amounts("node_power", use.curves["node_watts"])]


def amounts(name: str, values: Values) -> list[Chart]:
    """The graph of an amount, if it is known at any time."""
    known = [value for value in values if value is not None]
    if not known:
        return []
    top = max(known) * 1.1 or 1.0
    return [Chart(name, "", line(_fewer(values), top), top, None, last(values))]


def last(values: Values) -> float | None:
    """The newest value; None if the last three steps have none."""
    return next((value for value in reversed(values[-3:]) if value is not None), None)


def line(values: Values, top: float) -> str:
    """A path with a level stretch for each step, so that a single known step is visible, too."""
    return "".join(f"M{steps[0][0]} {steps[0][2]}{_steps(steps)}" for steps in _runs(values, top))


def area(values: Values, top: float) -> str:
    """The outline of the area below the line."""
    return "".join(
        f"M{steps[0][0]} {HEIGHT}V{steps[0][2]}{_steps(steps)}V{HEIGHT}Z" for steps in _runs(values, top)
    )


Step = tuple[int, int, int]  # from, to, height


def _steps(steps: Sequence[Step]) -> str:
    path, height = "", steps[0][2]
    for place, (_, to, level) in enumerate(steps):
        if level != height:
            path, height = f"{path}V{level}", level
        if place == len(steps) - 1 or steps[place + 1][2] != level:
            path += f"H{to}"
    return path


def _runs(values: Values, top: float) -> Iterator[list[Step]]:
    """The unbroken parts of a curve."""
    steps: list[Step] = []
    for place, value in enumerate(values):
        if value is None:
            if steps:
                yield steps
            steps = []
            continue
        height = HEIGHT - round(min(value / top, 1) * HEIGHT)
        edges = (round(each * WIDTH / len(values)) for each in (place, place + 1))
        steps.append((*edges, height))  # type: ignore[arg-type]
    if steps:
        yield steps


def _fewer(values: Values) -> list[float | None]:
    """Means of neighbours, so that there are at most COLUMNS."""
    width = -(-len(values) // COLUMNS)
    groups = ([v for v in values[at : at + width] if v is not None] for at in range(0, len(values), width))
    return [sum(group) / len(group) if group else None for group in groups]
