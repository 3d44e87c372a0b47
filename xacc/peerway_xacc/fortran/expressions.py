"""Expressions of Fortran as C, for kernels: what C computes otherwise, such as `**`, becomes a call."""

from __future__ import annotations

import re
from typing import Protocol

from peerway_xacc.fortran import intrinsics
from peerway_xacc.fortran.component_values import offset_of, whole_array
from peerway_xacc.fortran.derived_types import Derived
from peerway_xacc.fortran.intrinsic_types import DOUBLE, LOGICAL, REAL, Type
from peerway_xacc.fortran.values import Value, promoted
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused

_RELATIONS = {
    "==": "==", ".eq.": "==", "/=": "!=", ".ne.": "!=", "<": "<", ".lt.": "<", "<=": "<=", ".le.": "<=",
    ">": ">", ".gt.": ">", ">=": ">=", ".ge.": ">=",
}  # fmt: skip
_LEVELS: tuple[tuple[str, ...], ...] = (
    (".eqv.", ".neqv."), (".or.",), (".and.",), tuple(_RELATIONS), ("+", "-"), ("*", "/"),
)  # fmt: skip
_NUMBER = re.compile(r"(\d*\.?\d*)(?:([ed])([-+]?\d+))?(?:_(\w+))?\Z")
_UNARY_LEVEL = 4  # of + and -
_NOT_LEVEL = 3  # .not. binds less than relations


class Names(Protocol):
    """What expressions ask of the code around them."""

    def scalar(self, word: Word) -> Value:
        """A variable or a constant."""
        ...

    def element(self, word: Word, subscripts: list[Value]) -> Value:
        """An element of an array."""
        ...

    def is_array(self, word: Word) -> bool:
        """Is it an array?"""
        ...

    def kind(self, words: list[Word]) -> int:
        """The number of bytes that a kind has."""
        ...

    def bound(self, function: str, words: list[list[Word]], word: Word) -> Value:
        """size, lbound or ubound of an array."""
        ...

    def call(self, word: Word, arguments: list[list[Word]]) -> Value:
        """A function that is no intrinsic one."""
        ...


class Expressions:
    """Reads expressions; names mean what `names` says."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def read(self, words: list[Word]) -> Value:
        """All the words as one expression."""
        return self._all(_Reader(words, self._names))

    def array_of(self, words: list[Word]) -> Value:
        """A component that is an array, or the element where an argument begins: C has a pointer there."""
        return self._all(_Reader(words, self._names, whole=True))

    def _all(self, reader: _Reader) -> Value:
        value = reader.level(0)
        if reader.at < len(reader.words):
            word = reader.words[reader.at]
            raise Refused(word.place, f"expected an operator, found '{word.text}'")
        return value

    def integer(self, words: list[Word]) -> Value:
        """An expression that must be of integers."""
        value = self.read(words)
        if value.type.base != "integer":
            raise Refused(words[0].place, f"expected an integer, found {value.type.fortran}")
        return value

    def condition(self, words: list[Word]) -> str:
        """An expression that must be logical."""
        value = self.read(words)
        if value.type.base != "logical":
            raise Refused(words[0].place, f"expected a condition, found {value.type.fortran}")
        return value.text


class _Reader:
    def __init__(self, words: list[Word], names: Names, whole: bool = False) -> None:
        self.words = words
        self.at = 0
        self._names = names
        self._whole = whole  # may the words end with a component that is an array?

    def _next(self) -> str:
        return self.words[self.at].text if self.at < len(self.words) else ""

    def _take(self) -> Word:
        word = self.words[self.at]
        self.at += 1
        return word

    def level(self, level: int) -> Value:
        """An expression of operators of this level and of tighter ones."""
        if level == len(_LEVELS):
            return self._power()
        if level == _NOT_LEVEL and self._next() == ".not.":
            word = self._take()
            value = self.level(_NOT_LEVEL)
            if value.type.base != "logical":
                raise Refused(word.place, f".not. is not for {value.type.fortran}")
            return Value(f"(!{value.text})", value.type)
        if level == _UNARY_LEVEL and self._next() in ("+", "-"):
            sign = self._take()
            value = self.level(level + 1)
            promoted(value.type, value.type, sign)
            lhs = Value(f"(-{value.text})", value.type) if sign.text == "-" else value
        else:
            lhs = self.level(level + 1)
        while self._next() in _LEVELS[level]:
            word = self._take()
            lhs = _operation(lhs, self.level(level + 1), word)
        return lhs

    def _power(self) -> Value:
        base = self._primary()
        if self._next() != "**":
            return base
        word = self._take()
        if self._next() in ("+", "-"):  # a common extension: x ** -2
            sign = self._take()
            exponent = self._power()
            exponent = Value(f"(-{exponent.text})", exponent.type) if sign.text == "-" else exponent
        else:
            exponent = self._power()
        return intrinsics.power(base, exponent, promoted(base.type, exponent.type, word), word)

    def _primary(self) -> Value:
        if self.at >= len(self.words):
            assert self.words, "callers give at least one word"
            place = self.words[-1].place
            raise Refused(place, "expected an expression behind this")
        word = self._take()
        if word.kind == "number":
            return self._number(word)
        if word.text == "(":
            return self._bracket()
        if re.fullmatch(r"\.(true|false)\.(_\w+)?", word.text):
            return Value("1" if "true" in word.text else "0", LOGICAL)
        if word.kind == "text":
            raise Refused(word.place, "characters are not possible in a kernel")
        if word.kind != "name":
            raise Refused(word.place, f"expected a value, found '{word.text}', which kernels do not have yet")
        value = self._variable_or_call(word)
        if self._next() == "[":
            message = f"'{word.text}' of another image in a kernel; assign it to a variable before"
            raise Refused(word.place, message)
        while self.at < len(self.words) and self.words[self.at].kind == "component":
            value = self._component(value)
        return value

    def _variable_or_call(self, word: Word) -> Value:
        if self._next() != "(":
            if self._names.is_array(word):
                raise Refused(word.place, whole_array(word.text))
            return self._names.scalar(word)
        parts = self._parts()
        return self._called(word, parts if parts != [[]] else [])

    def _parts(self) -> list[list[Word]]:
        """What is between the parentheses that come next."""
        end = closing(self.words, self.at)
        parts = split(self.words[self.at + 1 : end], ",")
        self.at = end + 1
        return parts

    def _component(self, value: Value) -> Value:
        """The component that comes next of a value, or an element of it."""
        word = self._take()
        name = word.text[1:]
        found = value.type.find(name) if isinstance(value.type, Derived) else None
        if found is None:
            raise Refused(word.place, f"{value.type.fortran} has no component '{name}'")
        text, component = f"{value.text}{found[0]}", found[1]
        if component.type is None:
            message = f"the component '{name}' is allocatable or a pointer, which kernels cannot use yet"
            raise Refused(word.place, message)
        if not component.extents:
            if self._next() == "(" or (self._whole and self.at == len(self.words)):
                raise Refused(word.place, f"the component '{name}' is no array")
            return Value(text, component.type)
        if self._next() != "(":
            if self._whole and self.at == len(self.words):
                return Value(text, component.type)
            raise Refused(word.place, whole_array(name))
        parts = self._parts()
        self._check_element(word, name, parts)
        subscripts = [_subscript(self._value(part), part[0]) for part in parts]
        return Value(f"{text}[{offset_of(component, subscripts, word)}]", component.type)

    def _check_element(self, word: Word, name: str, parts: list[list[Word]]) -> None:
        for part in parts:
            if len(split(part, ":")) > 1 or not part:
                message = f"a section of '{name}': kernels need elements, so write a loop over them"
                raise Refused(word.place, message)

    def _bracket(self) -> Value:
        end = closing(self.words, self.at - 1)
        parts = split(self.words[self.at : end], ",")
        self.at = end + 1
        values = [_Reader(part, self._names).level(0) for part in parts if part]
        if len(values) == 2:
            promoted(values[0].type, values[1].type, self.words[end])
            single = all(value.type != DOUBLE for value in values)
            return intrinsics.complex_of(values[0], values[1], Type("complex", 4 if single else 8))
        if len(values) != 1:
            raise Refused(self.words[end].place, "expected an expression in the parentheses")
        return Value(f"({values[0].text})", values[0].type)

    def _called(self, word: Word, parts: list[list[Word]]) -> Value:
        if self._names.is_array(word):
            self._check_element(word, word.text, parts)
            return self._names.element(word, [_subscript(self._value(part), part[0]) for part in parts])
        if [] in parts:
            raise Refused(word.place, f"an argument of '{word.text}' is missing")
        if word.text in ("size", "lbound", "ubound"):
            return self._names.bound(word.text, parts, word)
        if word.text in intrinsics.WITH_KIND or word.text in intrinsics.KNOWN:
            return self._intrinsic(word, parts)
        return self._names.call(word, parts)

    def _value(self, part: list[Word]) -> Value:
        reader = _Reader(part, self._names)
        value = reader.level(0)
        if reader.at < len(part):
            raise Refused(part[reader.at].place, f"expected an operator, found '{part[reader.at].text}'")
        return value

    def _intrinsic(self, word: Word, parts: list[list[Word]]) -> Value:
        kind = None
        plain = []
        for number, part in enumerate(parts):
            if len(part) > 2 and part[1].text == "=" and part[0].text == "kind":
                kind = self._names.kind(part[2:])
            elif word.text in intrinsics.WITH_KIND and number == intrinsics.WITH_KIND[word.text]:
                kind = self._names.kind(part)
            elif len(part) > 2 and part[1].text == "=":
                raise Refused(part[0].place, "arguments with names are not possible in a kernel yet")
            else:
                plain.append(self._value(part))
                if isinstance(plain[-1].type, Derived) and word.text != "merge":
                    message = f"{word.text} of {plain[-1].type.fortran} is not possible in a kernel"
                    raise Refused(word.place, message)
        return intrinsics.call(word, plain, kind)

    def _number(self, word: Word) -> Value:
        match = _NUMBER.match(word.text)
        if not match or not match[1]:
            raise Refused(word.place, f"'{word.text}' is no number that kernels have")
        digits, letter, exponent, kind_name = match.groups()
        kind_words = [Word("name" if kind_name and not kind_name.isdigit() else "number", kind_name or "4",
                           word.place, word.start, word.end)]  # fmt: skip
        if "." not in digits and letter is None:
            kind = self._names.kind(kind_words) if kind_name else 4
            digits = digits.lstrip("0") or "0"
            return Value(f"{digits}L" if kind == 8 else digits, Type("integer", kind))
        kind = 8 if letter == "d" else self._names.kind(kind_words) if kind_name else 4
        text = digits if digits[0] != "." else f"0{digits}"
        text += f"e{exponent}" if exponent else "" if "." in text else ".0"
        return Value(text if kind == 8 else f"{text}f", DOUBLE if kind == 8 else REAL)


def _subscript(value: Value, word: Word) -> Value:
    if value.type.base != "integer":
        raise Refused(word.place, f"a subscript must be an integer, found {value.type.fortran}")
    return value


def _operation(lhs: Value, rhs: Value, word: Word) -> Value:
    logical = lhs.type.base == rhs.type.base == "logical"
    if word.text in _RELATIONS:
        if logical:
            raise Refused(word.place, "compare logicals by .eqv. or .neqv.")
        kind = promoted(lhs.type, rhs.type, word)
        if kind.base == "complex" and _RELATIONS[word.text] not in ("==", "!="):
            raise Refused(word.place, "complex numbers have no order")
        return Value(f"({lhs.text} {_RELATIONS[word.text]} {rhs.text})", LOGICAL)
    if word.text.startswith("."):
        if not logical:
            raise Refused(word.place, f"{word.text} is not for {lhs.type.fortran} and {rhs.type.fortran}")
        kind = max(lhs.type, rhs.type, key=lambda side: side.kind)
        if word.text in (".and.", ".or."):
            sign = "&&" if word.text == ".and." else "||"
            return Value(f"({lhs.text} {sign} {rhs.text})", kind)
        sign = "==" if word.text == ".eqv." else "!="
        return Value(f"(!{lhs.text} {sign} !{rhs.text})", kind)
    return Value(f"({lhs.text} {word.text} {rhs.text})", promoted(lhs.type, rhs.type, word))
