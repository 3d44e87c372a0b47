"""Lowers the clause reduction of `xmp loop`: start from the identity, and combine all nodes at the end."""

from __future__ import annotations

from peerway_xacc.analysis.explained_paths import Transfer
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.analysis.mapping import TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering.c_text import referred, where
from peerway_xacc.lowering.types import OPERATORS, c_type, run_time_type
from peerway_xacc.lowering.unit import Unit


def reductions(unit: Unit, annotated: AnnotatedStatement, directive: d.Loop) -> str:
    """Write the code before a loop with reductions, and return the code after it."""
    closing = ""
    assert directive.on is not None
    nodes = all_owners(unit, directive, directive.on)
    for operand in directive.reduced:
        variable = unit.syntax.variable(operand.name.text, directive.file, directive.start)
        if variable is None:
            raise Refused(operand.name.place, f"'{operand.name.text}' is not declared")
        if not variable.scalar:
            raise Refused(
                operand.name.place,
                f"'{operand.name.text}' is no scalar; write '#pragma xmp reduction' behind the loop",
            )
        kind = run_time_type(
            variable, operand.name.place, operand.operator.removeprefix("first").removeprefix("last")
        )
        name = operand.name.text
        bytes_ = variable.bytes if variable.bytes > 0 else None
        unit.communicates(directive, f"reduction of {name}", Transfer("messages", "put", bytes_))
        if operand.locations:
            closing = f" {_located(unit, directive, operand, nodes, kind)}" + closing
            continue
        before = f"{name}__before"
        annotated.before.append(
            f"{{ const {c_type(variable)} {before} = {name}; {name} = {_identity(operand.operator, kind)};"
        )
        total = f"{name}__total"
        joined = _joined(operand.operator, before, total)
        closing = (
            f" {{ {c_type(variable)} {total} = {name}; pwx_reduce({nodes}, {OPERATORS[operand.operator]}, "
            f"{kind}, &{total}, 1, {where(directive)}); {name} = {joined}; }} }}" + closing
        )
    return closing


def all_owners(unit: Unit, directive: d.Loop, on: clauses.Ref) -> str:
    """The nodes that share a loop, including those that own none of it, which need the result, too."""
    mapping = referred(unit, on, directive)
    own = [subscript.star or subscript.whole for subscript in on.subscripts or ()]
    if isinstance(mapping, TemplateOf):
        assert mapping.formats is not None
        assert mapping.onto is not None
        own = [mine for mine, fmt in zip(own, mapping.formats, strict=True) if fmt.kind != "*"]
        mapping = mapping.onto
    parts = ", ".join("{PWX_MINE, 0, 0, 1}" if mine else "{PWX_ALL, 0, 0, 1}" for mine in own)
    return f"&(const pwx_ref){{{mapping.address}, 0, {{{parts}}}}}"


def _located(unit: Unit, directive: d.Loop, reduced: clauses.Reduced, nodes: str, kind: str) -> str:
    """The call for a reduction that also finds the location of the extreme value."""
    if unit.is_cyclic(directive):
        raise Refused(reduced.name.place, f"{reduced.operator} over a cyclic dimension is not supported yet")
    for name in reduced.locations:
        variable = unit.syntax.variable(name.text, directive.file, directive.start)
        if variable is None or not variable.scalar:
            raise Refused(name.place, f"'{name.text}' must be a scalar variable")
    operator = "PWX_" + reduced.operator.replace("first", "first_").replace("last", "last_").upper()
    places = ", ".join(f"&{name.text}" for name in reduced.locations)
    sizes = ", ".join(f"sizeof({name.text})" for name in reduced.locations)
    return (
        f"pwx_reduce_location({nodes}, {operator}, {kind}, &{reduced.name.text}, {len(reduced.locations)}, "
        f"(void *const[]){{{places}}}, (const size_t[]){{{sizes}}}, {where(directive)});"
    )


def _identity(operator: str, kind: str) -> str:
    if operator in ("max", "min"):
        return f"{kind}_{'LOWEST' if operator == 'max' else 'HIGHEST'}"
    return {"*": "1", "&": "~0", "&&": "1"}.get(operator, "0")


def _joined(operator: str, lhs_text: str, right: str) -> str:
    if operator in ("max", "min"):
        return f"{lhs_text} {'>' if operator == 'max' else '<'} {right} ? {lhs_text} : {right}"
    return f"{lhs_text} {'+' if operator == '-' else operator} {right}"
