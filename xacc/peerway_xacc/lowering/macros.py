"""Expands uses of macros, and files included in functions, whose text names a distributed array.

The subscripts of such a use are in the macro's text, where an edit would change all its uses. So we translate
a text that has the expansion in place of the use, on the same line.
"""

from __future__ import annotations

import re
from pathlib import Path

from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.preprocess import run
from peerway_xacc.frontend.tokens import Text, quoted, spans
from peerway_xacc.lowering.subscripts import hidden
from peerway_xacc.lowering.unit import Unit

_OPEN, _CLOSE = "pwx_expanded_from_", "pwx_expanded_to_"
_PRAGMA = re.compile(r"^#[ \t]*pragma[ \t]+(.*)$", re.MULTILINE)


def expanded(unit: Unit, preprocessor: list[str]) -> str | None:
    """The text of the file with these uses expanded, or None if there are none."""
    starts = sorted({
        use.expanded_at
        for function in unit.syntax.functions
        for use in function.uses
        if (array := unit.scopes.of_variable(use.variable)) and hidden(unit, array, use)
    })  # fmt: skip
    uses: list[tuple[int, int]] = []
    for start in starts:
        if not uses or start >= uses[-1][1]:
            uses.append((start, _end(unit.text, start)))
    if not uses:
        return None
    marked = Edits(unit.text)
    for number, (start, end) in enumerate(uses):
        blank = "\n" if unit.text.text[start] == "#" else " "  # an #include needs a line of its own
        marked.before(start, f"{blank}{_OPEN}{number}{blank}")
        marked.behind(end, f"{blank}{_CLOSE}{number}{blank}")
    folder = str(Path(unit.file).parent)
    text = f"#line 1 {quoted(unit.file)}\n{marked.text()}"
    output = run([*preprocessor, "-w", "-E", "-P", "-iquote", folder, "-xc", "-"], text)
    edits = Edits(unit.text)
    for number, (start, end) in enumerate(uses):
        begin = re.search(rf"\b{_OPEN}{number}\b", output)
        finish = re.search(rf"\b{_CLOSE}{number}\b", output)
        if begin is None or finish is None:
            continue  # an enclosing macro drops it
        inside = _PRAGMA.sub(
            lambda match: f" _Pragma({quoted(match[1])}) ", output[begin.end() : finish.start()]
        )
        newlines = "\n" * unit.text.text.count("\n", start, end)
        edits.replace(start, end, " ".join(inside.split("\n")).strip() + newlines)
    return edits.text()


def _end(text: Text, start: int) -> int:
    """The end of a macro's use: after its name or arguments; for an included file, the end of the line."""
    end = start
    depth = 0
    if text.text[start] == "#":
        return text.logical_end(start)
    for number, span in enumerate(spans(text.text, start)):
        if number == 1 and span.text != "(":
            break
        depth += (span.text == "(") - (span.text == ")")
        end = span.end
        if number and depth == 0:
            break
    return end
