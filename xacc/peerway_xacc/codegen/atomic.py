"""Lowers acc atomic statements in kernels to calls of the kernels' prelude."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import Span, scan
from peerway_xacc.lowering.unit import Unit

_NATIVE = {
    "+": "pwx_sum", "-": "pwx_sum", "*": "pwx_product", "&": "pwx_bit_and", "|": "pwx_bit_or",
    "^": "pwx_bit_xor",
}  # fmt: skip
_OTHER = ("/", "%", "<<", ">>")
_FORMS = {
    "read": "v = x;",
    "write": "x = value;",
    "update": "x++; x += value; x = x + value; or x = value + x;",
    "capture": (
        "v = x++; v = x += value; { v = x; x += value; }, { x += value; v = x; } or { v = x; x = value; }"
    ),
}


def statements(unit: Unit, edits: Edits, inside: Range) -> None:
    """Replace the atomic statements in a range of a kernel."""
    for directive in unit.directives_in(inside):
        if not isinstance(directive, d.Acc) or directive.construct != "atomic":
            continue
        function = unit.function_of(directive)
        statement = function and unit.syntax.statement_after(directive.file, directive.end, function)
        assert statement, "its place was checked before"
        kind = next((clause.name for clause in directive.clauses), "update")
        place = unit.text.place(statement.start, statement.end)

        def called(written: str, kind: str = kind, place: Place = place) -> str:
            call = call_of(kind, written)
            if call is None:
                raise Refused(place, f"expected an atomic {kind} in the form {_FORMS[kind]}")
            return call + "\n" * written.count("\n")

        edits.rewrite(statement.start, statement.end, called)


def call_of(kind: str, written: str) -> str | None:
    """The statement as a call, or None if it has none of the allowed forms."""
    spans = scan(written)
    if kind == "capture" and spans and spans[0].text == "{" and spans[-1].text == "}":
        return _both(written, spans[1:-1])
    if not spans or spans[-1].text != ";":
        return None
    spans = spans[:-1]
    if kind == "update":
        call = _update(written, spans)
        return f"{call[0]};" if call else None
    at = _assigned(spans)
    if not 0 < at < len(spans) - 1:
        return None
    lhs, right = _text(written, spans[:at]), _text(written, spans[at + 1 :])
    if kind == "read":
        return f"{lhs} = pwx_atomic_read({right});"
    if kind == "write":
        return f"pwx_atomic_write({lhs}, decltype(pwx_atomic_read({lhs}))({right}));"
    changed = _update(written, spans[at + 1 :])
    return f"{lhs} = {changed[0] if _postfix(spans) else changed[1]};" if changed else None


def _both(written: str, spans: list[Span]) -> str | None:
    """`{ v = x; x += e; }`, or the two statements in the other order."""
    cuts = [number for number, span in enumerate(spans) if span.text == ";"]
    if len(cuts) != 2 or cuts[1] != len(spans) - 1:
        return None
    first, second = spans[: cuts[0]], spans[cuts[0] + 1 : -1]
    for reading, changing, number in ((first, second, 0), (second, first, 1)):
        at = _assigned(reading)
        if not 0 < at < len(reading) - 1:
            continue
        call = _update(written, changing)
        source = _bare([span.text for span in reading[at + 1 :]])
        if call and _bare([span.text for span in scan(call[2])]) == source:
            return f"{_text(written, reading[:at])} = {call[number]};"
    return _swap(written, first, second)


def _swap(written: str, reading: list[Span], writing: list[Span]) -> str | None:
    """`{ v = x; x = value; }`, where the value uses neither v nor x."""
    at, to = _assigned(reading), _assigned(writing)
    if not 0 < at < len(reading) - 1 or not 0 < to < len(writing) - 1:
        return None
    source = [span.text for span in reading[at + 1 :]]
    value = writing[to + 1 :]
    target = _text(written, writing[:to])
    used = {span.text for span in value}
    if [span.text for span in writing[:to]] != source or reading[0].text in used or source[0] in used:
        return None
    kind = f"decltype(pwx_atomic_read({target}))"
    new = f"[&](auto) {{ return {kind}({_text(written, value)}); }}"
    return f"{_text(written, reading[:at])} = pwx_atomic_update({target}, {new});"


def _update(written: str, spans: list[Span]) -> tuple[str, str, str] | None:
    """Expressions for the old and the new value, and the variable that is changed."""
    words = [span.text for span in spans]
    if len(words) > 1 and (words[-1] in ("++", "--") or words[0] in ("++", "--")):
        mark = words[-1] if words[-1] in ("++", "--") else words[0]
        target = _text(written, spans[:-1] if words[-1] == mark else spans[1:])
        return _calls(target, mark[0], "1")
    for number, word in enumerate(words):
        if 0 < number < len(words) - 1 and word.endswith("=") and word[:-1] in (*_NATIVE, *_OTHER):
            return _calls(_text(written, spans[:number]), word[:-1], _text(written, spans[number + 1 :]))
    at = _assigned(spans)
    if not 0 < at < len(spans) - 1:
        return None
    target = _text(written, spans[:at])
    old, value = words[:at], words[at + 1 :]
    if value[:at] == old and len(value) > at + 1 and value[at] in (*_NATIVE, *_OTHER):
        if not _binds(value[at + 1 :], value[at], behind=True):
            return None
        return _calls(target, value[at], _text(written, spans[2 * at + 2 :]))
    if value[-at:] == old and len(value) > at + 1 and value[-at - 1] in (*_NATIVE, *_OTHER):
        if not _binds(value[: -at - 1], value[-at - 1], behind=False):
            return None
        return _calls(target, value[-at - 1], _text(written, spans[at + 1 : -at - 1]), turned=True)
    return None


_PRECEDENCE = {
    "*": 6, "/": 6, "%": 6, "+": 5, "-": 5, "<<": 4, ">>": 4, "&": 3, "^": 2, "|": 1,
}  # fmt: skip
_LOWER = ("<", ">", "<=", ">=", "==", "!=", "&&", "||", "?", ":", "=", ",")


def _binds(words: list[str], operator: str, behind: bool) -> bool:
    """Are these words one operand of the operator, as C parses `x op words`, or `words op x`?"""
    depth = 0
    operand = False  # whether the previous word was an operand, so that an operator is binary
    for word in words:
        depth += (word in "([") - (word in ")]")
        if depth == 0 and word in _LOWER:
            return False
        if depth == 0 and operand and word in _PRECEDENCE:
            same = word == operator and operator not in ("-", *_OTHER)
            weaker = _PRECEDENCE[word] < _PRECEDENCE[operator]
            equal = _PRECEDENCE[word] == _PRECEDENCE[operator]
            if weaker or (behind and equal and not same):
                return False
            operand = False
        else:
            operand = word not in ("(", "[", "~", "!", "-", "+", "*", "&")
    return True


def _bare(words: list[str]) -> list[str]:
    """An expression without brackets around all of it."""
    while len(words) > 2 and words[0] == "(" and words[-1] == ")":
        depth = 0
        for number, word in enumerate(words):
            depth += (word == "(") - (word == ")")
            if depth == 0 and number < len(words) - 1:
                return words
        words = words[1:-1]
    return words


def _calls(target: str, operator: str, value: str, turned: bool = False) -> tuple[str, str, str]:
    """The calls for a change of `target`; with `turned` the value is the operator's left operand."""
    kind = f"decltype(pwx_atomic_read({target}))"
    turned = turned and operator in ("-", *_OTHER)
    if turned or operator in _OTHER:
        new = f"({value}) {operator} x__v" if turned else f"x__v {operator} ({value})"
        old = f"pwx_atomic_update({target}, [&](auto x__v) {{ return {kind}({new}); }})"
    else:
        sign = "-" if operator == "-" else ""
        old = f"pwx_atomic({_NATIVE[operator]}{{}}, {target}, {kind}({sign}({value})))"
    changed = f"({value}) {operator} {old}" if turned else f"{old} {operator} ({value})"
    return old, f"{kind}({changed})", target


def _postfix(spans: list[Span]) -> bool:
    return spans[-1].text in ("++", "--")


def _assigned(spans: list[Span]) -> int:
    return next((number for number, span in enumerate(spans) if span.text == "="), 0)


def _text(written: str, spans: list[Span]) -> str:
    return written[spans[0].start : spans[-1].end]
