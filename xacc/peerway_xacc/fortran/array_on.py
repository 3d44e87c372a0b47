"""`array on t`: an assignment of sections, of which each node does those elements that it owns.

Every section of the statement is cut alike: by how many elements it begins later and ends earlier than it is
written, dimension by dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.mapping import DistributedArray, TemplateOf
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Subscript
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.lowering.c_text import referred
from peerway_xacc.lowering.loops import text_of


@dataclass
class _Reference:
    """An array in the statement: its words, and the parts between its parentheses (None: it is whole)."""

    first: Word
    name: Word  # the last word of its name, which is the component if it is one
    end: int  # the number of its last word
    parts: list[list[Word]] | None
    array: DistributedArray | None
    rank: int


def array_on(unit: FortranUnit, directive: d.ArrayOn) -> None:
    """Cut the sections of the assignment behind the directive."""
    assert directive.on is not None
    statement = unit.statement_behind(directive)
    references = _references(unit, statement) if statement else []
    if (
        statement is None
        or not references
        or references[0].array is None
        or references[0].first is not statement.words[0]
    ):
        note = (statement.words[0].place, "this follows") if statement else None
        raise Refused(directive.place, "expected an assignment to a distributed array behind array", note)
    mapping = referred(unit, directive.on, directive)
    if not isinstance(mapping, TemplateOf):
        raise Refused(directive.on.name.place, f"'{mapping.name}' is a node array; array on needs a template")
    target = references[0]
    assert target.array is not None
    if target.array.template is not mapping and len(
        target.array.template.bounds if target.array.template else ()
    ) != len(mapping.bounds):
        raise Refused(directive.on.name.place, f"'{target.array.name}' is aligned with another template")
    arguments = unit.reads[id(directive)].arguments
    variable = f"pwx_s{directive.place.line}_{unit.number_of(directive)}"
    subscripts = directive.on.subscripts or tuple(Subscript(directive.on.name.place) for _ in mapping.bounds)
    lines, cuts, size = _cuts(statement, target, mapping, subscripts, arguments)
    conditions = [
        f"pwx_owns({mapping.address}, {number}, {subscript.index.text})"
        for number, subscript in enumerate(subscripts) if subscript.index is not None
    ]  # fmt: skip
    for reference in references:
        size = _rewrite(unit, statement, reference, cuts, variable, lines, size)
    if conditions:
        size += 1
        lines.append(f"c0[{size - 1}] = {' && '.join(conditions)};")
    call = call_of(unit, "array", lines or ["(void)c0;"], arguments, directive)
    call.others.insert(0, ("numbers", variable))
    scope = unit.scope_of(directive)
    unit.generated.declare(scope, f"integer(8) :: {variable}({max(size, 1)})")
    before = [unit.generated.call(scope, call)]
    if conditions:
        before.append(f"if ({variable}({size}) /= 0) then")
        unit.generated.behind(statement.number, "end if")
    unit.generated.before(unit.number_of(directive), *before)
    unit.moved.add(statement.number)
    unit.explain(directive, f"array on {text_of(directive.on)}: each node assigns what it owns")


def _references(unit: FortranUnit, statement: Statement | None) -> list[_Reference]:
    """The arrays of a statement, those within subscripts left out."""
    references: list[_Reference] = []
    assert statement is not None
    words, at = statement.words, 0
    while at < len(words):
        word = words[at]
        component = at > 0 and words[at - 1].text == "%"
        declared = (
            unit.fortran.entity(word.text, statement.scope) if word.kind == "name" and not component else None
        )
        rank = len(declared[1].dimensions or ()) if declared else 0
        array, last = unit.array_named(words, at, statement.scope)
        if array:
            rank, at = len(array.dimensions), last
        if not declared or not rank:
            at += 1
            continue
        end, parts = at, None
        if at + 1 < len(words) and words[at + 1].text == "(":
            end = closing(words, at + 1)
            parts = split(words[at + 2 : end], ",")
        references.append(_Reference(word, words[last], end, parts, array, rank))
        at = end + 1
    return references


def _sections(reference: _Reference) -> list[int]:
    """The dimensions, in Fortran's order, in which a reference is a section."""
    if reference.parts is None:
        return list(range(reference.rank))
    return [number for number, part in enumerate(reference.parts) if len(split(part, ":")) > 1]


def _cuts(
    statement: Statement, target: _Reference, mapping: TemplateOf,
    subscripts: tuple[Subscript, ...], arguments: Arguments,
) -> tuple[list[str], list[int | None], int]:  # fmt: skip
    """C that computes by how much sections are cut; for each of them the place of that in the numbers, None
    for one that stays whole; and how many numbers there are.
    """
    array = target.array
    assert array is not None
    lines: list[str] = []
    cuts: list[int | None] = []
    size = 0
    rank = target.rank
    for number in _sections(target):
        dimension = rank - 1 - number
        aligned = array.dimensions[dimension]
        if aligned is None or mapping.kind_of(aligned[0]) == "*":
            cuts.append(None)
            continue
        if mapping.kind_of(aligned[0]) == "cyclic":
            raise Refused(
                target.name.place,
                f"'{array.name}' is cyclic; array on is not possible there yet, write a loop",
            )
        on = subscripts[aligned[0]]
        low = f"{array.symbol}__lb"
        if on.first is not None or on.last is not None:
            first = on.first.text if on.first else f"{mapping.descriptor}.dim[{aligned[0]}].first"
            last = on.last or f"{mapping.descriptor}.dim[{aligned[0]}].last"
            if on.step is not None and on.step.value != 1:
                raise Refused(on.place, "a step in the on clause of array is not supported yet")
        else:
            bounds = (
                [written(statement.logical, part) for part in split(target.parts[number], ":")]
                if target.parts
                else ["", ""]
            )
            if len(bounds) > 2 and bounds[2] != "1":
                raise Refused(
                    target.name.place, "a section with a step needs its range in the on clause of array"
                )
            shift = f"{array.descriptor}.dim[{dimension}].offset - {low}[{dimension}]"
            first = f"({arguments.c_text(bounds[0]) if bounds[0] else f'{low}[{dimension}]'}) + {shift}"
            end = (
                arguments.c_text(bounds[1])
                if bounds[1]
                else f"pwx_f_last({array.address}, {low}, {dimension})"
            )
            last = f"({end}) + {shift}"
        lines.append(
            f"{{ const pwx_span s = pwx_local_span(pwx_owned({mapping.address}, {aligned[0]}, 0), {first}, "
            f"{last}); "
            f"c0[{size}] = s.first - ({first}); c0[{size + 1}] = s.last - ({first}); }}"
        )
        cuts.append(size)
        size += 2
    return lines, cuts, size


def _rewrite(
    unit: FortranUnit, statement: Statement, reference: _Reference, cuts: list[int | None], variable: str,
    lines: list[str], size: int,
) -> int:  # fmt: skip
    """Cut the sections of a reference; gives how many numbers there are now."""
    sections = _sections(reference)
    if not sections:
        return size
    words = statement.words
    if len(sections) != len(cuts):
        message = f"this has {counted(len(sections), 'dimension')}, and the left side {len(cuts)}"
        raise Refused(reference.name.place, message)
    texts = (
        [written(statement.logical, part) for part in reference.parts]
        if reference.parts
        else [":"] * reference.rank
    )
    for number, cut in zip(sections, cuts, strict=True):
        if cut is None and reference.array is None:
            continue
        bounds = [part.strip() for part in _bounds_of(statement, reference, number)]
        if reference.array is not None and not (bounds[0] and bounds[1]):
            dimension = reference.rank - 1 - number
            low = f"{reference.array.symbol}__lb"
            lines.append(
                f"c0[{size}] = {low}[{dimension}]; c0[{size + 1}] = "
                f"pwx_f_last({reference.array.address}, {low}, {dimension});"
            )
            first, last = bounds[0] or f"{variable}({size + 1})", bounds[1] or f"{variable}({size + 2})"
            size += 2
        else:
            first = bounds[0] or f"lbound({reference.name.text}, {number + 1})"
            last = bounds[1] or f"ubound({reference.name.text}, {number + 1})"
        step = bounds[2] if len(bounds) > 2 else ""
        if cut is None:
            texts[number] = f"{first}:{last}" + (f":{step}" if step else "")
            continue
        times = f"*({step})" if step else ""
        texts[number] = f"{first} + {variable}({cut + 1}){times}:{first} + {variable}({cut + 2}){times}" + (
            f":{step}" if step else ""
        )
    end = words[reference.end].end
    unit.generated.edit(statement.number, reference.name.end, end, f"({', '.join(texts)})")
    return size


def _bounds_of(statement: Statement, reference: _Reference, number: int) -> list[str]:
    if reference.parts is None:
        return ["", ""]
    return [written(statement.logical, part) for part in split(reference.parts[number], ":")]
