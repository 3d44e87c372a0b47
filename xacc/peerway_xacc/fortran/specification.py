"""What statements of the specification part are: which there are, USE, definitions of types."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from peerway_xacc.fortran.declarations import INTRINSIC, Entity, declare
from peerway_xacc.fortran.source import Logical
from peerway_xacc.fortran.words import Word

_SPECIFICATIONS = {
    "use", "import", "implicit", "dimension", "allocatable", "pointer", "target", "save", "parameter",
    "common", "equivalence", "external", "intrinsic", "data", "intent", "optional", "private", "public",
    "namelist", "interface", "abstract", "enum", "procedure", "generic", "volatile", "asynchronous", "bind",
    "protected", "value", "format", "entry", "include", "codimension", "contiguous", *INTRINSIC,
}  # fmt: skip
FIRST = ("use", "import", "implicit")
Used = tuple[str, dict[str, str] | None]  # a module, and its names here


@dataclass
class DerivedType:
    """A type that a scope defines, with its components."""

    name: str
    word: Word
    components: dict[str, Entity] = field(default_factory=dict)
    parent: str = ""  # the type that it extends
    has_procedures: bool = False
    unknown: str = ""  # the first word of a declaration that no component of data has


def derived_type(words: list[Word]) -> DerivedType | None:
    """The type that `type :: name` or `type name` begins to define."""
    texts = [word.text for word in words]
    at = len(texts) - texts[::-1].index(":") if ":" in texts else 1
    if at >= len(words) or words[at].kind != "name":
        return None
    extends = texts.index("extends") if "extends" in texts[:at] else at
    parent = texts[extends + 2] if extends + 2 < at else ""
    return DerivedType(texts[at], words[at], parent=parent)


def declare_component(defined: DerivedType, logical: Logical, words: list[Word]) -> None:
    """Note what a statement in the definition of a type declares."""
    first = words[0].text
    if first in ("procedure", "generic", "final", "union", "map", "structure"):
        defined.unknown = defined.unknown or first
    declare(defined.components, logical, words)


def is_specification(entities: dict[str, Entity], texts: list[str]) -> bool:
    """Does a statement belong to the specification part of a scope that declares these names so far?"""
    first = texts[0]
    if len(texts) > 1 and texts[1] in ("=", "%", "=>"):
        return False
    if first in _SPECIFICATIONS and not _is_assignment(texts):
        return True
    if not _is_assignment(texts) or len(texts) < 4:
        return False
    # `f(x) = …` defines a statement function where f is no array
    entity = entities.get(first)
    inside = texts[2 : texts.index(")")]
    plain = all(re.fullmatch(r"[a-z]\w*|,", text) for text in inside)
    return plain and entity is not None and entity.dimensions is None and texts.index(")") + 1 < len(texts)


def _is_assignment(texts: list[str]) -> bool:
    """Does a statement begin `name(…) =`?"""
    if len(texts) < 2 or texts[1] != "(":
        return False
    depth = 0
    for number, text in enumerate(texts[1:], 1):
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return texts[number + 1 : number + 2] in (["="], ["%"]) and texts[0] not in ("type", "class")
    return False


def used_module(texts: list[str]) -> Used | None:
    """`use m`, `use, intrinsic :: m`, `use m, only: a, b => c`: the module, and its names here."""
    rest = texts[1:]
    if ":" in rest and rest[0] in (",", ":"):
        rest = rest[rest.index(":") + 2 :]
    if not rest:
        return None
    name, rest = rest[0], rest[1:]
    only: dict[str, str] | None = {} if "only" in rest else None
    renames: dict[str, str] = {}
    for number, text in enumerate(rest):
        if text == "=>" and 0 < number < len(rest) - 1:
            renames[rest[number - 1]] = rest[number + 1]
    if only is not None:
        items = rest[rest.index("only") + 1 :]
        for number, text in enumerate(items):
            if re.match(r"[a-z]", text) and (number == 0 or items[number - 1] != "=>"):
                only[text] = renames.get(text, text)
        return name, only
    return name, {"": "", **renames} if renames else None  # with "" all others keep their names
