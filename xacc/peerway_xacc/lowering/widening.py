"""Lowers the clauses expand, margin and peel_and_wait of loop: more or fewer iterations than a node owns.

expand changes the bounds. margin executes only the iterations that expand adds or removes: the loop covers
both ranges, and its body is executed in exactly one of them. peel_and_wait first executes the expanded loop,
then waits, then executes the margin.
"""

from __future__ import annotations

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.analysis.mapping import TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import names_in
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Guard, Unit


def prepare(unit: Unit, annotated: AnnotatedStatement, directive: d.Loop, mapping: object) -> None:
    """Check the clause, and record the loops that may leave their bounds."""
    widening = directive.widening
    if widening is None:
        return
    assert directive.on is not None
    subscripts = directive.on.subscripts or ()
    if len(widening.widths) != len(subscripts):
        raise Refused(
            widening.place,
            f"{counted(len(widening.widths), 'width')} of {widening.kind} for "
            f"{counted(len(subscripts), 'dimension')}",
        )
    for dimension, subscript in enumerate(subscripts):
        if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
            raise Refused(subscript.place, f"{widening.kind} of a cyclic dimension is not possible")
        if subscript.index is None:
            continue
        for name in subscript.index.names():
            loops = loop_nest.with_index(unit, annotated.statement, name)
            if _width(directive, dimension).unbound and loops:
                unit.loops.unbound.add(loops[0].statement.start)


def beyond_owned(directive: d.Loop, dimension: int) -> tuple[int | None, int | None]:
    """The iterations beyond those it owns that a node executes, below and above; None if not constant."""
    if directive.widening is None:
        return 0, 0
    width = _width(directive, dimension)
    values = (expr.value if expr else None for expr in (width.lower, width.upper))
    lower, upper = (None if value is None else max(0, value) for value in values)
    return lower, upper


def _width(directive: d.Loop, dimension: int) -> clauses.Width:
    """The width of a dimension. Widths follow the on clause, which is in C's order with square brackets."""
    assert directive.widening is not None
    assert directive.on is not None
    widths = directive.widening.widths[::-1] if directive.on.square else directive.widening.widths
    return widths[dimension]


def spans(
    unit: Unit,
    annotated: AnnotatedStatement,
    directive: d.Loop,
    localised: list[tuple[int, str, str]],
    opened: list[str],
) -> tuple[list[str], str]:
    """Shorten each loop to the part that a node executes.

    Returns the lines for that, and the beginning of a loop over both passes (empty but for peel_and_wait).
    """
    widening = directive.widening
    if widening is None:
        return opened, ""
    indices = [index for _, index, _ in localised]
    lines = [line.replace("__s = ", "__w = ", 1) for line in opened]
    chosen = []
    for dimension, index, _ in localised:
        first, last = _bounds(unit, annotated, directive, index, indices)
        width = _width(directive, dimension)
        assert width.lower is not None
        assert width.upper is not None
        lines += [
            f"const pwx_span {index}__o = pwx_local_span({index}__w, {first}, {last});",
            f"const pwx_span {index}__e = pwx_expanded({index}__o, {width.lower.text}, {width.upper.text}, "
            f"{int(width.unbound)}, {first}, {last});",
        ]
        both = f"pwx_hull({index}__o, {index}__e)"
        value = {"expand": f"{index}__e", "margin": both}.get(widening.kind, f"pass__q ? {both} : {index}__e")
        chosen.append(f"const pwx_span {index}__s = {value};")
    if widening.kind != "expand":
        _guard(unit, annotated, directive, indices)
    if widening.kind != "peel_and_wait":
        return lines + chosen, ""
    assert widening.number is not None
    wait = f"if (pass__q) pwx_wait_async({widening.number.text}, {where(directive)});"
    return lines, f"for (int pass__q = 0; pass__q < 2; pass__q++) {{ {wait} {' '.join(chosen)}"


def _bounds(
    unit: Unit, annotated: AnnotatedStatement, directive: d.Loop, index: str, indices: list[str]
) -> tuple[str, str]:
    """The first and last value of the whole loop, both included, upwards."""
    loops = loop_nest.with_index(unit, annotated.statement, index)
    assert directive.widening is not None
    if len(loops) != 1:
        raise Refused(directive.widening.place, f"{directive.widening.kind} needs one loop over '{index}'")
    head = loops[0].header
    text = unit.text.text
    first, last = (text[part.start : part.end] for part in (head.first, head.last))
    if names_in(f"{first} {last}") & set(indices):
        place = unit.text.place(head.whole.start, head.whole.end)
        raise Refused(
            place, f"the bounds of a loop with {directive.widening.kind} must not need other indices"
        )
    if head.down:
        return f"({last})" + (" + 1" if head.relation == ">" else ""), f"({first})"
    return f"({first})", f"({last})" + ("" if head.relation == "<=" else " - 1")


def _guard(unit: Unit, annotated: AnnotatedStatement, directive: d.Loop, indices: list[str]) -> None:
    """Let the innermost loop execute its body only in the margin."""
    assert directive.widening is not None
    loops = loop_nest.nested_directly(unit, annotated.statement, len(indices))
    inner: For = loops[-1]
    if {loop.header.index for loop in loops} != set(indices):
        raise Refused(
            directive.widening.place,
            f"{directive.widening.kind} needs loops that are nested directly, with no others between",
        )
    if unit.text.text[inner.body.start] == "#":
        raise Refused(
            directive.widening.place, f"{directive.widening.kind}: put the directives of the body in braces"
        )
    within = [" && ".join(f"pwx_is_in({index}__{which}, {index})" for index in indices) for which in "eo"]
    condition = f"({within[0]}) != ({within[1]})"
    given = [f"pwx_span {index}__{which}" for index in indices for which in "eo"]
    if directive.widening.kind == "peel_and_wait":
        condition = f"!pass__q || {condition}"
        given.append("int pass__q")
    unit.loops.guards.append(Guard(inner.statement.start, inner.body.start, f"if ({condition}) ", given))
    unit.output.edits.before(inner.body.start, f"if ({condition}) ")
