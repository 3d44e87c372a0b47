"""The types of names: what a kernel needs to know of variables, with kinds as numbers of bytes."""

from __future__ import annotations

import re

from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.derived_types import DerivedTypes
from peerway_xacc.fortran.intrinsic_types import DOUBLE, Type
from peerway_xacc.fortran.source import Logical
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend.diagnostics import Place, Refused

# Constants of ISO_FORTRAN_ENV and ISO_C_BINDING, on the 64-bit Linux that Peerway is for.
_KINDS = {
    "int8": 1, "int16": 2, "int32": 4, "int64": 8, "real32": 4, "real64": 8, "c_float": 4, "c_double": 8,
    "c_int": 4, "c_long": 8, "c_long_long": 8, "c_short": 2, "c_signed_char": 1, "c_int8_t": 1,
    "c_int16_t": 2, "c_int32_t": 4, "c_int64_t": 8, "c_size_t": 8, "c_float_complex": 4,
    "c_double_complex": 8, "logical32": 4, "c_intptr_t": 8,
}  # fmt: skip
_INTRINSIC_MODULES = ("iso_fortran_env", "iso_c_binding")
_DIGITS = {"integer": ((1, 2), (2, 4), (4, 9), (8, 18)), "real": ((4, 6), (8, 15))}
_TYPE = re.compile(r"(double\s*precision|double\s*complex|integer|real|complex|logical|type|class|character)")


class Types:
    """The types of the names of a file."""

    def __init__(self, unit: FortranUnit) -> None:
        self._unit = unit
        self._known: dict[tuple[int, str], Type] = {}
        self.derived = DerivedTypes(unit, self)

    def of(self, scope: Scope, entity: Entity, place: Place) -> Type:
        """The type of what a scope declares. Raises Refused for a type that kernels do not have."""
        key = (scope.number, entity.name)
        if key not in self._known:
            text = entity.type_text or self._implicit(scope, entity.name, place)
            self._known[key] = self.of_text(scope, text, entity.name, place)
        return self._known[key]

    def of_text(self, scope: Scope, text: str, name: str, place: Place) -> Type:
        """The type that a declaration begins with."""
        text = text.lower()
        match = _TYPE.match(text)
        base = re.sub(r"\s", "", match[1]) if match else ""
        if base == "doubleprecision":
            return DOUBLE
        if base == "doublecomplex":
            return Type("complex", 8)
        rest = text[match.end() :].strip() if match else ""
        if base == "type" and (of_type := re.fullmatch(r"\(\s*([a-z]\w*)\s*\)", rest)):
            return self.derived.of(scope, of_type[1], name, place)
        if base not in ("integer", "real", "complex", "logical"):
            raise Refused(place, f"'{name}' is of {text}, which kernels do not have yet")
        kind = Type(base, self._kind(scope, base, rest, name, place))
        if not kind.in_kernels:
            raise Refused(place, f"'{name}' is of {text}, a kind that kernels do not have")
        return kind

    def _kind(self, scope: Scope, base: str, text: str, name: str, place: Place) -> int:
        if not text:
            return 4
        if text.startswith("*"):
            length = int(text[1:].strip(" ()")) if text[1:].strip(" ()").isdigit() else 0
            return length // 2 if base == "complex" else length
        inside = text[1:-1].strip()
        inside = re.sub(r"^kind\s*=\s*", "", inside)
        kind = self.integer(scope, inside)
        if kind is None:
            message = (
                f"the kind of '{name}', {inside}, is not known here; write a number or a constant of a "
                "module that is compiled by peerway fc"
            )
            raise Refused(place, message)
        return kind

    def _implicit(self, scope: Scope, name: str, place: Place) -> str:
        for around in scope.chain():
            if around.implicit_none:
                raise Refused(place, f"the type of '{name}' is not known here")
            for statement in around.statements:
                if statement.first == "implicit":
                    for part in split(statement.words[1:], ","):
                        opening = next(
                            (n for n in range(len(part) - 1, -1, -1) if part[n].text == "("), len(part)
                        )
                        if _has_letter(part[opening + 1 : -1], name[0]):
                            return written(statement.logical, part[:opening])
        return "integer" if name[0] in "ijklmn" else "real"

    # ---- constants ----

    def integer(self, scope: Scope, text: str, depth: int = 0) -> int | None:
        """The value of a constant expression of integers, None where it is not known here."""
        text = text.strip().lower()
        if text.isdigit():
            return int(text)
        if depth > 20:
            return None
        if re.fullmatch(r"[a-z]\w*", text):
            return self._named(scope, text, depth)
        if match := re.fullmatch(r"kind\s*\(\s*(.*?)\s*\)", text):
            return _kind_of_literal(match[1])
        if match := re.fullmatch(r"selected_(real|int)_kind\s*\(\s*(?:p\s*=\s*|r\s*=\s*)?(\w+)\s*.*\)", text):
            digits = self.integer(scope, match[2], depth + 1)
            kinds = _DIGITS["real" if match[1] == "real" else "integer"]
            return next((kind for kind, most in kinds if digits is not None and digits <= most), None)
        if match := re.fullmatch(r"(.+?)\s*([-+*])\s*([^-+*()]+)", text):
            left = self.integer(scope, match[1], depth + 1)
            right = self.integer(scope, match[3], depth + 1)
            only_name = re.fullmatch(r"\w+", match[1].strip())
            if left is None or right is None or (match[2] == "*" and not only_name):
                return None
            return {"+": left + right, "-": left - right, "*": left * right}[match[2]]
        if match := re.fullmatch(r"-\s*(\w+)", text):
            value = self.integer(scope, match[1], depth + 1)
            return None if value is None else -value
        return None

    def _named(self, scope: Scope, name: str, depth: int) -> int | None:
        declared = self._unit.fortran.entity(name, scope)
        if declared is None:
            return _of_intrinsic_module(self._unit, scope, name, set())
        around, entity = declared
        text = _value_text(around, entity)
        return None if text is None else self.integer(around, text, depth + 1)


def _has_letter(words: list[Word], letter: str) -> bool:
    for part in split(words, ","):
        texts = [word.text for word in part]
        if texts == [letter] or (len(texts) == 3 and texts[1] == "-" and texts[0] <= letter <= texts[2]):
            return True
    return False


def value_words(scope: Scope, entity: Entity) -> list[Word]:
    """The words of what a named constant is declared to be."""
    return _value(scope, entity)[1]


def _value(scope: Scope, entity: Entity) -> tuple[Logical | None, list[Word]]:
    if entity.typed and "parameter" in entity.attributes:
        item = entity.typed.items[entity.typed.number]
        equal = next((n for n, word in enumerate(item) if word.text == "="), None)
        if equal is not None:
            return entity.typed.logical, item[equal + 1 :]
    for statement in scope.statements:
        if statement.first == "parameter" and len(statement.words) > 1:
            for part in split(statement.words[2 : closing(statement.words, 1)], ","):
                if len(part) > 2 and part[0].text == entity.name and part[1].text == "=":
                    return statement.logical, part[2:]
    return None, []


def _value_text(scope: Scope, entity: Entity) -> str | None:
    """What a named constant is declared to be."""
    logical, words = _value(scope, entity)
    return written(logical, words) if logical and words else None


def _of_intrinsic_module(unit: FortranUnit, scope: Scope, name: str, seen: set[str]) -> int | None:
    for around in scope.chain():
        for module, only in around.modules:
            known = name if only is None else only.get(name, name if "" in only else None)
            if known is None or module in seen:
                continue
            if module in _INTRINSIC_MODULES and known in _KINDS:
                return _KINDS[known]
            used = unit.fortran.module(module)
            value = _of_intrinsic_module(unit, used, known, {*seen, module}) if used else None
            if value is not None:
                return value
    return None


def _kind_of_literal(text: str) -> int | None:
    if re.fullmatch(r"[-+]?\d*\.?\d*(?:d[-+]?\d+)", text):
        return 8
    if re.fullmatch(r"[-+]?\d+|\.true\.|\.false\.|[-+]?(?:\d+\.\d*|\.\d+)(?:e[-+]?\d+)?", text):
        return 4
    return None
