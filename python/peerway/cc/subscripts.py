"""The subscripts of a use of a distributed array: those of cyclic dimensions must be translated."""

from __future__ import annotations

from peerway.cc.diagnostics import Refused
from peerway.cc.mapping import DistributedArray
from peerway.cc.source import Range, Use
from peerway.cc.tokens import scan
from peerway.cc.unit import Unit


def cyclic_subscripts(unit: Unit, array: DistributedArray, use: Use) -> list[tuple[int, Range]]:
    """The subscripts of a use that are of cyclic dimensions, which must be translated."""
    assert array.variable is not None
    count = min(len(use.subscripts), len(array.variable.sizes))
    cyclic = [dimension for dimension in range(count) if array.kind_of(dimension) == "cyclic"]
    if not cyclic:
        return []
    written = _written_subscripts(unit, use) if use.macro else use.subscripts
    if len(written) < count or use.function.file != unit.file:
        place = unit.texts.of(use.function.file).place(use.range.start, use.range.end)
        raise Refused(place, f"cyclic array '{array.name}' in the text of a macro is not supported yet")
    return [(dimension, written[dimension]) for dimension in cyclic]


def in_macro(unit: Unit, use: Use) -> bool:
    """Is this in the text of a macro, so that a change would be of all its uses?"""
    if not use.macro:
        return False
    spans = scan(unit.text.text, use.range.start, use.range.end)
    return "".join(span.text for span in spans) != use.variable.name


def _written_subscripts(unit: Unit, use: Use) -> list[Range]:
    """The subscripts behind a name in the arguments of a macro, as they are written there."""
    if in_macro(unit, use):
        return []
    spans = scan(unit.text.text, use.range.end, use.function.body.end)
    found = []
    at_ = 0
    while at_ < len(spans) and spans[at_].text == "[":
        opening, depth = at_, 0
        while at_ < len(spans):
            depth += (spans[at_].text == "[") - (spans[at_].text == "]")
            at_ += 1
            if depth == 0:
                break
        found.append(Range(spans[opening].end, spans[at_ - 1].start))
    return found
