"""The clause reduction of a loop of xmp: calls before and behind the loop."""

from __future__ import annotations

from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Name
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.loop_reductions import all_owners
from peerway_xacc.lowering.types import OPERATORS


def reductions(unit: FortranUnit, directive: d.Loop, arguments: Arguments) -> tuple[list[str], list[str]]:
    """The calls before and behind a loop with the clause reduction."""
    opened: list[str] = []
    closed: list[str] = []
    if not directive.reduced:
        return opened, closed
    assert directive.on is not None
    scope = unit.scope_of(directive)
    nodes = all_owners(unit, directive, directive.on)
    for operand in directive.reduced:
        name = operand.name.text
        if unit.array_at(name, scope):
            raise Refused(
                operand.name.place,
                f"'{name}' is a distributed array; write '!$xmp reduction' behind the loop",
            )
        others = [("any", name)]
        if operand.locations:
            closed += _located(unit, directive, operand.operator, operand.name, operand.locations, nodes)
            continue
        operator = OPERATORS[operand.operator]
        begin = f"pwx_f_reduction_begin({operator}, c0, {quoted(name)}, {where(directive)});"
        end = f"pwx_f_reduction_end({nodes}, {operator}, c0, {quoted(name)}, {where(directive)});"
        opened.append(unit.generated.call(scope, Call(unit.name("reduce"), [begin], others=others)))
        closed.insert(
            0, unit.generated.call(scope, Call(unit.name("reduced"), [end], arguments.texts, others))
        )
    return opened, closed


def _located(
    unit: FortranUnit, directive: d.Loop, operator: str, name: Name, locations: tuple[Name, ...], nodes: str
) -> list[str]:
    if unit.is_cyclic(directive):
        raise Refused(name.place, f"{operator} over a cyclic dimension is not supported yet")
    kind = "PWX_" + operator.replace("first", "first_").replace("last", "last_").upper()
    plain = "PWX_MAX" if operator.endswith("max") else "PWX_MIN"
    others = [("any", name.text), *(("any", location.text) for location in locations)]
    places = ", ".join(f"c{number + 1}->base_addr" for number in range(len(locations)))
    sizes = ", ".join(f"c{number + 1}->elem_len" for number in range(len(locations)))
    line = (
        f"pwx_reduce_location({nodes}, {kind}, "
        f"pwx_f_type(c0, {plain}, {quoted(name.text)}, {where(directive)}), "
        f"c0->base_addr, {len(locations)}, (void* const[]){{{places}}}, (const size_t[]){{{sizes}}}, "
        f"{where(directive)});"
    )
    return [unit.generated.call(unit.scope_of(directive), Call(unit.name("reduced"), [line], others=others))]
