"""Draws points of two or more columns as a picture that needs no script and shows every value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, floor, log10
from statistics import median

from markupsafe import Markup, escape

_WIDTH, _HEIGHT, _MARGIN, _TOP, _BOTTOM = 360, 220, 74, 12, 30
_LETTER = 6  # the approximate width of a letter; a name that is too long is squeezed into its column
_SPREAD = 0.62  # the share of a column over which points are laid out, so that equal ones can be counted


def picture(
    columns: Sequence[tuple[str, Sequence[float]]], text: Callable[[float], str], label: str
) -> Markup:
    """An SVG with a column of points for each (name, values), and a line at its median; `text` formats a
    value.
    """
    values = [v for _, several in columns for v in several]
    ticks = _ticks(values or [1.0])
    bottom, top = ticks[0], ticks[-1]

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (top - value) / ((top - bottom) or 1.0)

    wide = (_WIDTH - _MARGIN) / max(1, len(columns))
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" class="points" role="img" aria-label="{escape(label)}">']
    for at in ticks:
        parts.append(f'<path class="grid" d="M{_MARGIN} {y(at):.1f}H{_WIDTH}"/>')
        tick = escape(text(at) if at else "0")
        parts.append(f'<text x="{_MARGIN - 6}" y="{y(at) + 4:.1f}" text-anchor="end">{tick}</text>')
    for number, (name, several) in enumerate(columns):
        middle = _MARGIN + wide * (number + 0.5)
        dots = "".join(
            f"M{middle + wide * _SPREAD * (_van_der_corput(i) - 0.5):.1f} {y(v):.1f}h0"
            for i, v in enumerate(several)
        )
        parts.append(f'<path class="dots of-{number}" d="{dots}"/>')
        if several:
            half = wide * _SPREAD / 2
            parts.append(
                f'<path class="middle" d="M{middle - half:.1f} {y(median(several)):.1f}h{2 * half:.1f}"/>'
            )
        below, most = f"{name} (n={len(several)})", wide - 8
        fit = f' textLength="{most:.0f}" lengthAdjust="spacingAndGlyphs"' * (len(below) * _LETTER > most)
        parts.append(
            f'<text x="{middle:.1f}" y="{_HEIGHT - 8}" text-anchor="middle"{fit}>{escape(below)}</text>'
        )
    return Markup("".join(parts) + "</svg>")  # all its text was escaped above


def _ticks(values: Sequence[float]) -> list[float]:
    """Four to seven round numbers around all values. They begin at 0 if the least value is near it."""
    high = max(values)
    low = min(values) if 0.5 * high < min(values) < high else 0.0
    rough = (high - low or abs(high) or 1.0) / 5
    power = 10.0 ** floor(log10(rough))
    step = next(power * digit for digit in (1, 2, 2.5, 5, 10) if power * digit >= rough)
    return [step * number for number in range(floor(low / step), ceil(high / step) + 1)]


def _van_der_corput(number: int) -> float:
    """The van der Corput sequence: its first numbers, however many, are spread evenly from 0 to 1."""
    place, part = 0.0, 0.5
    number += 1
    while number:
        place += part * (number & 1)
        number >>= 1
        part /= 2
    return place
