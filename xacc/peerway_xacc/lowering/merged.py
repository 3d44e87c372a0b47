"""Merges several data clauses of one directive for one variable into one clause, or refuses them."""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering import data_clauses

_MOVING = ("COPY", "COPYIN", "COPYOUT", "CREATE")
_ON_DEVICE = ("deviceptr", "use_device")


def merge(directive: d.Acc) -> None:
    """Merge clauses so that each section is named once.

    Raises Refused with the second name if they conflict.
    """
    _check_pointers(directive)
    named: dict[str, list[tuple[int, clauses.Section]]] = {}
    for number, clause in enumerate(directive.clauses):
        for section in clause.sections if clause.name in data_clauses.KINDS else ():
            named.setdefault(section.name.text, []).append((number, section))
    for several in named.values():
        first, *others = several
        for other in others:
            first = _merge(directive, first, other)


def _check_pointers(directive: d.Acc) -> None:
    """Refuse a data clause for a variable that another clause says is a device address."""
    for clause in directive.clauses:
        for section in clause.sections if clause.name in data_clauses.KINDS else ():
            for other in directive.clauses:
                name = next(
                    (variable for variable in other.variables if variable.text == section.name.text), None
                )
                if other.name in _ON_DEVICE and name is not None:
                    _refuse(section.name, clause.name, other.name, name, "keep one of both")


def _refuse(name: clauses.Name, clause: str, before: str, earlier: clauses.Name, advice: str) -> None:
    raise Refused(
        name.place,
        f"'{name.text}' is in the clauses {before} and {clause} of one directive; {advice}",
        (earlier.place, "the other clause names it here"),
    )


def _merge(
    directive: d.Acc, first: tuple[int, clauses.Section], other: tuple[int, clauses.Section]
) -> tuple[int, clauses.Section]:
    """Merge two clauses. Returns the number and section of the clause to compare later ones with."""
    (number, section), (later, again) = first, other
    first_clause, two = directive.clauses[number], directive.clauses[later]
    kinds = data_clauses.KINDS[first_clause.name], data_clauses.KINDS[two.name]
    same = _text(section) == _text(again)
    if (kinds[0] == kinds[1] and not first_clause.modifier and not two.modifier) or _apart(section, again):
        return first  # equal clauses both stay: the second finds what the first made
    if not same:
        advice = "name the same section in both, or sections that are apart"
        _refuse(again.name, two.name, first_clause.name, section.name, advice)
    if not set(kinds) <= set(_MOVING) or directive.construct == "exit data":
        _refuse(again.name, two.name, first_clause.name, section.name, "keep one of both")
    enters, leaves = ({"COPY", "COPYIN"} & set(kinds), {"COPY", "COPYOUT"} & set(kinds))
    name = "copy" if enters and leaves else "copyin" if enters else "copyout" if leaves else "create"
    zero = "zero" if not enters and "zero" in (first_clause.modifier, two.modifier) else ""
    directive.clauses[later] = _without(two, again)
    directive.clauses[number] = _without(first_clause, section)
    directive.clauses.append(replace(first_clause, name=name, sections=(section,), modifier=zero))
    return len(directive.clauses) - 1, section


def _without(clause: clauses.Clause, section: clauses.Section) -> clauses.Clause:
    return replace(clause, sections=tuple(kept for kept in clause.sections if kept is not section))


def _text(section: clauses.Section) -> list[tuple[str, str, bool]]:
    return [
        (part.first.text if part.first else "0", part.length.text if part.length else "", part.index)
        for part in section.parts
    ]


def _apart(section: clauses.Section, other: clauses.Section) -> bool:
    """Do constants prove that the two sections have no element in common?"""
    for first, second in zip(section.parts, other.parts, strict=False):
        ranges = []
        for part in (first, second):
            begin = part.first.value if part.first else 0
            length = 1 if part.index else part.length.value if part.length else None
            if begin is None or length is None:
                break
            ranges.append((begin, begin + length))
        if len(ranges) == 2 and (ranges[0][1] <= ranges[1][0] or ranges[1][1] <= ranges[0][0]):
            return True
    return False
