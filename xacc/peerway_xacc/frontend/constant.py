"""Evaluates integer constant expressions of C that contain no names."""

from __future__ import annotations

import re

LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)[uUlL]*")
_LARGEST_SHIFTED = 1 << 40  # we do not shift larger numbers: the result could not be the size of anything


class NotConstant(Exception):
    """The expression has a name, or an operation that is not allowed in a constant."""


def value_of(texts: list[str]) -> int | None:
    """The value of the expression that these tokens form, or None if it is not constant."""
    try:
        value, rest = _choice(texts)
    except (NotConstant, ZeroDivisionError, RecursionError):
        return None
    return value if not rest else None


def _choice(texts: list[str]) -> tuple[int, list[str]]:
    value, rest = _binary(texts, 0)
    if rest[:1] != ["?"]:
        return value, rest
    yes, rest = _choice(rest[1:])
    if rest[:1] != [":"]:
        raise NotConstant
    no, rest = _choice(rest[1:])
    return (yes if value else no), rest


def _binary(texts: list[str], level: int) -> tuple[int, list[str]]:
    if level == len(LEVELS):
        return _single(texts)
    lhs, rest = _binary(texts, level + 1)
    while rest and rest[0] in LEVELS[level]:
        right, after = _binary(rest[1:], level + 1)
        lhs, rest = applied(rest[0], lhs, right), after
    return lhs, rest


def applied(operator: str, lhs: int, right: int) -> int:
    """Apply a binary operator to two numbers. Raises NotConstant or ZeroDivisionError."""
    if operator in ("<<", ">>") and not (0 <= right < 64 and abs(lhs) < _LARGEST_SHIFTED):
        raise NotConstant
    quotient = (abs(lhs) // abs(right) if (lhs < 0) == (right < 0) else -(abs(lhs) // abs(right))) \
        if operator in ("/", "%") else 0  # fmt: skip
    table = {
        "||": lambda: int(bool(lhs or right)), "&&": lambda: int(bool(lhs and right)),
        "|": lambda: lhs | right, "^": lambda: lhs ^ right, "&": lambda: lhs & right,
        "==": lambda: int(lhs == right), "!=": lambda: int(lhs != right),
        "<": lambda: int(lhs < right), ">": lambda: int(lhs > right),
        "<=": lambda: int(lhs <= right), ">=": lambda: int(lhs >= right),
        "<<": lambda: lhs << right, ">>": lambda: lhs >> right,
        "+": lambda: lhs + right, "-": lambda: lhs - right, "*": lambda: lhs * right,
        "/": lambda: quotient, "%": lambda: lhs - quotient * right,
    }  # fmt: skip
    return table[operator]()


def _single(texts: list[str]) -> tuple[int, list[str]]:
    if not texts:
        raise NotConstant
    head, rest = texts[0], texts[1:]
    if head in ("+", "-", "~", "!"):
        value, rest = _single(rest)
        return {"+": value, "-": -value, "~": ~value, "!": int(not value)}[head], rest
    if head == "(":
        value, rest = _choice(rest)
        if rest[:1] != [")"]:
            raise NotConstant
        return value, rest[1:]
    match = INTEGER.fullmatch(head)
    if not match:
        raise NotConstant
    digits = match[1]
    octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
    try:
        return int(digits, 8 if octal else 0), rest
    except ValueError as error:
        raise NotConstant from error
