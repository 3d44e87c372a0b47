"""Distributed components of derived types: `align b%a(i) with t(i)`, of the variable b or of all of type b.

The component becomes a pointer in its type, and that of each variable leads to the variable's own distributed
array, so `c%a(i)` stays as the program has it. Every variable of the type must therefore be set up.
"""

from __future__ import annotations

from peerway_xacc.fortran import derived_types
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.specification import DerivedType
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Name
from peerway_xacc.frontend.diagnostics import Refused

_IMPOSSIBLE = {
    "allocatable": "is allocatable", "pointer": "is a pointer", "parameter": "is a constant",
    "codimension": "is a coarray", "value": "is passed by value",
}  # fmt: skip


def declare(unit: FortranUnit) -> None:
    """Find what the components mean that directives of the mapping name, and declare them as entities."""
    mapped: dict[int, tuple[DerivedType, set[str]]] = {}
    for directive in unit.directives:
        if isinstance(directive, d.Align | d.Shadow | d.StaticDesc):
            names, directive.arrays = directive.arrays, []
            for name in names:
                try:
                    directive.arrays += _meant(unit, name, directive, mapped)
                except Refused as refused:
                    unit.diagnostics.add(refused)
                    unit.diagnostics.leave_unfinished([name.text])
    for defined, components in mapped.values():
        for scope in unit.structure.scopes:
            with unit.diagnostics.collecting():
                _check_others(unit, scope, defined, components)


def _meant(
    unit: FortranUnit, name: Name, directive: d.Directive, mapped: dict[int, tuple[DerivedType, set[str]]]
) -> list[Name]:
    """The components of variables that a name means; another name means itself."""
    base, _, component = name.text.partition("%")
    if not component:
        return [name]
    scope = unit.scope_of(directive)
    if base in scope.entities:
        variables = [scope.entities[base]]
    else:
        defined = _defined(unit, scope, base)
        variables = [
            entity for entity in scope.entities.values() if defined and derived_types.name_of(entity) == base
        ]
        if not variables:
            message = f"'{base}' is neither a variable of this scope nor a type that has variables here"
            raise Refused(name.place, message)
    for variable in variables:
        defined = _defined(unit, scope, derived_types.name_of(variable))
        if defined is None or component not in defined.components:
            note = (variable.word.place, f"'{variable.name}' is declared here")
            raise Refused(name.place, f"'{variable.name}' has no component '{component}'", note)
        _check(scope, variable, component, name)
        declared = f"{variable.name}%{component}"
        scope.entities.setdefault(declared, _entity(declared, variable, defined.components[component]))
        mapped.setdefault(id(defined), (defined, set()))[1].add(component)
    return [Name(f"{variable.name}%{component}", name.place) for variable in variables]


def _entity(name: str, variable: Entity, component: Entity) -> Entity:
    """A component of a variable, which lives as long as the variable does."""
    attributes = component.attributes | (variable.attributes & {"save"})
    return Entity(
        name, component.word, component.type_text, attributes, component.dimensions,
        initialised=component.initialised, typed=component.typed, component=True,
    )  # fmt: skip


def _defined(unit: FortranUnit, scope: Scope, name: str) -> DerivedType | None:
    """The type that a name means in a scope."""
    declared = derived_types.defined(unit, scope, name)
    return declared[1] if declared else None


def _check(scope: Scope, variable: Entity, component: str, name: Name) -> None:
    """Raises Refused for a variable whose components cannot be distributed."""
    note = (variable.word.place, f"'{variable.name}' is declared here")
    is_dummy = any(dummy.text == variable.name for dummy in scope.dummies)
    reason = next((text for attribute, text in _IMPOSSIBLE.items() if attribute in variable.attributes), "")
    if variable.dimensions is not None:
        reason = "is an array"
    elif is_dummy:
        reason = "is a dummy argument"
    elif scope.kind == "function" and variable.name == scope.result_name:
        reason = "is the value of a function"
    elif variable.initialised:
        reason = "has an initial value"
    elif variable.images is not None:
        reason = _IMPOSSIBLE["codimension"]
    if reason:
        message = f"'{variable.name}' {reason}, so its component '{component}' cannot be distributed"
        raise Refused(name.place, message, note)


def _check_others(unit: FortranUnit, scope: Scope, defined: DerivedType, components: set[str]) -> None:
    """Raises Refused for a variable of the type whose component is not aligned, and for larger types."""
    component = sorted(components)[0]
    places = [(entity, f"variable '{entity.name}'") for entity in scope.entities.values()]
    places += [
        (entity, f"type '{larger.name}'")
        for larger in scope.types.values()
        for entity in larger.components.values()
    ]
    for entity, kind in places:
        if entity.component or _defined(unit, scope, derived_types.name_of(entity)) is not defined:
            continue
        if all(f"{entity.name}%{name}" in scope.entities for name in components):
            continue
        message = (
            f"the component '{component}' of type '{defined.name}' is distributed, but not that of this "
            f"{kind}; align it here"
        )
        if kind.startswith("type"):
            message = f"{kind} has a component of type '{defined.name}', whose '{component}' is distributed"
        raise Refused(entity.word.place, message, (defined.word.place, "the type is defined here"))


def redeclare(unit: FortranUnit, scope: Scope, entity: Entity, rank: int) -> None:
    """Make a pointer of a component, in the definition of its type, once for all variables."""
    mention = entity.typed
    assert mention is not None
    gone = unit.taken_out.setdefault(mention.logical.number, set())
    if scope.foreign or mention.logical.first <= unit.structure.text.foreign or mention.number in gone:
        return
    attributes = "".join(f", {name}" for name in ("public", "private") if name in entity.attributes)
    shape = ",".join(":" * rank)
    name = entity.name.partition("%")[2]
    pointer = f"{entity.type_text}, pointer, contiguous{attributes} :: {name}({shape}) => null()"
    unit.generated.behind(mention.logical.number, pointer)
    gone.add(mention.number)
    if len(gone) == len(mention.items):
        unit.generated.remove(mention.logical.number)
    else:
        unit.generated.drop_items(mention.logical.number, mention.items, gone)


def check_whole(unit: FortranUnit, statement: Statement, number: int, word: Word) -> None:
    """Raises Refused where a variable with distributed components is used as a whole."""
    words = statement.words
    if number + 1 < len(words) and words[number + 1].text == "%":
        return
    declared = unit.fortran.entity(word.text, statement.scope)
    if declared is None:
        return
    scope, entity = declared
    inside = next((name for name in scope.entities if name.startswith(f"{entity.name}%")), None)
    if inside:
        message = f"'{word.text}' is used as a whole, without its distributed array '{inside}'"
        raise Refused(word.place, message)
