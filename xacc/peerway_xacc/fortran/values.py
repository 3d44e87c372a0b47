"""Values of Fortran's expressions as C, and how one type becomes another."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran.intrinsic_types import Type
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend.diagnostics import Refused


@dataclass(frozen=True)
class Value:
    """An expression of C, in parentheses where another operator could split it, and its Fortran type."""

    text: str
    type: Type


def converted(value: Value, to: Type, place_of: Word) -> str:
    """A value as assignment converts it."""
    if "type" in (value.type.base, to.base) and value.type != to:
        raise Refused(place_of.place, f"{value.type.fortran} cannot become {to.fortran}")
    if (value.type.base == "logical") != (to.base == "logical"):
        raise Refused(place_of.place, f"{value.type.fortran} cannot become {to.fortran}")
    if to.base != "complex" and value.type.base == "complex":
        part = "creal" if value.type.kind == 8 else "crealf"
        return f"({to.c_text}){part}({value.text})"
    return value.text if value.type == to else f"({to.c_text})({value.text})"


def promoted(lhs: Type, rhs: Type, word: Word) -> Type:
    """The type of an operation on two numbers."""
    if {"logical", "type"} & {lhs.base, rhs.base}:
        raise Refused(word.place, f"'{word.text}' is not for {lhs.fortran} and {rhs.fortran}")
    order = ("integer", "real", "complex")
    base = max(lhs.base, rhs.base, key=order.index)
    kinds = [side.kind for side in (lhs, rhs) if base == "integer" or side.base != "integer"]
    return Type(base, max(kinds))
