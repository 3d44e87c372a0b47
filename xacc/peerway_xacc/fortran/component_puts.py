"""Assignments to components of coarrays at other images, `x(2)[3]%a(1:4) = …`.

A component is a part of the coarray without gaps, at the same place in each image. So it is put as a part
that is a dummy argument.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran import derived_types
from peerway_xacc.fortran.coarray_memory import where
from peerway_xacc.fortran.coindexed import Coindexed, edited, image_of, temporary
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments, place_of
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import quoted


@dataclass(frozen=True)
class Target:
    """A component that is assigned to: its declaration, its name as Fortran has it at this image, and what
    stands in the parentheses behind it. `end` is the number of the last word.
    """

    component: Entity
    local: str
    subscripts: list[Word] | None
    end: int


def selectors(words: list[Word], at: int) -> list[tuple[Word, list[Word] | None, int]]:
    """The components behind a reference: names, subscripts, and the number of the last word of each."""
    chosen = []
    while at + 1 < len(words) and words[at].text == "%" and words[at + 1].kind == "name":
        name, subscripts, end = words[at + 1], None, at + 1
        if end + 1 < len(words) and words[end + 1].text == "(":
            end = closing(words, end + 1)
            subscripts = words[at + 3 : end]
        chosen.append((name, subscripts, end))
        at = end + 1
    return chosen


def target_of(unit: FortranUnit, statement: Statement, reference: Coindexed) -> Target | None:
    """The component of a reference that a statement assigns to; None where it is used otherwise. Raises
    Refused for one that cannot be put.
    """
    words = statement.words
    chosen = selectors(words, reference.end + 1)
    if not chosen or chosen[-1][2] + 1 >= len(words) or words[chosen[-1][2] + 1].text != "=":
        return None
    scope, entity = reference.scope, reference.entity
    local = entity.name
    if reference.subscripts is not None:
        local += f"({edited(unit, statement, reference.subscripts)})"
    ranges = [reference.subscripts] if reference.entity.dimensions is not None else []
    for name, subscripts, _ in chosen:
        scope, entity = _component(unit, scope, entity, name)
        local += f"%{name.text}"
        if name is not chosen[-1][0]:
            if subscripts is not None:
                local += f"({edited(unit, statement, subscripts)})"
            ranges += [subscripts] if entity.dimensions is not None else []
    if any(part is None or any(word.text == ":" for word in part) for part in ranges):
        message = (
            "a component of several elements at another image cannot be assigned to; assign to one element"
        )
        raise Refused(place_of(reference.words), message)
    return Target(entity, local, chosen[-1][1], chosen[-1][2])


def _component(unit: FortranUnit, scope: Scope, entity: Entity, name: Word) -> tuple[Scope, Entity]:
    defined = derived_types.defined(unit, scope, derived_types.name_of(entity))
    while defined is not None and name.text not in defined[1].components and defined[1].parent:
        defined = derived_types.defined(unit, defined[0], defined[1].parent)
    component = defined[1].components.get(name.text) if defined else None
    if defined is None or component is None:
        raise Refused(name.place, f"'{entity.name}' has no component '{name.text}' that is known here")
    if component.deferred:
        message = (
            f"the component '{name.text}' is allocatable or a pointer, which is not supported at another"
        )
        raise Refused(name.place, f"{message} image yet")
    return defined[0], component


def put(
    unit: FortranUnit, statement: Statement, reference: Coindexed, target: Target
) -> tuple[list[str], list[str]]:
    """The statements before and behind an assignment to a component, which goes to a temporary."""
    arguments = Arguments()
    triplets, rank = _section(unit, statement, target, arguments)
    subscripts = f"({edited(unit, statement, target.subscripts)})" if target.subscripts else ""
    kind = target.component.type_text
    name, lines = temporary(unit, statement, kind, rank, f"{target.local}{subscripts}")
    place, dimensions = where(reference.words[0].place), len(target.component.dimensions or ())
    sizes = ", ".join(f"pwx_f_extent(c1, {dimensions - 1 - d})" for d in range(dimensions)) or "1"
    shape = f"{quoted(target.local)}, c1->elem_len, {dimensions}, (const long[]){{{sizes}}}, {place}"
    call = Call(unit.name("put"), [
        "const pwx_section here = pwx_f_section(c0);",
        f"pwx_coarray part = {{0}}; pwx_coarray_bind(&part, c1->base_addr, {shape});",
        f"pwx_coarray_put(&part, {image_of(unit, statement, reference, arguments)}, {triplets}, &here, 0, "
        f"{place});",
        f"pwx_sync_memory({place});",
    ], arguments.texts, [("any", name), ("any", target.local)])  # fmt: skip
    whole = f"({','.join(':' * rank)})" if rank else ""
    words = statement.words
    unit.generated.edit(statement.number, reference.words[0].start, words[target.end].end, name + whole)
    return lines, [unit.generated.call(statement.scope, call)]


def _section(
    unit: FortranUnit, statement: Statement, target: Target, arguments: Arguments
) -> tuple[str, int]:
    """The section of the component as C text, and its rank."""
    rank = len(target.component.dimensions or ())
    parts = [[] for _ in range(rank)] if target.subscripts is None else split(target.subscripts, ",")
    if len(parts) != rank:
        dimensions = counted(rank, "dimension")
        message = f"'{target.component.name}' has {dimensions}, and {counted(len(parts), 'subscript')}"
        raise Refused(statement.words[target.end].place, f"{message} here")
    triplets, ranked = [], 0
    for number, part in enumerate(parts, 1):
        low = arguments.c_text(f"lbound({target.local}, {number})")
        texts = [edited(unit, statement, bound) for bound in split(part, ":")]
        if len(texts) == 1 and texts[0]:
            index = arguments.c_text(texts[0])
            triplets.append(f"pwx_f_triplet({index}, {index}, 1, 1, {low})")
            continue
        ranked += 1
        first = arguments.c_text(texts[0]) if texts[0] else low
        has_last = len(texts) > 1 and texts[1]
        last = arguments.c_text(texts[1] if has_last else f"ubound({target.local}, {number})")
        step = arguments.c_text(texts[2]) if len(texts) > 2 and texts[2] else "1"
        triplets.append(f"pwx_f_triplet({first}, {last}, {step}, 0, {low})")
    return f"(const pwx_triplet[]){{{', '.join(triplets[::-1]) or '{0, 1, 1, 1}'}}}", ranked
