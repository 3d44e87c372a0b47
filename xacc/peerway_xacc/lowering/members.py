"""Handles distributed members of structs: `s.a`, of the variable s or of all of `struct s`."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Name
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.lowering.unit import Unit


def resolved_names(unit: Unit, names: list[Name], directive: d.Directive) -> list[Name]:
    """Resolve the names of an align or shadow: `tag.member` is that member of all variables of a struct."""
    members = []
    for name in names:
        base, _, member = name.text.partition(".")
        if not member or unit.syntax.variable(base, directive.file, directive.start) is not None:
            members.append(name)
            continue
        variables = unit.syntax.structs.of_tag(base)
        if not variables and not unit.syntax.is_type(base):
            raise Refused(name.place, f"'{base}' is neither a variable nor a struct that has variables here")
        for variable in {candidate.name: candidate for candidate in variables}.values():
            if not variable.file_scope:
                message = f"a function has a struct '{base}'; align '{variable.name}.{member}' there"
                note = (_place(unit, variable), f"'{variable.name}' is declared here")
                raise Refused(name.place, message, note)
            members.append(Name(f"{variable.name}.{member}", name.place))
    return members


def check(unit: Unit, name: Name, directive: d.Directive) -> None:
    """Check that a name with a dot means an array or pointer that is a member of a plain variable."""
    base, _, member = name.text.partition(".")
    variable = unit.syntax.variable(base, directive.file, directive.start)
    if variable is None:
        raise Refused(name.place, f"'{base}' is not declared")
    note = (_place(unit, variable), f"'{base}' is declared here")
    if variable.sizes or variable.pointee is not None:
        kind = "an array" if variable.sizes else "a pointer"
        raise Refused(name.place, f"'{base}' is {kind}, whose members have no mapping; name a struct", note)
    if variable.parameter:
        message = f"'{base}' is a parameter; the members of a struct that is passed by value have no mapping"
        raise Refused(name.place, message, note)
    if unit.syntax.structs.member(variable, member) is None:
        raise Refused(name.place, f"'{base}' has no member '{member}'", note)


def claim(unit: Unit, variable: Variable, place: Place) -> None:
    """Make `s.a` a distributed array from now on.

    The memory inside the struct is no longer used, so nothing may reach it by a copy of the struct or by its
    address.
    """
    base = variable.base
    if base is None:
        return
    far = unit.syntax.structs.claim(variable)
    if variable.pointee is not None:
        return  # the pointer stays in the struct
    note = (place, f"'{variable.name}' is aligned here")
    whole = [use for use in base.uses if not use.subscripts and not use.in_sizeof]
    for use in whole:
        if not use.address:
            at = unit.texts.of(use.function.file).place(use.range.start, use.range.end)
            raise Refused(at, f"'{base.name}' is used as a whole, without its array '{variable.name}'", note)
    if whole and far:
        function, extent = far[0]
        at = unit.texts.of(function.file).place(extent.start, extent.end)
        message = (
            f"'{variable.name}' is a distributed array, which the address of '{base.name}' does not lead to"
        )
        raise Refused(at, message, note)


def _place(unit: Unit, variable: Variable) -> Place:
    return unit.texts.of(variable.file).place(variable.declarator.start, variable.declarator.end)
