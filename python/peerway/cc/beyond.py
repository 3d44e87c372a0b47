"""Subscripts in a distributed loop that reach further than the shadow: a node has no such element."""

from __future__ import annotations

from peerway.cc.constant import value_of
from peerway.cc.mapping import DistributedArray, TemplateOf
from peerway.cc.source import Range, used_in
from peerway.cc.tokens import scan
from peerway.cc.unit import Stack, Unit


def warn(unit: Unit, stack: Stack, template: TemplateOf, localised: list[tuple[int, str, str]]) -> None:
    """Of each dimension of the template: the loop's index, and what is added to it in the on clause.

    Only what is an index plus or minus a constant is looked at: the rest is known when the program runs.
    """
    region = Range(stack.statement.start, stack.statement.end)
    for use in used_in(stack.function.uses, region):
        array = unit.scopes.of_variable(use.variable)
        if array is None or array.template is not template or use.macro or use.in_sizeof:
            continue
        for dimension, written in enumerate(use.subscripts[: len(array.dimensions)]):
            aligned = array.dimensions[dimension]
            if aligned is None or array.kind_of(dimension) not in ("block", "gblock"):
                continue
            for number, index, added in localised:
                if number == aligned[0]:
                    _look_at(unit, array, dimension, written, index, _number(added))


def _look_at(
    unit: Unit, array: DistributedArray, dimension: int, written: Range, index: str, added: int | None
) -> None:
    aligned = array.dimensions[dimension]
    assert aligned is not None
    text = unit.text.text[written.start : written.end]
    tokens = [span.text for span in scan(text)]
    offset, lower_upper = _number(aligned[1]), array.shadow_values(dimension)
    if tokens[:1] != [index] or offset is None or added is None or None in lower_upper or -1 in lower_upper:
        return
    constant = value_of(["0", *tokens[1:]])
    if constant is None or (tokens[1:] and tokens[1] not in ("+", "-")):
        return
    reach = constant + offset - added
    for beyond, side, width in ((-reach, "below", lower_upper[0]), (reach, "above", lower_upper[1])):
        if beyond > (width or 0):
            unit.found.warn(
                unit.text.place(written.start, written.end),
                f"'{array.name}[{text.strip()}]' reaches {beyond} {side} what a node computes of this loop, "
                f"and the shadow of dimension {dimension} has {width or 'none'} there: on several nodes "
                f"this is no element of '{array.name}'; widen the shadow and reflect it",
            )


def _number(text: str) -> int | None:
    """The value of what is added to an index: "1", "- 1"; None if it is no constant."""
    tokens = [span.text for span in scan(text)]
    return value_of(["0", *tokens] if tokens[0] in ("+", "-") else tokens)
