"""The clause reduction of `xmp loop`: it begins with a neutral element and joins all nodes."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import TemplateOf
from peerway_xacc.analysis.paths import Transfer
from peerway_xacc.analysis.unit import Stack, Unit
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering.c_text import referred, where
from peerway_xacc.lowering.types import OPERATORS, c_type, run_time_type


def reductions(unit: Unit, stack: Stack, made: d.Loop) -> str:
    """Open the reductions of a loop, and give what closes them."""
    closing = ""
    assert made.on is not None
    nodes = _all_owners(unit, made, made.on)
    for one in made.reduced:
        variable = unit.syntax.variable(one.name.text, made.file, made.start)
        if variable is None:
            raise Refused(one.name.place, f"'{one.name.text}' is not declared")
        if not variable.scalar:
            raise Refused(
                one.name.place,
                f"'{one.name.text}' is no scalar; write '#pragma xmp reduction' behind the loop",
            )
        kind = run_time_type(
            variable, one.name.place, one.operator.removeprefix("first").removeprefix("last")
        )
        name = one.name.text
        bytes_ = variable.bytes if variable.bytes > 0 else None
        unit.communicates(made, f"reduction of {name}", Transfer("messages", "put", bytes_))
        if one.locations:
            closing = f" {_located(unit, made, one, nodes, kind)}" + closing
            continue
        before = f"{name}__before"
        stack.before.append(
            f"{{ const {c_type(variable)} {before} = {name}; {name} = {_identity(one.operator, kind)};"
        )
        total = f"{name}__total"
        joined = _joined(one.operator, before, total)
        closing = (
            f" {{ {c_type(variable)} {total} = {name}; pwx_reduce({nodes}, {OPERATORS[one.operator]}, "
            f"{kind}, &{total}, 1, {where(made)}); {name} = {joined}; }} }}" + closing
        )
    return closing


def _all_owners(unit: Unit, made: d.Loop, on: clauses.Ref) -> str:
    """The nodes that share a loop, those that own nothing of it too: they shall know its result."""
    found = referred(unit, on, made)
    own = [subscript.star or subscript.whole for subscript in on.subscripts or ()]
    if isinstance(found, TemplateOf):
        assert found.formats is not None
        assert found.onto is not None
        own = [mine for mine, fmt in zip(own, found.formats, strict=True) if fmt.kind != "*"]
        found = found.onto
    parts = ", ".join("{PWX_MINE, 0, 0, 1}" if mine else "{PWX_ALL, 0, 0, 1}" for mine in own)
    return f"&(const pwx_ref){{{found.address}, 0, {{{parts}}}}}"


def _located(unit: Unit, made: d.Loop, one: clauses.Reduced, nodes: str, kind: str) -> str:
    """The call that also brings the variables which say where the extreme value is."""
    if unit.is_cyclic(made):
        raise Refused(one.name.place, f"{one.operator} over a cyclic dimension is not supported yet")
    for name in one.locations:
        variable = unit.syntax.variable(name.text, made.file, made.start)
        if variable is None or not variable.scalar:
            raise Refused(name.place, f"'{name.text}' must be a scalar variable")
    operator = "PWX_" + one.operator.replace("first", "first_").replace("last", "last_").upper()
    places = ", ".join(f"&{name.text}" for name in one.locations)
    sizes = ", ".join(f"sizeof({name.text})" for name in one.locations)
    return (
        f"pwx_reduce_location({nodes}, {operator}, {kind}, &{one.name.text}, {len(one.locations)}, "
        f"(void *const[]){{{places}}}, (const size_t[]){{{sizes}}}, {where(made)});"
    )


def _identity(operator: str, kind: str) -> str:
    if operator in ("max", "min"):
        return f"{kind}_{'LOWEST' if operator == 'max' else 'HIGHEST'}"
    return {"*": "1", "&": "~0", "&&": "1"}.get(operator, "0")


def _joined(operator: str, left: str, right: str) -> str:
    if operator in ("max", "min"):
        return f"{left} {'>' if operator == 'max' else '<'} {right} ? {left} : {right}"
    return f"{left} {'+' if operator == '-' else operator} {right}"
