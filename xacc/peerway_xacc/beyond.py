"""Subscripts in a distributed loop that reach further than the shadow: a node has no such element."""

from __future__ import annotations

from peerway_xacc.constant import value_of
from peerway_xacc.mapping import DistributedArray, TemplateOf
from peerway_xacc.source import Range, used_in
from peerway_xacc.tokens import scan
from peerway_xacc.unit import Stack, Unit


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
                    reach = _reach(unit, written, index, aligned[1], added)
                    _compare(unit, array, dimension, written, reach)


def _reach(unit: Unit, written: Range, index: str, aligned: str, added: str) -> int | None:
    """How far from the iteration's own element a subscript reaches; None if it is known at run time only."""
    tokens = [span.text for span in scan(unit.text.text[written.start : written.end])]
    if tokens[:1] != [index] or tokens[1:2] not in ([], ["+"], ["-"]):
        return None
    constant, offset, on = value_of(["0", *tokens[1:]]), _number(aligned), _number(added)
    return None if constant is None or offset is None or on is None else constant + offset - on


def _compare(unit: Unit, array: DistributedArray, dimension: int, written: Range, reach: int | None) -> None:
    lower, upper = array.shadow_values(dimension)
    if reach is None or lower is None or upper is None or lower < 0:  # below 0: the shadow is a full one
        return
    beyond, side, width = (-reach, "below", lower) if reach < 0 else (reach, "above", upper)
    if beyond > width:
        text = unit.text.text[written.start : written.end].strip()
        unit.found.warn(
            unit.text.place(written.start, written.end),
            f"'{array.name}[{text}]' reaches {beyond} {side} what a node computes of this loop, and the "
            f"shadow of dimension {dimension} has {width or 'none'} there: on several nodes this is no "
            f"element of '{array.name}'; widen the shadow and reflect it",
        )


def _number(text: str) -> int | None:
    """The value of what is added to an index: "1", "- 1"; None if it is no constant."""
    tokens = [span.text for span in scan(text)]
    return value_of(["0", *tokens] if tokens[0] in ("+", "-") else tokens)
