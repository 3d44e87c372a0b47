"""Finds the elements that a kernel reads once, so that they leave the caches to those that it looks up.

In a product of a sparse matrix and a vector, `sum += element[e] * x[column[e]]`, each row reads other
elements of the matrix, and many rows read the same elements of the vector.
"""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Use, used_in
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.unit import Unit

_NUMBERS = (
    "int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "float", "double",
)  # fmt: skip


def mark(unit: Unit, annotated: AnnotatedStatement, edits: Edits, body: Range, loop: For) -> None:
    """Mark what an inner loop reads once. `body` is the body of the loop around it."""
    uses = [use for use in used_in(annotated.function.uses, loop.body) if use.subscripts]
    looked_up = {id(use.variable) for use in uses if _is_looked_up(annotated, use, loop)}
    if not looked_up or not _begins_elsewhere(annotated, body, loop):
        return
    of_kernel = used_in(annotated.function.uses, Range(annotated.statement.start, annotated.statement.end))
    changed = {id(use.variable) for use in of_kernel if use.written or use.address or use.aliased}
    for use in uses:
        excluded = id(use.variable) in looked_up | changed or use.variable.element not in _NUMBERS
        if excluded or use.macro or use.in_sizeof:
            continue
        if _text_of(unit, use.subscripts[-1]) == [loop.header.index]:
            edits.before(use.range.start, "pwx_read_once(")
            edits.behind(unit.text.text.index("]", use.subscripts[-1].end) + 1, ")")


def _text_of(unit: Unit, inside: Range) -> list[str]:
    return [span.text for span in scan(unit.text.text, inside.start, inside.end)]


def _is_looked_up(annotated: AnnotatedStatement, use: Use, loop: For) -> bool:
    """Does a subscript depend on an element, or on a variable that the loop's body computes?"""
    return any(
        other.subscripts or loop.body.start <= other.variable.declarator.start < loop.body.end
        for subscript in use.subscripts for other in used_in(annotated.function.uses, subscript)
    )  # fmt: skip


def _begins_elsewhere(annotated: AnnotatedStatement, body: Range, loop: For) -> bool:
    """Does each iteration of the loop around begin elsewhere, so that it reads other elements?"""
    return any(
        use.subscripts or body.start <= use.variable.declarator.start < body.end
        for use in used_in(annotated.function.uses, loop.header.first)
    )
