"""Rewrites the declaration of a distributed array as a pointer to the part that this node holds."""

from __future__ import annotations

from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.unit import Unit


def become_pointer(unit: Unit, variable: Variable, name: str, storage: str) -> None:
    """Replace the declarator of an array by a pointer: `int a[9], b;` becomes `int *name, b;`.

    Where a typedef holds the dimensions (`typedef int row[9]; row a, b;`), `row *name__type, b;` declares a
    pointer to the whole type, and a second declaration behind it the pointer to its elements.
    """
    start, end = variable.declarator.start, variable.declarator.end
    text = unit.text.text
    opened = sum((span.text == ")") - (span.text == "(") for span in scan(text, start, end))
    while opened > 0:  # `int (a)[9]`: also replace the brackets around the name
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
    """Return the offset just behind the semicolon that ends the declaration around `start`."""
    depth = 0
    for span in scan(unit.text.text, start):
        depth += (span.text in "([{") - (span.text in ")]}")
        if span.text == ";" and depth == 0:
            return span.end
    raise AssertionError("libclang parsed a declaration here, so it has a semicolon")
