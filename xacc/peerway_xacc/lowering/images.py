"""Handles images in several dimensions: `x:[2][*]` declares them, and in `x:[i][j]` i varies fastest."""

from __future__ import annotations

from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.tokens import Span, Text
from peerway_xacc.lowering.c_text import at, numbers


def groups(text: Text, spans: list[Span], opening: int) -> tuple[int, list[list[Span]]]:
    """The contents of the brackets from spans[opening] on, and the index of the last closing bracket."""
    brackets: list[list[Span]] = []
    number = opening
    while number < len(spans) and spans[number].text == "[":
        end = _closing(text, spans, number)
        brackets.append(spans[number + 1 : end])
        number = end + 1
    return number - 1, brackets


def _closing(text: Text, spans: list[Span], opening: int) -> int:
    depth = 0
    for number in range(opening, len(spans)):
        depth += (spans[number].text == "[") - (spans[number].text == "]")
        if depth == 0:
            return number
    raise Refused(text.place(spans[opening].start), "this bracket is not closed")


def written(text: Text, group: list[Span]) -> str:
    """The text inside a pair of brackets."""
    return text.text[group[0].start : group[-1].end] if group else ""


def number_of(text: Text, name: str, sizes: list[str], images: list[list[Span]], place: Place) -> str:
    """The number of an image from 0, as C text. `sizes` are those of all dimensions but the last."""
    texts = [written(text, group) for group in images]
    if len(texts) != len(sizes) + 1 or "" in texts:
        dimensions = counted(len(sizes) + 1, "dimension")
        raise Refused(
            place,
            f"the images of coarray '{name}' have {dimensions}, and {counted(len(texts), 'subscript')} here",
        )
    if not sizes:
        return texts[0]
    return f'pwx_image({len(texts)}, {numbers(sizes)}, {numbers(texts)}, "{name}", {at(place)})'
