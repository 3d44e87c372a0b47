"""Lowers `xmp_desc_of(name)` to the address of the descriptor of nodes, a template or an array.

Some functions need the type of an array's elements; they get it from the array in their first argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import Span, Text, scan
from peerway_xacc.lowering.sections import named
from peerway_xacc.lowering.types import run_time_type
from peerway_xacc.lowering.unit import Unit

_CALL = "xmp_desc_of"
_TYPED = {"xmp_matmul": "pwx_matmul({kind}, ", "xmp_sort_up": "pwx_sort({kind}, ",
          "xmp_sort_down": "pwx_sort({kind}, "}  # fmt: skip


@dataclass(frozen=True)
class Described:
    """A call of xmp_desc_of: the name in it, and the range of the whole call."""

    name: str
    range: Range
    typed: Span | None = None  # the function of _TYPED whose first argument this is
    arguments_end: int = 0


def find(text: Text) -> list[Described]:
    """Find all calls of xmp_desc_of in a file."""
    if _CALL not in text.text:
        return []
    spans = scan(text.text)
    descriptions = []
    for number in range(len(spans) - 3):
        call, opening, name = spans[number : number + 3]
        if (call.text, opening.text) != (_CALL, "(") or name.kind != "name":
            continue
        text_of_name, end = named(spans, number + 2)
        if end < len(spans) and spans[end].text == ")":
            inside = Range(call.start, spans[end].end)
            first = number > 1 and spans[number - 1].text == "(" and spans[number - 2].text in _TYPED
            typed = spans[number - 2] if first else None
            descriptions.append(
                Described(text_of_name, inside, typed, _closing(spans, number) if first else 0)
            )
    return descriptions


def generate(unit: Unit, described: list[Described]) -> None:
    """Replace the calls by the addresses."""
    for description in described:
        function = unit.syntax.function_at(unit.file, description.range.start)
        variable = unit.syntax.variable(description.name, unit.file, description.range.start)
        declared = unit.scopes.of_variable(variable) if variable else None
        object_ = declared or unit.scopes.find(description.name, function, description.range.start)
        if object_ is None:
            place = unit.text.place(description.range.start, description.range.end)
            message = f"'{description.name}' is neither a node array nor a template nor a distributed array"
            unit.diagnostics.add(Refused(place, message))
            continue
        address = f"((void *){object_.address})"
        if description.typed and declared and variable:
            place = unit.text.place(description.typed.start, description.typed.end)
            try:
                kind = run_time_type(variable, place, "+")
            except Refused as refused:
                unit.diagnostics.add(refused)
                continue
            call = _TYPED[description.typed.text].format(kind=kind)
            unit.output.edits.replace(description.typed.start, description.range.end, f"{call}{address}")
            if description.typed.text.startswith("xmp_sort"):
                unit.output.edits.before(
                    description.arguments_end, f", {int(description.typed.text == 'xmp_sort_up')}"
                )
        else:
            unit.output.edits.replace(description.range.start, description.range.end, address)


def _closing(spans: list[Span], start: int) -> int:
    """The offset of the bracket that closes the one around spans[start]."""
    depth = 0
    for span in spans[start:]:
        depth += (span.text == "(") - (span.text == ")")
        if depth < 0:
            return span.start
    return spans[-1].end
