"""Parses the header of a `for` statement: index, first and last value, and step, with their ranges."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import Span, Text, closing, scan


@dataclass(frozen=True)
class Header:
    """`for (int i = first; i < last; i += step)`.

    `declared` is the text of the index's type if the header declares it. `relation` is written with the index
    on its left side; `turned` means that the program has it on the right. `step` is the text of what is
    added, always positive; `down` means that it is subtracted. `parts` are the ranges of the three parts.
    """

    index: str
    declared: str
    first: Range
    relation: str
    turned: bool
    last: Range
    relation_range: Range
    step: str
    down: bool
    parts: tuple[Range, Range, Range]
    whole: Range
    body: int


# Operators that bind less than the one in the key, or as much: `i < N && more` is no bound.
_ASSIGNING = {",", "=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="}
_LOOSER_THAN_RELATION = {"<", ">", "<=", ">=", "==", "!=", "&", "^", "|", "&&", "||", "?", ":"} | _ASSIGNING
_LOOSER_THAN_SUM = {"<<", ">>"} | _LOOSER_THAN_RELATION
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def header(text: Text, start: int, end: int) -> Header:
    """Parse the header of the `for` that begins at an offset.

    Raises Refused with the part that does not have the expected form.
    """
    spans = scan(text.text, start, end)
    if not spans or spans[0].text != "for":
        raise Refused(
            text.place(start), "this loop comes out of a macro; write the 'for' where the directive is"
        )
    close = closing(spans, 1)
    parts = _split(spans[2:close])
    if len(parts) != 3:
        raise Refused(text.place(start, start + 3), "expected 'for (i = first; i < last; i += step)'")
    index, declared, first = _initial(text, parts[0], spans[0])
    relation, last, mark = _condition(text, parts[1], index, spans[0])
    step, down = _step(text, parts[2], index, spans[0])
    if value_of([span.text for span in scan(step)]) == 0:
        raise _refused(text, parts[2], spans[0], "a step that is not 0")
    if (relation in ("<", "<=") and down) or (relation in (">", ">=") and not down):
        raise _refused(text, parts[2], spans[0], f"a step towards the end of 'for ({index} {relation} …)'")
    ranges = tuple(Range(part[0].start, part[-1].end) for part in parts)
    return Header(
        index, declared, first, relation, mark.end > last.start, last, Range(mark.start, mark.end), step,
        down, (ranges[0], ranges[1], ranges[2]), Range(spans[0].start, spans[close].end),
        spans[close + 1].start if close + 1 < len(spans) else end,
    )  # fmt: skip


def _split(spans: list[Span]) -> list[list[Span]]:
    parts: list[list[Span]] = [[]]
    for span in spans:
        if span.text == ";":
            parts.append([])
        else:
            parts[-1].append(span)
    return parts


def _refused(text: Text, part: list[Span], loop: Span, wanted: str) -> Refused:
    place = text.place(part[0].start, part[-1].end) if part else text.place(loop.start, loop.end)
    excerpt = f", found '{text.text[part[0].start : part[-1].end]}'" if part else ""
    return Refused(place, f"expected {wanted}{excerpt}")


def _initial(text: Text, part: list[Span], loop: Span) -> tuple[str, str, Range]:
    assigned = next((number for number, span in enumerate(part) if span.text == "="), 0)
    names = part[:assigned]
    plain = assigned and all(span.kind == "name" for span in names) and len(part) > assigned + 1
    if not plain or "," in _operators(part):
        raise _refused(text, part, loop, "'i = first' with one index")
    declared = text.text[names[0].start : names[-1].start].strip() if len(names) > 1 else ""
    return names[-1].text, declared, Range(part[assigned + 1].start, part[-1].end)


def _operators(part: list[Span]) -> set[str]:
    """The binary operators outside of brackets."""
    depth = 0
    operators = set()
    operand_before = False
    for span in part:
        opens, closes = span.text in ("(", "[", "{"), span.text in (")", "]", "}")
        depth += opens - closes
        mark = span.kind == "mark" and not opens and not closes
        if depth == 0 and mark and operand_before:
            operators.add(span.text)
        operand_before = not (mark or opens)
    return operators


def _condition(text: Text, part: list[Span], index: str, loop: Span) -> tuple[str, Range, Span]:
    def bounds(of: list[Span]) -> bool:
        return not _operators(of) & _LOOSER_THAN_RELATION and _stays(of, index)

    if len(part) > 2 and part[0].text == index and part[1].text in _TURNED and bounds(part[2:]):
        return part[1].text, Range(part[2].start, part[-1].end), part[1]
    if len(part) > 2 and part[-1].text == index and part[-2].text in _TURNED and bounds(part[:-2]):
        return _TURNED[part[-2].text], Range(part[0].start, part[-3].end), part[-2]
    raise _refused(text, part, loop, f"'{index} < last', or with <=, >, >= or !=")


def _stays(part: list[Span], index: str) -> bool:
    """Whether a bound or a step is the same in each iteration, as far as its text shows."""
    texts = [span.text for span in part]
    return index not in texts and not {"++", "--"} & set(texts) and not _ASSIGNING & _operators(part)


def _step(text: Text, part: list[Span], index: str, loop: Span) -> tuple[str, bool]:
    words = [span.text for span in part]
    if words in ([index, "++"], ["++", index]):
        return "1", False
    if words in ([index, "--"], ["--", index]):
        return "1", True
    if len(words) > 2 and words[0] == index and words[1] in ("+=", "-=") and _stays(part[2:], index):
        return text.text[part[2].start : part[-1].end], words[1] == "-="
    if len(words) > 4 and words[:3] == [index, "=", index] and words[3] in ("+", "-"):
        looser = _LOOSER_THAN_SUM | ({"+", "-"} if words[3] == "-" else set())  # i - s + 1 is not i - (s + 1)
        if not _operators(part[4:]) & looser and _stays(part[4:], index):
            return text.text[part[4].start : part[-1].end], words[3] == "-"
    plus_index = len(words) > 4 and words[:2] == [index, "="] and words[-2:] == ["+", index]
    if plus_index and not _operators(part[2:-2]) & _LOOSER_THAN_SUM and _stays(part[2:-2], index):
        return text.text[part[2].start : part[-3].end], False
    raise _refused(text, part, loop, f"'{index}++' or '{index} += step'")
