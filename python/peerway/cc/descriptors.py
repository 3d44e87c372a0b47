"""`xmp_desc_of(name)`: the name of nodes, a template or an array becomes the address of its descriptor."""

from __future__ import annotations

from dataclasses import dataclass

from peerway.cc.diagnostics import Refused
from peerway.cc.sections import named
from peerway.cc.source import Range
from peerway.cc.tokens import Text, scan
from peerway.cc.unit import Unit

_CALL = "xmp_desc_of"


@dataclass(frozen=True)
class Described:
    """A call of xmp_desc_of: the name it is about, and the range of all of it."""

    name: str
    range: Range


def find(text: Text) -> list[Described]:
    """All of them in a file."""
    if _CALL not in text.text:
        return []
    spans = scan(text.text)
    found = []
    for number in range(len(spans) - 3):
        call, opening, name = spans[number : number + 3]
        if (call.text, opening.text) != (_CALL, "(") or name.kind != "name":
            continue
        text_of_name, end = named(spans, number + 2)
        if end < len(spans) and spans[end].text == ")":
            found.append(Described(text_of_name, Range(call.start, spans[end].end)))
    return found


def generate(unit: Unit, described: list[Described]) -> None:
    """Put the addresses into the text."""
    for one in described:
        function = unit.syntax.function_at(unit.file, one.range.start)
        variable = unit.syntax.variable(one.name, unit.file, one.range.start)
        declared = unit.scopes.of_variable(variable) if variable else None
        found = declared or unit.scopes.find(one.name, function, one.range.start)
        if found is None:
            place = unit.text.place(one.range.start, one.range.end)
            message = f"'{one.name}' is neither a node array nor a template nor a distributed array"
            unit.found.add(Refused(place, message))
            continue
        unit.edits.replace(one.range.start, one.range.end, f"((void *){found.address})")
