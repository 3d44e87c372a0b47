"""Makes the axes of plots, with ticks that people can read (64 KiB, 10 µs) and no more of them than fit.

Axes of curves are logarithmic, those of bars begin at 0.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_TICKS, _FEWEST_TICKS = 8, 3
_STEPS = ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))  # the ticks of a decade, from few to many


def size_axis(
    sizes: Iterable[int], title: str, hover: str, text: Callable[[int], str], most: int = 6
) -> dict[str, Any]:
    """An axis in powers of two, with at most `most` + 1 ticks at equal distances. `hover` is plotly's
    template for the heading of a hover box.
    """
    low, high = _range_of(sizes)
    first, last = math.floor(math.log2(low)), math.ceil(math.log2(high))
    step = max(1, math.ceil((last - first) / most))
    values = [2**power for power in range(first, last + 1, step)]
    axis = _axis(title, low / 1.25, high * 1.25, values, [text(value) for value in values])
    return axis | {"unifiedhovertitle": {"text": hover}}


def value_axis(values: Iterable[float], text: Callable[[float], str], title: str = "") -> dict[str, Any]:
    """An axis of measured numbers: a tick for each decade, and as many more as are needed to read it."""
    low, high = _range_of(values)
    low, high = low / 1.3, high * 1.3
    decades = (_ticks(low, high, steps) for steps in _STEPS)
    ticks = next((ticks for ticks in decades if len(ticks) >= _FEWEST_TICKS), None) or _even_ticks(low, high)
    ticks = ticks[:: math.ceil(len(ticks) / _MOST_TICKS)]
    return _axis(title, low, high, ticks, [text(tick) for tick in ticks])


def bar_axis(high: float, text: Callable[[float], str]) -> dict[str, Any]:
    """A linear axis from 0 up to `high`."""
    ticks = _even_ticks(0, high)
    texts = [text(tick) if tick else "0" for tick in ticks]
    ends = {"range": [0, high or 1], "tickangle": 0}
    return {**ends, "tickmode": "array", "tickvals": ticks, "ticktext": texts}


def _even_ticks(low: float, high: float) -> list[float]:
    """Three to six multiples of 1, 2 or 5 times a power of ten between two numbers."""
    if high <= low:
        return [low]
    least = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step for factor in (1, 2, 5, 10) if (step := factor * power) >= least * (1 - 1e-9))
    return [float(f"{n * step:.12g}") for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _ticks(low: float, high: float, steps: Iterable[float]) -> list[float]:
    """The ticks of an axis, this many in each decade."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in steps]
    return [tick for tick in ticks if low <= tick <= high]


def tick_text(text: str) -> str:
    """The text of a value without trailing zeros: "1.00 µs" -> "1 µs"."""
    number, unit = text.split(" ", 1)
    return f"{float(number):g} {unit}"


def _axis(title: str, low: float, high: float, values: list[Any], texts: list[str]) -> dict[str, Any]:
    return {
        "type": "log",
        "title": {"text": title, "standoff": 10},
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": values,
        "ticktext": texts,
        "automargin": True,
    }


def _range_of(values: Iterable[float]) -> tuple[float, float]:
    positive = [value for value in values if value > 0]
    return (min(positive), max(positive)) if positive else (1, 1)
