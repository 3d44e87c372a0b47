"""`local_alias x => a`: x is this node's part of a with its shadow, in x's own subscripts; also as a coarray.

x becomes a pointer that is set wherever that of a is. As a coarray it is registered there, too, so the part
must have one shape on all images.
"""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran import arrays
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.grammar import LocalAlias
from peerway_xacc.fortran.unit import Alias, FortranUnit
from peerway_xacc.frontend.diagnostics import Refused, counted


def lower(unit: FortranUnit, directive: LocalAlias) -> None:
    """Declare the alias as a pointer."""
    assert directive.name is not None
    assert directive.array is not None
    scope = unit.scope_of(directive)
    array = unit.scopes.get(DistributedArray, directive.array, scope, directive.start)
    name = directive.name
    entity = scope.entities.get(name.text)
    if entity is None:
        raise Refused(name.place, f"'{name.text}' is not declared in this scope")
    note = (entity.word.place, f"'{name.text}' is declared here")
    if array.function is not scope:
        raise Refused(directive.array.place, f"'{array.name}' is declared elsewhere; write local_alias there")
    if unit.scopes.of_variable(unit.fortran.variable_of(scope, entity)):
        raise Refused(name.place, f"'{name.text}' is aligned, so it cannot be a local alias", note)
    dimensions = entity.dimensions or []
    if any(dimension.upper is not None or dimension.assumed for dimension in dimensions) or not dimensions:
        message = f"declare '{name.text}' with lower bounds only, as in {name.text}(0:)"
        raise Refused(name.place, message, note)
    if len(dimensions) != len(array.dimensions):
        message = (
            f"'{name.text}' has {counted(len(dimensions), 'dimension')}, and '{array.name}' "
            f"{len(array.dimensions)}"
        )
        raise Refused(name.place, message, note)
    if entity.deferred or arrays.is_dummy(scope, entity.name):
        kind = "a pointer or allocatable" if entity.deferred else "a dummy argument"
        raise Refused(name.place, f"'{name.text}' is {kind}, so it cannot be a local alias", note)
    _, aligned = arrays.declared_in(array)
    lives_on = scope.kind in ("module", "program") or "save" in aligned.attributes
    if entity.images is not None and not lives_on:
        message = f"the coarray '{name.text}' needs an array that lives on: declare '{array.name}' SAVE"
        raise Refused(name.place, message, note)
    entity.alias = True
    if not scope.foreign:
        _redeclare(unit, entity, lives_on)
    unit.aliases.setdefault(id(array), []).append(Alias(scope, entity))
    unit.explain(directive, f"local_alias: {entity.name} is this node's part of {array.name}")


def _redeclare(unit: FortranUnit, entity: Entity, lives_on: bool) -> None:
    attributes = "".join(f", {name}" for name in ("private", "public", "save") if name in entity.attributes)
    start = " => null()" if lives_on else ""
    shape = ",".join(":" * len(entity.dimensions or ()))
    kind = arrays.type_of(entity)
    declared = f"{kind}, pointer, contiguous{attributes} :: {entity.name}({shape}){start}"
    arrays.replace_declaration(unit, entity, [declared])
