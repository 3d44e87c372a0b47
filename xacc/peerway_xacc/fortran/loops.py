"""Loops of xmp: a DO goes over what its node owns."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import NodeArray, TemplateOf
from peerway_xacc.fortran import widening
from peerway_xacc.fortran.do_loops import Do, check_jumps, nest, read_do
from peerway_xacc.fortran.grammar import Arguments, FortranExpr, place_of
from peerway_xacc.fortran.loop_bounds import (
    NUMBERS_OF_CYCLE,
    NUMBERS_OF_SPAN,
    bound,
    cycle_lines,
    deal,
    not_for_threads,
)
from peerway_xacc.fortran.loop_reductions import reductions
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Expr, Subscript
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering.c_text import referred, where
from peerway_xacc.lowering.loops import text_of


def loop(unit: FortranUnit, directive: d.Loop) -> None:
    """Each loop of the directive goes over what its node owns."""
    assert directive.on is not None
    arguments = unit.reads[id(directive)].arguments
    statement = unit.statement_behind(directive)
    outer = read_do(unit, statement) if statement else None
    if outer is None:
        note = (statement.words[0].place, "this follows") if statement else None
        raise Refused(directive.place, "expected a DO with an index behind this directive", note)
    if directive.on.subscripts is None:
        name = directive.on.name
        raise Refused(name.place, f"the on clause of a loop needs subscripts, as in {name.text}(i)")
    mapping = referred(unit, directive.on, directive)
    loops = nest(unit, outer)
    localised, conditions = _matched(unit, directive, loops)
    scope = unit.scope_of(directive)
    variable = f"pwx_s{directive.place.line}_{unit.number_of(directive)}"
    widened = widening.read(unit, directive, variable)
    lines, size = widened.opening(directive) if widened else [], 0
    if isinstance(mapping, TemplateOf) and mapping.opened:
        lines.append(f"pwx_need_template({mapping.address}, {where(directive)});")
    for dimension, index, offset in localised:
        same = [do for do in loops if do.index.text == index]
        for do in same:
            check_jumps(unit, do)
        if widened:
            widening.check(widened, mapping, dimension, same, {index for _, index, _ in localised})
        if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
            not_for_threads(unit, directive, outer)
            lines += cycle_lines(mapping, dimension, offset, size)
            for do in same:
                deal(unit, scope, do, variable, size)
            size += NUMBERS_OF_CYCLE
        else:
            call = "pwx_owned_node" if isinstance(mapping, NodeArray) else "pwx_owned"
            span = f"{call}({mapping.address}, {dimension}, {offset})"
            if widened:
                lines += widened.numbers(dimension, index, span, same, size)
            else:
                lines.append(
                    f"{{ const pwx_span s = {span}; c0[{size}] = s.first; c0[{size + 1}] = s.last; }}"
                )
            for do in same:
                bound(unit, scope, do, variable, size, exact=widened is not None)
            size += widened.size if widened else NUMBERS_OF_SPAN
    if widened:
        widening.guard(unit, widened, loops)
    if conditions:
        lines.append(f"c0[{size}] = {' && '.join(conditions)};")
    twice = widened.turn if widened and widened.executes_twice else ""
    numbers = (variable, size + bool(conditions))
    _emit(unit, directive, outer, numbers, lines, bool(conditions), arguments, twice)
    bounds = ", ".join(f"{index} over what this node owns" for _, index, _ in localised)
    unit.explain(directive, f"loop on {text_of(directive.on)}: {bounds or 'every iteration on each node'}")


def _emit(
    unit: FortranUnit, directive: d.Loop, outer: Do, numbers: tuple[str, int], lines: list[str],
    guarded: bool, arguments: Arguments, twice: str,
) -> None:  # fmt: skip
    """Write the calls before and behind a loop; one that is executed twice is in a loop over `twice`."""
    scope = unit.scope_of(directive)
    variable, size = numbers
    opened, closed = reductions(unit, directive, arguments)
    before = list(opened)
    if twice:
        unit.generated.declare(scope, f"integer(8) :: {twice}")
        before.append(f"do {twice} = 0, 1")
    if lines and size:
        call = call_of(unit, "loop", lines, arguments, directive)
        call.others.insert(0, ("numbers", variable))
        unit.generated.declare(scope, f"integer(8) :: {variable}({size})")
        before.append(unit.generated.call(scope, call))
    behind = ["end do", *closed] if twice else list(closed)
    if guarded:
        before.append(f"if ({variable}({size}) /= 0) then")
        behind.insert(0, "end if")
    number = unit.number_of(directive)
    unit.generated.before(number, *before)
    unit.generated.behind(_end_with_directives(unit, number, outer), *behind)


def _end_with_directives(unit: FortranUnit, number: int, outer: Do) -> int:
    """The line that ends a loop, or behind it that of a directive of OpenMP or OpenACC that ends one which
    begins between the loop and the directive on line `number`.
    """
    logicals, end = unit.structure.logicals, outer.end
    begun = [
        (line.model, " ".join(line.text.lower().split()))
        for line in logicals[number + 1 : outer.statement.number]
    ]
    while end + 1 < len(logicals) and logicals[end + 1].model in ("omp", "acc"):
        words = logicals[end + 1].text.lower().split()
        ended = " ".join(words)[3:].strip()
        if not words or not words[0].startswith("end"):
            break
        if not any(model == logicals[end + 1].model and text.startswith(ended) for model, text in begun):
            break
        end += 1
    return end


def _matched(
    unit: FortranUnit, directive: d.Loop, loops: list[Do]
) -> tuple[list[tuple[int, str, str]], list[str]]:
    """The dimensions of the mapping with the index and the offset of the loop over each; and the conditions
    for subscripts that no loop is over.
    """
    assert directive.on is not None
    mapping = referred(unit, directive.on, directive)
    indices = {do.index.text for do in loops}
    names = {name.text for name in directive.indices} or indices
    localised: list[tuple[int, str, str]] = []
    conditions: list[str] = []
    used: set[str] = set()
    for dimension, subscript in enumerate(directive.on.subscripts or ()):
        if subscript.star or subscript.whole:
            continue
        if subscript.index is None:
            raise Refused(subscript.place, "a range in the on clause of a loop is not supported yet")
        named = sorted(subscript.index.names() & names)
        if not named:
            conditions.append(_one_place(mapping, dimension, subscript.index))
            continue
        if len(named) > 1 or named[0] in used:
            message = f"'{_fortran(subscript.index)}' must name one index of the loop, each once"
            raise Refused(subscript.place, message)
        if named[0] not in indices:
            note = (place_of(loops[0].statement.words), "this follows")
            raise Refused(directive.place, f"there is no loop over '{named[0]}' behind this directive", note)
        used.add(named[0])
        localised.append((dimension, named[0], _offset(subscript, named[0])))
    for name in directive.indices:
        if name.text not in used:
            raise Refused(name.place, f"index '{name.text}' of the loop is not in the on clause")
    return localised, conditions


def _fortran(expr: Expr) -> str:
    return expr.fortran if isinstance(expr, FortranExpr) else expr.text


def _offset(subscript: Subscript, index: str) -> str:
    expr = subscript.index
    assert isinstance(expr, FortranExpr)
    texts = [token.text for token in expr.tokens]
    if texts == [index]:
        return "0"
    if texts[0] == index and texts[1] in ("+", "-") and index not in texts[1:]:
        return expr.behind(1).text
    if texts[-2:] == ["+", index] and index not in texts[:-2]:
        return FortranExpr(expr.tokens[:-2], expr.logical, expr.arguments).text
    raise Refused(subscript.place, f"expected '{index}', plus or minus an offset, found '{expr.fortran}'")


def _one_place(mapping: NodeArray | TemplateOf, dimension: int, index: Expr) -> str:
    if isinstance(mapping, NodeArray):
        return f"pwx_is_node({mapping.address}, {dimension}, {index.text})"
    return f"pwx_owns({mapping.address}, {dimension}, {index.text})"
