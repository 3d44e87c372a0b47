"""Warns of mistakes that compile and give wrong results on several nodes.

These are: a loop over a distributed array that no directive distributes, a sum that stays each node's own,
and iterations that no node executes.
"""

from __future__ import annotations

from collections.abc import Container

from peerway_xacc.analysis import loop_nest, values
from peerway_xacc.analysis.mapped import AnnotatedStatement, Mapped
from peerway_xacc.analysis.mapping import DistributedArray, TemplateOf
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Use, used_in
from peerway_xacc.frontend.tokens import scan

_ADDS = ("+=", "-=", "*=", "|=", "&=", "^=")  # without ++: it often counts what one node has


def beyond_template(
    unit: Mapped, annotated: AnnotatedStatement, template: TemplateOf, localised: list[tuple[int, str, str]]
) -> None:
    """Warn of iterations that no node owns."""
    for dimension, index, added in localised:
        bound = template.bounds[dimension]
        offset = values.offset(unit, added)
        if bound is None or bound.first_value is None or bound.last_value is None or offset is None:
            continue
        for loop in loop_nest.with_index(unit, annotated.statement, index):
            ends = values.ends(unit, loop)
            if ends is None or ends[0] > ends[1]:
                continue
            first, last = ends[0] + offset, ends[1] + offset
            if first < bound.first_value or last > bound.last_value:
                unit.diagnostics.warn(
                    unit.text.place(loop.header.whole.start, loop.header.whole.end),
                    f"this loop goes over {first} to {last} of template '{template.name}', which has "
                    f"{bound.first_value} to {bound.last_value}: no node does the iterations beyond",
                    (template.place, f"'{template.name}' is declared here"),
                )


def forgotten_reductions(unit: Mapped, annotated: AnnotatedStatement, directive: d.Loop) -> None:
    """Warn of a local variable that a distributed loop adds to, if no reduction sums it over the nodes."""
    reduced = {operand.name.text for operand in directive.reduced}
    for other in unit.directives:
        if isinstance(other, d.Reduction):
            reduced |= {operand.name.text for operand in other.reduced}
    inside = Range(annotated.statement.start, annotated.statement.end)
    for use in used_in(annotated.function.uses, inside):
        variable = use.variable
        within = inside.start <= variable.declarator.start < inside.end
        if use.macro or within or variable.file_scope or variable.parameter or variable.name in reduced:
            continue
        if not use.written or not variable.scalar or variable.pointee is not None:
            continue
        if variable.name in loop_nest.indices_in(unit, annotated.statement) or not _adds(unit, use):
            continue
        if any(other.address for other in variable.uses) or _set_inside(unit, variable.uses, inside):
            continue
        unit.diagnostics.warn(
            unit.text.place(use.range.start, use.range.end),
            f"each node adds to its own '{variable.name}' in this distributed loop; for the total of all "
            f"nodes add reduction(+: {variable.name}) to the directive",
            (directive.place, "the loop is distributed here"),
        )
        reduced.add(variable.name)


def _adds(unit: Mapped, use: Use) -> bool:
    text = unit.text.text
    behind = scan(text, use.range.end, min(len(text), use.range.end + 40))
    return bool(behind) and behind[0].text in _ADDS


def _set_inside(unit: Mapped, uses: list[Use], inside: Range) -> bool:
    """Does the loop assign a new value to a variable, so that it is a temporary of each iteration?"""
    return any(use.written and not _adds(unit, use) for use in used_in(uses, inside))


def plain_loop(
    unit: Mapped,
    array: DistributedArray,
    use: Use,
    dimension: int,
    inside: Range,
    distributed: Container[int],
) -> None:
    """Warn of a loop over all of a distributed dimension that no directive distributes.

    `distributed` has the offsets of the loops that directives distribute.
    """
    index = unit.text.text[inside.start : inside.end].strip()
    assert array.variable is not None
    size = array.variable.sizes[dimension]
    if unit.diagnostics or use.macro or not index.isidentifier() or size is None:
        return  # after an error, the loop's directive may have been dropped
    for statement in reversed(unit.syntax.around(unit.file, use.range.start)):
        if statement.kind != "for" or statement.start in distributed:
            continue
        try:
            loop = loop_nest.read(unit, statement)
        except Refused:
            continue
        if loop.header.index != index:
            continue
        ends = values.ends(unit, loop)
        guarded = {"if", "?"} & {span.text for span in scan(unit.text.text, loop.body.start, use.range.start)}
        in_task = any(
            isinstance(directive, d.Task)
            and (of := unit.syntax.statement_after(unit.file, directive.end, use.function)) is not None
            and of.start <= use.range.start < of.end
            for directive in unit.directives
            if directive.file == unit.file and directive.end < use.range.start
        )
        if ends and ends[1] - ends[0] + 3 >= size > 2 and not guarded and not in_task:
            unit.diagnostics.warn(
                unit.text.place(loop.header.whole.start, loop.header.whole.end),
                f"this loop goes over all of '{array.name}', of which a node has only a part in memory; "
                "distribute it by '#pragma xmp loop'",
                (array.place, f"'{array.name}' is distributed here"),
            )
        return


def other_dimension(unit: Mapped, array: DistributedArray, dimension: int, inside: Range) -> None:
    """Warn of a subscript whose index runs along another dimension of the template."""
    assert array.template is not None
    text = unit.text.text[inside.start : inside.end].strip()
    unit.diagnostics.warn(
        unit.text.place(inside.start, inside.end),
        f"the loop over this index of '{array.name}[{text}]' goes over another dimension of template "
        f"'{array.template.name}' than dimension {dimension} of '{array.name}' lies along: only some nodes "
        "have such elements, and the program ends on the others; align the array, or distribute the loop, "
        "otherwise",
        (array.place, f"'{array.name}' is aligned here"),
    )
