"""gmove: one assignment of sections of arrays, whoever owns what."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments, place_of
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.lowering import gmove as gmove_in_c


@dataclass(frozen=True)
class _Side:
    """One side of the assignment: `name`, "" for an expression, and C text of a section.

    `other` is what C is given of a local side.
    """

    name: str
    section: str
    array: DistributedArray | None
    other: str | None


def gmove(unit: FortranUnit, directive: d.Gmove) -> None:
    """Replace the assignment behind the directive by a call."""
    if directive.on:
        raise Refused(directive.on.name.place, "gmove has no clause on")
    statement = unit.statement_behind(directive)
    equal = _equal(statement) if statement else None
    if statement is None or equal is None:
        note = (statement.words[0].place, "this follows") if statement else None
        raise Refused(directive.place, "expected an assignment of arrays behind gmove", note)
    arguments = Arguments()
    sides = [
        _side(unit, statement, words, arguments, number)
        for number, words in enumerate((statement.words[:equal], statement.words[equal + 1 :]))
    ]
    target, source = sides
    if target.array is None and source.array is None:
        raise Refused(place_of(statement.words), "neither side of this gmove is a distributed array")
    if directive.mode == "in" and source.array is None:
        raise Refused(
            place_of(statement.words[equal + 1 :]), "expected a distributed array on the right of gmove in"
        )
    if directive.mode == "out" and target.array is None:
        raise Refused(
            place_of(statement.words[:equal]), "expected a distributed array on the left of gmove out"
        )
    unit.output.one_sided = unit.output.one_sided or directive.mode != "collective"
    others = [("any", side.other) for side in sides if side.other is not None]
    lines = []
    for number, side in enumerate(sides):
        taken = sum(earlier.other is not None for earlier in sides[:number])
        lines.append(f"const pwx_section side{number} = {side.section.replace('@', f'c{taken}')};")
    if directive.accelerator and unit.foreign_acc:
        message = "the clause acc of gmove is not supported with another OpenACC compiler; update the host"
        raise Refused(directive.place, message)
    named = [gmove_in_c.Side(side.name, side.array) for side in sides]
    lines.append(gmove_in_c.gmove_call(unit, directive, named, "&side0", "&side1"))
    call = Call(unit.name("gmove"), lines, arguments.texts, others)
    number = statement.number
    unit.generated.edit(number, 0, len(statement.logical.text), unit.generated.call(statement.scope, call))
    unit.moved.add(number)
    text = statement.logical.text
    unit.explain(directive, f"gmove: {text}")
    unit.communicates(directive, f"gmove {directive.mode}", gmove_in_c.transfer_of(directive, named))


def _equal(statement: Statement) -> int | None:
    depth = 0
    for number, word in enumerate(statement.words):
        if word.kind == "mark":
            depth += (word.text in ("(", "[")) - (word.text in (")", "]"))
        if word.text == "=" and depth == 0:
            return number if 0 < number < len(statement.words) - 1 else None
    return None


def _side(
    unit: FortranUnit, statement: Statement, words: list[Word], arguments: Arguments, number: int
) -> _Side:
    array, last = unit.array_named(words, 0, statement.scope)
    words = words[last:] if array else words
    whole = len(words) == 1 or (words[1].text == "(" and closing(words, 1) == len(words) - 1)
    if array is None or not whole:
        for at in range(len(words)):
            if array or unit.array_named(words, at, statement.scope)[0]:
                message = "expected an array or a section of one, without arithmetic and without components"
                raise Refused(place_of(words), message)
        if number == 0 and not (words[0].kind == "name" and whole):
            raise Refused(place_of(words), "expected an array or a section of one")
        name = words[0].text if words[0].kind == "name" and whole else ""
        return _Side(name, "pwx_f_section(@)", None, written(statement.logical, words))
    rank = len(array.dimensions)
    parts = split(words[2:-1], ",") if len(words) > 1 else [[] for _ in range(rank)]
    if len(parts) != rank:
        message = (
            f"'{array.name}' has {counted(rank, 'dimension')}, and {counted(len(parts), 'subscript')} here"
        )
        raise Refused(place_of(words), message)
    dims = [
        _dimension(statement, part, array, rank - 1 - at, arguments, whole=len(words) == 1)
        for at, part in enumerate(parts)
    ][::-1]
    return _Side(
        array.name,
        f"{{.array = {array.address}, .ndims = {rank}, .dim = {{{', '.join(dims)}}}}}",
        array,
        None,
    )


def _dimension(
    statement: Statement, part: list[Word], array: DistributedArray, dimension: int, arguments: Arguments,
    whole: bool,
) -> str:  # fmt: skip
    low = f"{array.symbol}__lb"
    bounds = split(part, ":")
    texts = [written(statement.logical, bound) for bound in bounds]
    if len(texts) == 1 and not whole:
        index = arguments.c_text(texts[0])
        return f"pwx_f_triplet({index}, {index}, 1, 1, {low}[{dimension}])"
    first = arguments.c_text(texts[0]) if texts[0] else f"{low}[{dimension}]"
    last = (
        arguments.c_text(texts[1])
        if len(texts) > 1 and texts[1]
        else f"pwx_f_last({array.address}, {low}, {dimension})"
    )
    step = arguments.c_text(texts[2]) if len(texts) > 2 and texts[2] else "1"
    return f"pwx_f_triplet({first}, {last}, {step}, 0, {low}[{dimension}])"
