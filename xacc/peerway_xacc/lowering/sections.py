"""Parses array sections `a[first:length:step][:][i]`, which are not C, and hides them from libclang."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peerway_xacc.analysis.blocks import statement_behind
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.preprocess import Pragma
from peerway_xacc.frontend.source import Range, Variable
from peerway_xacc.frontend.tokens import Span, Text, scan
from peerway_xacc.lowering.shapes import sizes_of
from peerway_xacc.lowering.unit import Unit

_HIDING = ("gmove", "array")


@dataclass(frozen=True)
class Dimension:
    """One pair of brackets: an index, or first:length:step with None for an omitted part."""

    index: str | None
    first: str | None = None
    length: str | None = None
    step: str = "1"


@dataclass(frozen=True)
class Section:
    """A variable and the brackets after it, if any."""

    name: str
    range: Range
    dimensions: tuple[Dimension, ...]

    @property
    def rank(self) -> int:
        """The number of its dimensions that are sections, not indices."""
        return sum(dimension.index is None for dimension in self.dimensions)


def hidden(text: Text, pragmas: list[Pragma], marks: list[Range], statements: list[Range]) -> str:
    """The text for libclang: given ranges, statements and assignments after directives become blanks."""
    out = text.text
    for mark in marks:
        out = _blanked(out, mark.start, mark.end)
    for statement in statements:
        out = _blanked(out, statement.start, statement.end - 1)
    for pragma in pragmas:
        word = pragma.tokens[0].text.lower() if pragma.tokens else ""
        if pragma.model == "xmp" and pragma.file == text.file and word in _HIDING:
            follower = statement_behind(text, pragma.end)
            out = _blanked(out, follower.start, follower.end - 1)
    return out


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def with_some_sizes(text: str, start: int) -> str:
    """The text with the size 1 in all brackets after the name at an offset."""
    depth = opening = 0
    for span in scan(text, start)[1:]:
        if depth == 0 and span.text != "[":
            break
        if span.text == "[" and depth == 0:
            opening = span.end
        depth += (span.text == "[") - (span.text == "]")
        if depth == 0:
            text = text[:opening] + "1" + _blanked(text, opening, span.start)[opening + 1 :]
    return text


def assignment(text: Text, statement: Range) -> tuple[list[Span], list[Span]]:
    """The tokens on both sides of an assignment."""
    spans = scan(text.text, statement.start, statement.end - 1)
    for number, span in enumerate(spans):
        if span.text == "=":
            if number == 0 or number + 1 == len(spans):
                break
            return spans[:number], spans[number + 1 :]
    raise Refused(text.place(statement.start, statement.end), "expected an assignment 'left = right'")


def section(text: Text, spans: list[Span], start: int = 0) -> tuple[Section, int]:
    """Parse the variable or member `s.a`, with its brackets, at spans[start].

    Returns also the index after it.
    """
    name, at = named(spans, start)
    dimensions = []
    while at < len(spans) and spans[at].text == "[":
        end = _closing(text, spans, at)
        dimensions.append(_dimension(text, spans[at], spans[at + 1 : end]))
        at = end + 1
    return Section(name, Range(spans[start].start, spans[at - 1].end), tuple(dimensions)), at


def named(spans: list[Span], start: int) -> tuple[str, int]:
    """Parse the variable or member `s.a` at spans[start]. Returns its name and the index after it."""
    dotted = [span.text for span in spans[start + 1 : start + 2]] == ["."] and len(spans) > start + 2
    return (
        (f"{spans[start].text}.{spans[start + 2].text}", start + 3)
        if dotted
        else (spans[start].text, start + 1)
    )


def _closing(text: Text, spans: list[Span], opening: int) -> int:
    depth = 0
    for number in range(opening, len(spans)):
        depth += (spans[number].text in "[(") - (spans[number].text in ")]")
        if depth == 0:
            return number
    raise Refused(text.place(spans[opening].start), "this bracket is not closed")


def _dimension(text: Text, bracket: Span, inside: list[Span]) -> Dimension:
    parts: list[list[Span]] = [[]]
    depth = choices = 0
    for span in inside:
        depth += (span.text in "[(") - (span.text in ")]")
        choices += span.text == "?"
        if span.text == ":" and depth == 0 and not choices:
            parts.append([])
            continue
        choices -= span.text == ":" and choices > 0
        parts[-1].append(span)
    texts = [text.text[part[0].start : part[-1].end] if part else None for part in parts]
    if len(parts) == 1:
        if texts[0] is None:
            raise Refused(text.place(bracket.start), "expected an index, ':' or first:length")
        return Dimension(texts[0])
    if len(parts) > 3:
        raise Refused(text.place(bracket.start), "expected first:length:step")
    return Dimension(None, texts[0], texts[1], (texts[2] if len(texts) > 2 else None) or "1")


def run_time_section(
    unit: Unit, array_section: Section, variable: Variable, array: DistributedArray | None
) -> str:
    """The pwx_section of a section, as C text."""
    place = unit.text.place(array_section.range.start, array_section.range.end)
    leads = array is None and variable.pointee is not None and bool(array_section.dimensions)
    rank = len(variable.sizes) + (1 + len(variable.pointee or ()) if leads else 0)
    dimensions = array_section.dimensions
    if not dimensions and rank:
        dimensions = tuple(Dimension(None) for _ in range(rank))
    if len(dimensions) != rank:
        raise Refused(
            place,
            f"'{array_section.name}' has {counted(rank, 'dimension')}, "
            f"and {counted(len(dimensions), 'subscript')} here",
        )
    sizes = _extents(unit, array_section) if leads else sizes_for(unit, variable, array)
    parts = []
    for dimension, size in zip(dimensions, sizes, strict=True):
        if dimension.index is not None:
            parts.append(f"{{{dimension.index}, 1, 1, 1}}")
            continue
        first = dimension.first or "0"
        length = dimension.length or remaining(dimension, size)
        parts.append(f"{{{first}, {length}, {dimension.step}, 0}}")
    dims = f"{{{', '.join(parts)}}}" if parts else "{{0, 0, 0, 0}}"
    if array:
        return f"&(const pwx_section){{.array = {array.address}, .ndims = {rank}, .dim = {dims}}}"
    base = array_section.name if rank else f"&{array_section.name}"
    size = f"sizeof({array_section.name}{'[0]' * rank})"
    extents = f"{{{', '.join(sizes)}}}" if rank else "{0}"
    return (
        f"&(const pwx_section){{.base = (void *){base}, .element_bytes = {size}, .ndims = {rank}, "
        f".extent = {extents}, .dim = {dims}}}"
    )


def _extents(unit: Unit, array_section: Section) -> list[str]:
    """The sizes of memory behind a pointer; the first dimension is as long as the section needs."""
    first, *others = array_section.dimensions
    if first.index is None and first.length is None:
        place = unit.text.place(array_section.range.start, array_section.range.end)
        raise Refused(
            place, f"the length of this section of '{array_section.name}' is not known; write [first:length]"
        )
    element = f"{array_section.name}[0]"
    sizes = [f"({first.index}) + 1"]
    if first.index is None:
        sizes = [f"({first.first or '0'}) + ({first.length}) * ({first.step})"]
    for _ in others:
        sizes.append(f"(long)(sizeof({element}) / sizeof({element}[0]))")
        element += "[0]"
    return sizes


def sizes_for(unit: Unit, variable: Variable, array: DistributedArray | None) -> list[str]:
    """The sizes of an array's dimensions as C text, from its descriptor if they are not written."""
    if array and None in variable.sizes:
        return [f"{array.descriptor}.dim[{dimension}].size" for dimension in range(len(variable.sizes))]
    return sizes_of(unit, variable) if variable.sizes else []


def remaining(dimension: Dimension, size: str) -> str:
    """The length of a section without one: to the end of the array."""
    if dimension.first is None and dimension.step == "1":
        return size
    return f"(({size}) - ({dimension.first or '0'}) + ({dimension.step}) - 1) / ({dimension.step})"


def variable_of(unit: Unit, name: str, range_: Range) -> Variable:
    """The variable of a section. Raises Refused if it is not declared."""
    variable = unit.syntax.variable(name, unit.file, range_.start)
    if variable is None:
        raise Refused(unit.text.place(range_.start, range_.start + len(name)), f"'{name}' is not declared")
    return variable
