"""Evaluates what is constant at compile time: expressions with macros, and the ends of loops."""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.tokens import scan

_MACROS = 100  # the most macros expanded in one expression, since a macro may name itself


def value(unit: Parsed, text: str) -> int | None:
    """The value of an expression of numbers, macros and enum constants; None if it is not constant."""
    tokens: list[str] = []
    waiting = [span.text for span in scan(text)]
    replaced = 0
    while waiting:
        word = waiting.pop(0)
        inner = macro(unit, word)
        if word in unit.syntax.constants:
            tokens += ["(", "0", "+", *_signed(unit.syntax.constants[word]), ")"]
        elif inner is not None and replaced < _MACROS:
            replaced += 1
            waiting = [*(span.text for span in scan(inner)), *waiting]
        else:
            tokens.append(word)
    return value_of(tokens)


def macro(unit: Parsed, name: str) -> str | None:
    """The text of a macro without parameters, or None."""
    define = unit.texts.defines.get(name, "").split(None, 2)
    return define[2] if len(define) == 3 and define[1] == name else None


def _signed(number: int) -> list[str]:
    return [str(number)] if number >= 0 else ["-", str(-number)]


def offset(unit: Parsed, text: str) -> int | None:
    """The value of an offset that is added to an index: "1", "- 1"."""
    return value(unit, f"0 {text}" if text[:1] in ("+", "-") else text)


def ends(unit: Parsed, loop: For) -> tuple[int, int] | None:
    """Bounds of the values of a loop's index, both included; None unless first and last are constant.

    With a step other than 1 the loop may not reach the bound at its end.
    """
    head = loop.header
    first, last = (value(unit, unit.text.text[part.start : part.end]) for part in (head.first, head.last))
    if first is None or last is None:
        return None
    if head.down:
        return last + (head.relation in (">", "!=")), first
    return first, last - (head.relation in ("<", "!="))
