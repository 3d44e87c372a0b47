"""Finds `_Pragma("…")` in a text, written there or in a macro that consists only of directives."""

from __future__ import annotations

from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import Text, closing, scan

_OPERATOR = "_Pragma"
_LONGEST = 4000  # the most characters of an operator or of a macro call


def operators(text: Text, line: int, defines: dict[str, str]) -> list[Range]:
    """The ranges of the directives that come from the `_Pragma` operators of a line, in their order.

    If a macro stands for several directives, each gets a part of the macro's range, so that no two are at one
    place. An operator counts in the line of its string.
    """
    for first in range(line, max(0, line - 3), -1):
        if begun := _begun(text, first, line, defines):
            return begun
    return []


def _begun(text: Text, first: int, line: int, defines: dict[str, str]) -> list[Range]:
    start = text.line_start(first)
    end = text.line_start(line + 1) + _LONGEST
    spans = scan(text.text, start, min(len(text.text), end))
    ranges: list[Range] = []
    at = 0
    while at < len(spans) and spans[at].start < text.line_start(line + 1):
        word = spans[at]
        counted = spans[at + 2] if word.text == _OPERATOR and at + 2 < len(spans) else word
        if text.line_of(counted.start) != line:
            at += 1
            continue
        count = _directives(word.text, defines, ()) if word.kind == "name" else 0
        if count < 0:
            message = (
                f"the macro '{word.text}' expands to a directive beside other text, which is not supported; "
                "write the directive in front of it"
            )
            raise Refused(text.place(word.start, word.end), message)
        if count:
            has_arguments = word.text == _OPERATOR or _has_parameters(defines[word.text])
            last = closing(spans, at + 1) if has_arguments else at
            ranges += _parts(text, Range(word.start, spans[last].end), count)
            at = last
        at += 1
    return ranges


def _parts(text: Text, whole: Range, count: int) -> list[Range]:
    if whole.end - whole.start < count:
        place = text.place(whole.start, whole.end)
        raise Refused(place, f"a macro of {count} directives needs a name of {count} letters")
    starts = [whole.start + number for number in range(count)]
    return [Range(start, end) for start, end in zip(starts, [*starts[1:], whole.end], strict=True)]


def _directives(name: str, defines: dict[str, str], outer: tuple[str, ...]) -> int:
    """The number of directives that a name stands for, or -1 if it stands for other text, too."""
    if name == _OPERATOR:
        return 1
    if name not in defines or name in outer:
        return 0
    spans = scan(defines[name])[3:]  # skips `#define name`
    at = closing(spans, 0) + 1 if _has_parameters(defines[name]) else 0
    total = 0
    other = False
    while at < len(spans):
        count = _directives(spans[at].text, defines, (*outer, name)) if spans[at].kind == "name" else 0
        if count < 0:
            return -1
        other = other or count == 0
        if count:
            total += count
            with_arguments = at + 1 < len(spans) and spans[at + 1].text == "("
            at = closing(spans, at + 1) if with_arguments else at
        at += 1
    return -1 if total and other else total


def _has_parameters(define: str) -> bool:
    spans = scan(define)
    return len(spans) > 3 and spans[3].text == "(" and spans[3].start == spans[2].end
