"""The declaration of an array in the program becomes that of a pointer to this node's memory."""

from __future__ import annotations

from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.unit import Unit


def become_pointer(unit: Unit, variable: Variable, name: str, storage: str) -> None:
    """Declare a pointer to elements in the place of an array: `int a[9], b;` becomes `int *name, b;`.

    In `row a, b;` the type has dimensions, and the pointer comes behind the declaration.
    """
    start, end = variable.declarator.start, variable.declarator.end
    text = unit.text.text
    opened = sum((span.text == ")") - (span.text == "(") for span in scan(text, start, end))
    while opened > 0:  # `(a)[9]`: the brackets around the name go, too
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
    """Behind the semicolon of the declaration that a place is in."""
    depth = 0
    for span in scan(unit.text.text, start):
        depth += (span.text in "([{") - (span.text in ")]}")
        if span.text == ";" and depth == 0:
            return span.end
    raise AssertionError("libclang has read it as a declaration")
