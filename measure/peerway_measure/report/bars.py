"""Draw bars with intervals as a picture that needs no script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_WIDTH, _NAME, _ROW, _BAR, _BOTTOM, _VALUE = 720, 200, 28, 14, 26, 12
_LETTER = 6.4  # how wide one is, about; a longer name is squeezed


@dataclass(frozen=True, slots=True)
class Bar:
    """A value with its interval; None: unknown."""

    name: str
    value: float | None
    interval: tuple[float, float] | None


def picture(bars: Sequence[Bar], text: Callable[[float], str], label: str) -> Markup:
    """An SVG with a row for each bar; a bar of an unknown value is a word."""
    ends = [v for bar in bars for v in (bar.value, *(bar.interval or ())) if v is not None]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    width = (most - least) or 1.0
    height = _ROW * len(bars) + _BOTTOM

    def x(value: float) -> float:
        return float(_NAME + (_WIDTH - _NAME - _VALUE) * (value - least) / width)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {height}" class="bars" role="img" aria-label="{escape(label)}">']
    for at in sorted({least, 0.0, most}):
        anchor = "end" if at == most and most > 0 else "start" if at == least and least < 0 else "middle"
        parts.append(f'<path class="grid" d="M{x(at):.1f} 0V{height - _BOTTOM}"/>')
        parts.append(
            f'<text x="{x(at):.1f}" y="{height - 8}" text-anchor="{anchor}">{escape(text(at))}</text>'
        )
    for number, bar in enumerate(bars):
        middle = _ROW * number + _ROW / 2
        parts += [_name(bar.name, middle), *_drawn(bar, middle, x)]
    return Markup("".join(parts) + "</svg>")  # all text in it was escaped


def _name(name: str, middle: float) -> str:
    most = _NAME - 12
    fit = f' textLength="{most}" lengthAdjust="spacingAndGlyphs"' * (len(name) * _LETTER > most)
    return f'<text x="{_NAME - 8}" y="{middle + 4:.1f}" text-anchor="end"{fit}>{escape(name)}</text>'


def _drawn(bar: Bar, middle: float, x: Callable[[float], float]) -> Iterator[str]:
    """The bar, and its interval as a line between two marks."""
    if bar.value is None:
        yield f'<text class="unknown" x="{x(0) + 6:.1f}" y="{middle + 4:.1f}">unknown</text>'
        return
    begin, end = sorted((x(0.0), x(bar.value)))
    place = f'x="{begin:.1f}" y="{middle - _BAR / 2:.1f}" width="{end - begin:.1f}" height="{_BAR}"'
    yield f'<rect class="bar" {place}/>'
    if bar.interval:
        low, high = map(x, bar.interval)
        marks = "".join(f"M{at:.1f} {middle - 4:.1f}v8" for at in (low, high))
        yield f'<path class="interval" d="M{low:.1f} {middle:.1f}H{high:.1f}{marks}"/>'
