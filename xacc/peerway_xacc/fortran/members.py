"""Components with memory of their own, c%a where a is distributed, allocatable or a pointer: to kernels and
clauses of data they are arrays, with that name. All components of a type that has distributed ones are
variables of their own.
"""

from __future__ import annotations

from peerway_xacc.fortran import derived_types
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, joined


def with_members(unit: FortranUnit, scope: Scope, words: list[Word]) -> list[Word]:
    """The words with each such component as one name, and the names of other components as one word each."""
    result: list[Word] = []
    at, words = 0, joined(words)
    while at < len(words):
        end = _member(unit, scope, words, at) if words[at].kind == "name" else None
        if end is None:
            result.append(words[at])
            at += 1
            continue
        text = "".join(word.text for word in words[at : end + 1])
        result.append(Word("name", text, words[at].place, words[at].start, words[end].end))
        at = end + 1
    return result


def _member(unit: FortranUnit, scope: Scope, words: list[Word], at: int) -> int | None:
    """The number of the last word of a component with memory of its own; None if no such one begins here."""
    declared = unit.fortran.entity(words[at].text, scope)
    name = words[at].text
    while declared and declared[1].dimensions is None and at + 1 < len(words):
        at += 1
        if words[at].kind != "component":
            return None
        name += words[at].text
        if unit.array_at(name, scope):
            return at
        declared, is_apart = _component(unit, *declared, words[at].text[1:])
        if declared and (declared[1].deferred or is_apart):
            if declared[1].deferred and declared[1].dimensions is None:
                return None
            unit.fortran.members[scope.number, name] = (declared[0], _named(declared[1], name))
            return at
    return None


def _component(
    unit: FortranUnit, scope: Scope, entity: Entity, name: str
) -> tuple[tuple[Scope, Entity] | None, bool]:
    """A component of a variable's type, or of one that this extends, and the scope that defines the type; and
    whether other components of the type are distributed.
    """
    defined = derived_types.defined(unit, scope, derived_types.name_of(entity))
    while defined is not None and name not in defined[1].components and defined[1].parent:
        defined = derived_types.defined(unit, defined[0], defined[1].parent)
    if defined is None or name not in defined[1].components:
        return None, False
    component = defined[1].components[name]
    return (defined[0], component), derived_types.has_distributed(unit, defined[1])


def _named(component: Entity, name: str) -> Entity:
    """The component as an array of its own."""
    return Entity(
        name, component.word, component.type_text, component.attributes, component.dimensions,
        typed=component.typed, others=component.others, component=True,
    )  # fmt: skip
