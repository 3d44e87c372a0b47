"""What other images have, in statements: `x(1:3)[2]` is put or fetched by a call beside the statement.

`x(1:3)[2] = expr` puts a temporary that has the type of x, so Fortran converts and spreads the value. In an
expression, `x(1:3)[2]` becomes a temporary that a call before the statement fills, also before components.
"""

from __future__ import annotations

from peerway_xacc.fortran import component_puts
from peerway_xacc.fortran.coindexed import Coindexed, action_of, coarray_at, fetched, sent, surround
from peerway_xacc.fortran.grammar import place_of
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing
from peerway_xacc.frontend.diagnostics import Refused

_OPENING = ("do", "else", "elseif", "select", "case", "where", "elsewhere", "forall", "associate", "block")


def _coindexed(unit: FortranUnit, statement: Statement, at: int, end: int) -> list[Coindexed]:
    """The references among some words; those in the brackets of another one come before it."""
    references: list[Coindexed] = []
    words = statement.words
    while at < end:
        reference = coarray_at(unit, statement, at)
        if reference is None:
            _check_bracket(unit, statement, at)
            at += 1
            continue
        has_images = reference.images is not None
        chosen = component_puts.selectors(words, reference.end + 1)
        end_of_all = chosen[-1][2] if chosen else reference.end
        behind = words[end_of_all + 1].text if end_of_all + 1 < len(words) else ""
        if behind == "[" or (has_images and behind == "("):
            message = f"this reference to '{words[at].text}' at another image is not supported yet"
            raise Refused(words[at].place, message)
        if has_images:
            references += _coindexed(unit, statement, at + 1, reference.end)
            references.append(reference)
            at = reference.end
        at += 1
    return references


def _check_bracket(unit: FortranUnit, statement: Statement, at: int) -> None:
    """Raises Refused for images behind a variable that is no coarray."""
    words = statement.words
    end = closing(words, at + 1) if at + 1 < len(words) and words[at + 1].text == "(" else at
    if words[at].kind != "name" or end + 1 >= len(words) or words[end + 1].text != "[":
        return
    declared = unit.fortran.entity(words[at].text, statement.scope)
    if end == at or declared:
        note = (declared[1].word.place, f"'{words[at].text}' is declared here") if declared else None
        raise Refused(words[at].place, f"'{words[at].text}' is no coarray, so it has no images", note)


def transfer(unit: FortranUnit, statement: Statement) -> None:
    """Replace what other images have by temporaries, and calls that bring or take these."""
    words = statement.words
    if statement.number < statement.scope.first_executable or words[0].text in ("allocate", "deallocate"):
        return
    references = _coindexed(unit, statement, 0, len(words))
    if not references:
        return
    _check_construct(statement, references[0])
    action = action_of(statement)
    condition = [reference for reference in references if reference.start < action]
    rest = [reference for reference in references if reference not in condition]
    at_first = next((reference for reference in rest if reference.start == action), None)
    target = component_puts.target_of(unit, statement, at_first) if at_first else None
    put = at_first if at_first and (target or _is_assigned(words, at_first)) else None
    inside = {id(other) for other in references if any(_within(other, outer) for outer in references)}
    before = [line for reference in condition for line in _get(unit, statement, reference, inside)]
    inner = [
        line for reference in rest if reference is not put
        for line in _get(unit, statement, reference, inside)
    ]  # fmt: skip
    behind: list[str] = []
    if put:
        if target:
            prepared, behind = component_puts.put(unit, statement, put, target)
        else:
            prepared, behind = _put(unit, statement, put)
        inner += prepared
    unit.generated.before(statement.number, *before)
    surround(unit, statement, action if rest else 0, inner, behind)


def _check_construct(statement: Statement, reference: Coindexed) -> None:
    words = statement.words
    construct = words[2].text if len(words) > 2 and words[1].text == ":" else words[0].text
    is_name = len(words) > 1 and words[1].text in ("=", "(", "%")
    if construct in _OPENING and (not is_name or construct in ("elseif", "select", "case", "where")):
        raise Refused(
            place_of(reference.words),
            f"a coarray of another image in {construct.upper()} is not supported yet; "
            "assign it to a variable before",
        )


def _within(inner: Coindexed, outer: Coindexed) -> bool:
    return outer.start < inner.start and inner.end <= outer.end


def _is_assigned(words: list[Word], reference: Coindexed) -> bool:
    return reference.end + 1 < len(words) and words[reference.end + 1].text == "="


def _get(unit: FortranUnit, statement: Statement, reference: Coindexed, inside: set[int]) -> list[str]:
    name, rank, lines = fetched(unit, statement, reference)
    if rank and id(reference) in inside:
        message = "a section of another image as a subscript is not supported; assign it to a variable before"
        raise Refused(place_of(reference.words), message)
    unit.generated.edit(statement.number, reference.words[0].start, reference.words[-1].end, name)
    return lines


def _put(unit: FortranUnit, statement: Statement, reference: Coindexed) -> tuple[list[str], list[str]]:
    name, rank, lines, call = sent(unit, statement, reference)
    whole = f"({','.join(':' * rank)})" if rank else ""
    unit.generated.edit(statement.number, reference.words[0].start, reference.words[-1].end, name + whole)
    return lines, [call]
