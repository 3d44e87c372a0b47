"""`coarray on p :: x` and `image (p)`: the nodes that are the images of a coarray, or of one statement."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import NodeArray
from peerway_xacc.fortran.coarray_memory import symbol_of, where
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import CoarrayOn, ImageOn
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend.diagnostics import Refused

_STATEMENTS = ("sync", "syncall", "syncmemory", "syncimages", "call")


def coarray_on(unit: FortranUnit, directive: CoarrayOn) -> None:
    """The images of these coarrays are the nodes, whichever nodes execute."""
    assert directive.nodes is not None
    scope = unit.scope_of(directive)
    nodes = unit.scopes.get(NodeArray, directive.nodes, scope, directive.start)
    for name in directive.names:
        entity = scope.entities.get(name.text)
        if entity is None or entity.images is None:
            raise Refused(name.place, f"'{name.text}' is no coarray that this scope declares")
        unit.image_nodes[scope.number, name.text] = nodes
    listed = ", ".join(name.text for name in directive.names)
    unit.explain(directive, f"coarray on: the images of {listed} are the nodes of {nodes.name}")


def image_on(unit: FortranUnit, directive: ImageOn) -> None:
    """The images of the next statement are the nodes."""
    assert directive.nodes is not None
    nodes = unit.scopes.get(NodeArray, directive.nodes, unit.scope_of(directive), directive.start)
    statement = unit.statement_behind(directive)
    if statement is None or statement.words[0].text not in _STATEMENTS:
        message = "expected SYNC or the call of a collective subroutine behind this directive"
        note = (statement.words[0].place, "this follows") if statement else None
        raise Refused(directive.place, message, note)
    unit.image_statements[statement.number] = (directive, nodes)
    unit.explain(directive, f"image: the images of the next statement are the nodes of {nodes.name}")


def set_up(unit: FortranUnit, scope: Scope, entity: Entity) -> list[Call]:
    """The call that gives a coarray its nodes; none for one whose images are the nodes that execute."""
    nodes = unit.image_nodes.get((scope.number, entity.name))
    line = f"{symbol_of(scope, entity)}__c.on = {nodes.address};" if nodes else ""
    return [Call(unit.name("images"), [line])] if nodes else []


def number_in(
    unit: FortranUnit, statement: Statement, scope: Scope, entity: Entity
) -> tuple[str, str] | None:
    """What calls give this image's number among those of a coarray, 0 outside, and how many there are; None
    where these are the nodes that execute.
    """
    if (scope.number, entity.name) not in unit.image_nodes:
        return None
    names = []
    for function in ("this", "num"):
        name = unit.name(f"{function}_image")
        value = f"(int)pwx_coarray_{function}_image(&{symbol_of(scope, entity)}__c)"
        unit.generated.top.append(f"int {name}_(void) {{ return {value}; }}")
        unit.generated.declare(statement.scope, f"integer, external :: {name}")
        names.append(f"{name}()")
    return names[0], names[1]


def surround(unit: FortranUnit, statement: Statement) -> None:
    """Execute a statement with the images that a directive before it names."""
    if statement.number not in unit.image_statements:
        return
    directive, nodes = unit.image_statements[statement.number]
    begin = Call(unit.name("images_begin"), [f"pwx_images_begin({nodes.address}, {where(directive.place)});"])
    end = Call(unit.name("images_end"), ["pwx_images_end();"])
    unit.generated.before(statement.number, unit.generated.call(statement.scope, begin))
    unit.generated.behind(statement.number, unit.generated.call(statement.scope, end))


def check(unit: FortranUnit, statement: Statement, is_about_images: bool) -> None:
    """Raises Refused where a directive names images for a statement that has none."""
    if statement.number in unit.image_statements and not is_about_images:
        directive, _ = unit.image_statements[statement.number]
        message = "this statement is neither SYNC nor a call of co_sum, co_max, co_min or co_broadcast"
        raise Refused(statement.words[0].place, message, (directive.place, "image stands before it"))
