"""Components of derived types in expressions of kernels, and values of such types from their components."""

from __future__ import annotations

from typing import Protocol

from peerway_xacc.fortran.derived_types import Component, Derived
from peerway_xacc.fortran.values import Value, converted
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend.diagnostics import Refused, counted


class Reads(Protocol):
    """What reads expressions."""

    def read(self, words: list[Word]) -> Value:
        """All the words as one expression."""
        ...


def constructed(reading: Reads, derived: Derived, word: Word, parts: list[list[Word]]) -> Value:
    """A value of a derived type from those of all components, in their order or by their names."""
    if any(part.is_parent or part.extents or part.type is None for part in derived.components):
        message = f"{derived.fortran} has components that are no single values; assign them one by one"
        raise Refused(word.place, message)
    given: dict[str, list[Word]] = {}
    for component, part in zip(derived.components, parts, strict=False):
        named = len(part) > 2 and part[1].text == "=" and part[0].kind == "name"
        given[part[0].text if named else component.name] = part[2:] if named else part
    names = {component.name for component in derived.components}
    if len(parts) > len(names) or set(given) != names:
        message = f"{derived.fortran} has {counted(len(names), 'component')}; give each of them once"
        raise Refused(word.place, message)
    values = []
    for component in derived.components:
        assert component.type is not None
        words = given[component.name]
        values.append(converted(reading.read(words), component.type, words[0]))
    return Value(f"({derived.c_text}){{{', '.join(values)}}}", derived)


def whole_array(name: str) -> str:
    """What is wrong with an array without subscripts."""
    return f"the whole array '{name}' in an expression: kernels need elements, so write a loop over them"


def offset_of(component: Component, subscripts: list[Value], word: Word) -> str:
    """The place of an element in a component, in Fortran's order."""
    if len(subscripts) != len(component.extents):
        message = f"{counted(len(subscripts), 'subscript')} for '{component.name}', which has "
        raise Refused(word.place, message + counted(len(component.extents), "dimension"))
    text = ""
    for lower, extent, subscript in reversed(
        list(zip(component.lower, component.extents, subscripts, strict=True))
    ):
        own = f"({subscript.text} - {lower})" if lower >= 0 else f"({subscript.text} + {-lower})"
        text = f"({text}) * {extent} + {own}" if text else own
    return text
