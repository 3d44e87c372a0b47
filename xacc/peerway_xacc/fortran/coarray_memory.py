"""The descriptor of a coarray: its names in C, and the call that sets it up over the program's memory."""

from __future__ import annotations

from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.tokens import quoted


def symbol_of(scope: Scope, entity: Entity) -> str:
    """How the names of a coarray's descriptor begin."""
    return f"{entity.name}{scope.suffix}"


def where(place: Place) -> str:
    """A place as C text."""
    return f"&(const pwx_where){{{quoted(place.file)}, {place.line}}}"


def coarray_call(
    unit: FortranUnit, scope: Scope, entity: Entity, lowers: list[str], place: Place, how: str
) -> Call:
    """The call that sets a coarray up: `once`, `anew` where it is allocated, `bind` for a dummy, or
    `alias` for a part of a distributed array.
    """
    symbol = symbol_of(scope, entity)
    rank = len(lowers)
    arguments = Arguments()
    lines = [f"{symbol}__clb[{rank - 1 - at}] = {arguments.c_text(text)};" for at, text in enumerate(lowers)]
    sizes = ", ".join(f"pwx_f_extent(c0, {rank - 1 - d})" for d in range(rank)) or "1"
    rest = f"{quoted(entity.name)}, c0->elem_len, {rank}, (const long[]){{{sizes}}}, {where(place)});"
    if how == "bind":
        lines.append(f"pwx_coarray_bind(&{symbol}__c, c0->base_addr, {rest}")
    else:
        if how == "alias":
            lines.append(f"if ({symbol}__c.state && {symbol}__c.base == c0->base_addr) return;")
            lines.append(f"pwx_f_alike(c0, {quoted(entity.name)}, {where(place)});")
        if how == "once":
            lines.append(f"if ({symbol}__c.state) return;")
        lines += [f"{symbol}__c.base = c0->base_addr;", f"pwx_coarray_init(&{symbol}__c, {rest}"]
    return Call(unit.name("coarray"), lines, arguments.texts, [("kept", entity.name)])
