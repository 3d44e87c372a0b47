"""Warns of subscripts in a distributed loop that reach beyond the shadow: a node has no such elements."""

from __future__ import annotations

from peerway_xacc.analysis import ranges, values
from peerway_xacc.analysis.mapped import AnnotatedStatement, Mapped
from peerway_xacc.analysis.mapping import DistributedArray, TemplateOf
from peerway_xacc.frontend.source import Range, used_in


def warn(
    unit: Mapped, annotated: AnnotatedStatement, template: TemplateOf, localised: list[tuple[int, str, str]]
) -> None:
    """Warn of subscripts that reach beyond the shadow of an array.

    `localised` has, for each dimension of the template that the loop goes over: its number, the loop's index,
    and the offset that the on clause adds to the index. Only subscripts that are an index plus or minus a
    constant are checked: other ones are known only at run time.
    """
    region = Range(annotated.statement.start, annotated.statement.end)
    for use in used_in(annotated.function.uses, region):
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


def _reach(unit: Mapped, written: Range, index: str, aligned: str, added: str) -> int | None:
    """How far a subscript reaches from the iteration's own element; None if only known at run time."""
    known = unit.syntax.constants
    names = ranges.Names(
        lambda name: ranges.Range(0, 0, of_index=True) if name == index
        else ranges.Range(known[name], known[name]) if name in known else None,
        lambda name: values.macro(unit, name), None, signed=True,
    )  # fmt: skip
    reached = ranges.range_of(unit.text.text[written.start : written.end], names)
    constant = reached.low if reached and reached.of_index and reached.low == reached.high else None
    offset, on = values.offset(unit, aligned), values.offset(unit, added)
    return None if constant is None or offset is None or on is None else constant + offset - on


def _compare(
    unit: Mapped, array: DistributedArray, dimension: int, written: Range, reach: int | None
) -> None:
    lower, upper = array.shadow_values(dimension)
    if reach is None or lower is None or upper is None or lower < 0:  # negative: a full shadow
        return
    beyond, side, width = (-reach, "below", lower) if reach < 0 else (reach, "above", upper)
    if beyond > width:
        text = unit.text.text[written.start : written.end].strip()
        unit.diagnostics.warn(
            unit.text.place(written.start, written.end),
            f"'{array.name}[{text}]' reaches {beyond} {side} what a node computes of this loop, and the "
            f"shadow of dimension {dimension} has {width or 'none'} there: on several nodes this is no "
            f"element of '{array.name}'; widen the shadow and reflect it",
        )
