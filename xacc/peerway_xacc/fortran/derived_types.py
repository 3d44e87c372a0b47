"""Derived types in kernels: structs of C with the memory that the Fortran compiler gives them.

A type without SEQUENCE or BIND(C) might be arranged otherwise, so the function of a kernel compares the sizes
when it begins. Allocatable components and pointers have their place, and kernels cannot use them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from peerway_xacc.fortran.c_names import c_name
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.intrinsic_types import Type
from peerway_xacc.fortran.specification import DerivedType
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend.diagnostics import Place, Refused

_DESCRIPTOR, _OF_A_DIMENSION = 5, 3  # of gfortran, in words of 8 bytes


@dataclass(frozen=True)
class Component:
    """A component: its declaration in C and its bounds. `type` is None where kernels have only its place."""

    name: str
    type: Type | None
    text: str
    lower: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    is_parent: bool = False


@dataclass(frozen=True)
class Derived(Type):
    """A derived type; `kind` counts those that kernels have. What it extends is its first component."""

    name: str
    components: tuple[Component, ...]

    @property
    def c_text(self) -> str:
        """The struct of C."""
        return f"struct pwf_{self.name}_{self.kind}"

    @property
    def bytes(self) -> int:
        """Not known here; the C compiler knows it."""
        return 0

    @property
    def fortran(self) -> str:
        """The type as Fortran writes it."""
        return f"type({self.name})"

    @property
    def definition(self) -> str:
        """The struct of C with its members."""
        return f"{self.c_text} {{ {' '.join(component.text for component in self.components)} }};"

    def find(self, name: str) -> tuple[str, Component] | None:
        """A component, its own or one of a type that it extends, and how C selects it."""
        for component in self.components:
            if component.name == name:
                return f".{c_name(name)}", component
        parent = self.components[0]
        if parent.is_parent and isinstance(parent.type, Derived) and (inner := parent.type.find(name)):
            return f".{c_name(parent.name)}{inner[0]}", inner[1]
        return None


def name_of(entity: Entity) -> str:
    """The name of an entity's derived type; empty for a type that is none."""
    text = "".join((entity.type_text or "").lower().split())
    for kind in ("type(", "class("):
        if text.startswith(kind):
            return text[len(kind) :].split("(")[0].rstrip(")")
    return ""


def defined(unit: FortranUnit, scope: Scope, name: str) -> tuple[Scope, DerivedType] | None:
    """The type that a name means in a scope, and the scope that defines it."""
    for around in scope.chain():
        if name in around.types:
            return around, around.types[name]
        if found := _used(unit, around, name, set()):
            return found
    return None


def _used(unit: FortranUnit, scope: Scope, name: str, seen: set[str]) -> tuple[Scope, DerivedType] | None:
    for module, only in scope.modules:
        used = unit.fortran.module(module)
        known = name if only is None else only.get(name, name if "" in only else None)
        if used is None or known is None or module in seen:
            continue
        if known in used.types:
            return used, used.types[known]
        if inner := _used(unit, used, known, {*seen, module}):
            return inner
    return None


def has_distributed(unit: FortranUnit, definition: DerivedType) -> bool:
    """Are components of a type distributed? Its variables have these elsewhere, and another order."""
    for scope in unit.structure.scopes:
        for name in scope.entities:
            variable, _, component = name.partition("%")
            if component and variable in scope.entities:
                declared = defined(unit, scope, name_of(scope.entities[variable]))
                if declared and declared[1] is definition:
                    return True
    return False


class KindsOf(Protocol):
    """What derived types ask of the types of a file."""

    def of_text(self, scope: Scope, text: str, name: str, place: Place) -> Type:
        """The type that a declaration begins with."""
        ...

    def integer(self, scope: Scope, text: str, depth: int = 0) -> int | None:
        """The value of a constant expression of integers."""
        ...


class DerivedTypes:
    """The derived types that the kernels of a file have."""

    def __init__(self, unit: FortranUnit, types: KindsOf) -> None:
        self._unit, self._types = unit, types
        self._known: dict[int, Derived] = {}
        self._open: list[DerivedType] = []  # whose components are read now
        self.definitions: list[str] = []  # in C, in an order that C takes

    def of(self, scope: Scope, name: str, user: str, place: Place) -> Derived:
        """The type that a name means, for a variable. Raises Refused for one that kernels do not have."""
        declared = defined(self._unit, scope, name)
        if declared is None:
            message = (
                f"the type of '{user}', {name}, is not known here; define it in this file or in a module"
            )
            raise Refused(place, f"{message} that is compiled by peerway fc")
        around, definition = declared
        if definition in self._open:
            raise Refused(
                place, f"'{name}' has itself as a component", (definition.word.place, "its definition")
            )
        if id(definition) not in self._known:
            self._open.append(definition)
            try:
                components = self._components(around, definition, user, place)
            finally:
                self._open.pop()
            derived = Derived("type", len(self._known), definition.name, components)
            self._known[id(definition)] = derived
            self.definitions.append(derived.definition)
        return self._known[id(definition)]

    def _components(
        self, scope: Scope, definition: DerivedType, user: str, place: Place
    ) -> tuple[Component, ...]:
        note = (definition.word.place, "the type is defined here")
        why = ""
        if definition.has_procedures:
            why = "has procedures"
        elif not definition.components and not definition.parent:
            why = "has no components"
        elif has_distributed(self._unit, definition):
            why = "has distributed components"
        elif definition.unknown:
            why = f"has a component that is declared by {definition.unknown.upper()}"
        if why:
            message = f"the type of '{user}' {why}, which kernels do not have yet"
            raise Refused(place, message, note)
        parts = [self._parent(scope, definition, place)] if definition.parent else []
        return (*parts, *(self._component(scope, entity) for entity in definition.components.values()))

    def _parent(self, scope: Scope, definition: DerivedType, place: Place) -> Component:
        parent = self.of(scope, definition.parent, definition.name, place)
        text = f"{parent.c_text} {c_name(definition.parent)};"
        return Component(definition.parent, parent, text, is_parent=True)

    def _component(self, scope: Scope, entity: Entity) -> Component:
        name, place = entity.name, entity.word.place
        member, text = c_name(name), (entity.type_text or "").lower()
        if entity.deferred:
            if text.startswith(("character", "class")):
                raise Refused(place, f"the component '{name}' is of {text}, which kernels do not have yet")
            rank = len(entity.dimensions or ())
            words = _DESCRIPTOR + _OF_A_DIMENSION * rank if rank else 1
            return Component(name, None, f"long {member}[{words}];")
        lower, extents = self._bounds(scope, entity)
        if text.startswith("character"):
            message = f"the component '{name}' is of {text}, which kernels do not have yet"
            raise Refused(place, message)
        kind = self._types.of_text(scope, text, name, place)
        count = 1
        for extent in extents:
            count *= extent
        size = f"[{count}]" if extents else ""
        return Component(name, kind, f"{kind.c_text} {member}{size};", lower, extents)

    def _bounds(self, scope: Scope, entity: Entity) -> tuple[tuple[int, ...], tuple[int, ...]]:
        lower, extents = [], []
        for dimension in entity.dimensions or ():
            low = self._types.integer(scope, dimension.lower or "1")
            high = self._types.integer(scope, dimension.upper or "")
            if low is None or high is None or high < low:
                message = f"the bounds of the component '{entity.name}' are not known here; write numbers"
                raise Refused(entity.word.place, message)
            lower.append(low)
            extents.append(high - low + 1)
        return tuple(lower), tuple(extents)
