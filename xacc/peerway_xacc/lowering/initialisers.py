"""Refuses initialisers with the address of a distributed array, which has none before main."""

from __future__ import annotations

import re
from collections.abc import Iterator

from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import Span, scan
from peerway_xacc.lowering.unit import Unit

_PREPROCESSOR = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_MEMBER = (".", "->")


def check(unit: Unit) -> None:
    """Record an error for each distributed array in the initialiser of a variable at file scope."""
    arrays = {
        array.name: array
        for array in unit.scopes.arrays()
        if array.function is None and array.variable is not None and array.variable.pointee is None
    }
    if not arrays:
        return
    for before, span in _initialisers(unit):
        array = arrays.get(span.text)
        if array is None or before in _MEMBER:
            continue
        place = unit.text.place(span.start, span.end)
        message = (
            f"distributed array '{span.text}' is used outside of functions, but has no address before main"
        )
        unit.diagnostics.add(Refused(place, message, (array.place, "it is aligned here")))


def _initialisers(unit: Unit) -> Iterator[tuple[str, Span]]:
    """The names after '=' in each declarator outside functions, each with the text of the token before it."""
    text = _PREPROCESSOR.sub(lambda line: " " * len(line[0]), unit.text.text)
    bodies = sorted(
        (function.whole.start, function.whole.end)
        for function in unit.syntax.functions
        if function.file == unit.file
    )
    start = 0
    for begin, end in [*bodies, (len(text), len(text))]:
        within, before, depth = False, "", 0
        for span in scan(text, start, max(start, begin)):
            if within and span.kind == "name":
                yield before, span
            depth += (span.text in "([{") - (span.text in ")]}")
            ends = span.text == ";" or (span.text == "," and depth == 0)
            within = (within or span.text == "=") and not ends
            before = span.text
        start = max(start, end)
