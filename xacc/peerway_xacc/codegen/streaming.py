"""Marks streaming loads: of elements that a row reads once, so that gathered elements stay in the caches.

In a product of a sparse matrix and a vector, `sum += element[e] * x[column[e]]`, each row reads other
elements of the matrix, and many rows gather the same elements of the vector.
"""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Use, used_in
from peerway_xacc.frontend.tokens import scan, spans
from peerway_xacc.lowering.unit import Unit

# The types for which GPUs have streaming loads.
_TYPES = (
    "int", "unsigned int", "long", "unsigned long", "long long", "unsigned long long", "float", "double",
)  # fmt: skip


def mark_streaming_loads(
    unit: Unit, annotated: AnnotatedStatement, edits: Edits, body: Range, loop: For
) -> None:
    """Mark what an inner loop reads once. `body` is the body of the loop around it."""
    uses = [use for use in used_in(annotated.function.uses, loop.body) if use.subscripts]
    gathered = {id(use.variable) for use in uses if _is_gathered(annotated, use, loop)}
    if not gathered or not _starts_vary_by_row(annotated, body, loop):
        return
    of_kernel = used_in(annotated.function.uses, Range(annotated.statement.start, annotated.statement.end))
    changed = {id(use.variable) for use in of_kernel if use.written or use.address or use.aliased}
    for use in uses:
        if id(use.variable) in gathered | changed or not _is_in_memory_of_gpu(annotated, use):
            continue
        end = _end_of_element(unit, use)
        if end is not None and _words(unit, use.subscripts[-1]) == [loop.header.index]:
            edits.before(use.range.start, "pwx_read_once(")
            edits.behind(end, ")")


def _words(unit: Unit, inside: Range) -> list[str]:
    return [span.text for span in scan(unit.text.text, inside.start, inside.end)]


def _is_gathered(annotated: AnnotatedStatement, use: Use, loop: For) -> bool:
    """Does a subscript depend on an element, or on a variable that the loop's body computes?"""
    return any(
        other.subscripts or loop.body.start <= other.variable.declarator.start < loop.body.end
        for subscript in use.subscripts for other in used_in(annotated.function.uses, subscript)
    )  # fmt: skip


def _starts_vary_by_row(annotated: AnnotatedStatement, body: Range, loop: For) -> bool:
    """Does each iteration of the loop around start elsewhere, so that it reads other elements?"""
    return any(
        use.subscripts or body.start <= use.variable.declarator.start < body.end
        for use in used_in(annotated.function.uses, loop.header.first)
    )


def _is_in_memory_of_gpu(annotated: AnnotatedStatement, use: Use) -> bool:
    """Is it an element of an array that threads share, and neither a thread's own nor a constant?"""
    variable, statement = use.variable, annotated.statement
    own = not variable.file_scope and statement.start <= variable.declarator.start < statement.end
    constant = variable.constant and not variable.pointer
    plain = not use.macro and not use.in_sizeof and variable.element in _TYPES
    return plain and not own and not constant


def _end_of_element(unit: Unit, use: Use) -> int | None:
    """Where `name[…]…[…]` ends; None if it is written in another way, such as `(name)[…]`."""
    at = use.range.end
    for subscript in use.subscripts:
        behind = next(iter(spans(unit.text.text, subscript.end, len(unit.text.text))), None)
        if _words(unit, Range(at, subscript.start)) != ["["] or behind is None or behind.text != "]":
            return None
        at = behind.end
    return at
