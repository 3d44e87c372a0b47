"""Replaces the declaration of an array by that of a pointer to this node's memory."""

from __future__ import annotations

from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.unit import Unit


def become_pointer(unit: Unit, variable: Variable, name: str, storage: str) -> None:
    """Replace an array by a pointer to its elements: `int a[9], b;` becomes `int *name, b;`.

    In `row a, b;` the type itself has dimensions, so the pointer is declared after that declaration.
    """
    start, end = variable.declarator.start, variable.declarator.end
    text = unit.text.text
    opened = sum((span.text == ")") - (span.text == "(") for span in scan(text, start, end))
    while opened > 0:  # `(a)[9]`: remove the brackets around the name, too
        start = text.rindex("(", 0, start)
        opened -= 1
    if not variable.of_array_type:
        unit.output.edits.replace(start, end, f"*{name}")
        return
    typed = f"{name}__type"
    unit.output.edits.replace(start, end, f"*{typed}")
    element = f"__typeof__((*{typed}){'[0]' * variable.dimensions_of_type})"
    unit.output.edits.behind(_end(unit, end), f" {storage}{element} *{name};")


def _end(unit: Unit, start: int) -> int:
    """The offset after the semicolon of the declaration that contains an offset."""
    depth = 0
    for span in scan(unit.text.text, start):
        depth += (span.text in "([{") - (span.text in ")]}")
        if span.text == ";" and depth == 0:
            return span.end
    raise AssertionError("libclang has read it as a declaration")
