"""Declarations of variables: what a statement of the specification part says of each name."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.fortran.source import Logical
from peerway_xacc.fortran.words import Word, closing, split, written

INTRINSIC = ("integer", "real", "double", "complex", "logical", "character", "type", "class")
_OF_DIMENSIONS = ("dimension", "allocatable", "pointer", "target", "codimension")
_OF_NAMES = (
    "save", "intent", "optional", "value", "contiguous", "volatile", "asynchronous", "common", "equivalence",
    "parameter", "external", "intrinsic", "protected", "public", "private",
)  # fmt: skip


@dataclass(frozen=True)
class Dimension:
    """Bounds as the program writes them; None where there are none: `upper` of `:` and `*`."""

    lower: str | None
    upper: str | None
    assumed: bool = False  # `*`


@dataclass
class Mention:
    """A name in a statement that declares it: which of the statement's items, from where to where."""

    logical: Logical
    items: list[list[Word]]
    number: int
    word: Word


@dataclass
class Entity:
    """All that a scope says of a name."""

    name: str
    word: Word
    type_text: str | None = None
    attributes: set[str] = field(default_factory=set)
    dimensions: list[Dimension] | None = None
    images: str | None = None  # the text between the brackets of a coarray
    initialised: bool = False
    component: bool = False  # of a variable, whose name comes before `%`
    alias: bool = False  # by local_alias
    typed: Mention | None = None  # where its type is
    others: list[Mention] = field(
        default_factory=list
    )  # where its other attributes are, with their dimensions

    @property
    def deferred(self) -> bool:
        """Does the program allocate it?"""
        return bool(self.attributes & {"allocatable", "pointer"})


@dataclass(frozen=True)
class Heading:
    """What stands before the items of a statement: the type, the attributes, the dimensions for all."""

    type_text: str | None
    attributes: set[str]
    dimensions: list[Dimension] | None
    images: str | None
    items: list[Word]


def heading(logical: Logical, words: list[Word]) -> Heading | None:
    """The heading of a statement that declares names, None of any other statement."""
    first = words[0].text
    if first in INTRINSIC:
        return _typed(logical, words)
    if first in _OF_DIMENSIONS or first in _OF_NAMES:
        at = 1
        if first == "intent" and len(words) > 1 and words[1].text == "(":
            at = closing(words, 1) + 1
        items = words[at:]
        while items and items[0].text == ":":
            items = items[1:]
        return Heading(None, {first}, None, None, items)
    return None


def _typed(logical: Logical, words: list[Word]) -> Heading | None:
    at = 2 if words[0].text == "double" else 1
    if words[0].text in ("type", "class") and (len(words) < 2 or words[1].text != "("):
        return None  # the definition of a type
    if len(words) > at and words[at].text == "*":
        at += 1
        at = closing(words, at) + 1 if len(words) > at and words[at].text == "(" else at + 1
    elif len(words) > at and words[at].text == "(":
        at = closing(words, at) + 1
    type_text = written(logical, words[:at])
    rest = words[at:]
    marks = next((n for n in range(len(rest) - 1) if rest[n].text == rest[n + 1].text == ":"
                  and _depth(rest[:n]) == 0), None)  # fmt: skip
    if marks is None:
        if not rest or rest[0].kind != "name":
            return None
        return Heading(type_text, set(), None, None, rest)
    attributes, dimensions, images = set(), None, None
    for attribute in split(rest[:marks], ",")[1:]:
        if not attribute:
            continue
        attributes.add(attribute[0].text)
        if attribute[0].text == "dimension":
            dimensions = dimensions_of(logical, attribute[2:-1])
        elif attribute[0].text == "codimension":
            images = written(logical, attribute[2:-1])
    return Heading(type_text, attributes, dimensions, images, rest[marks + 2 :])


def _depth(words: list[Word]) -> int:
    return sum((word.text in ("(", "[")) - (word.text in (")", "]")) for word in words if word.kind == "mark")


def dimensions_of(logical: Logical, words: list[Word]) -> list[Dimension]:
    """The bounds between the parentheses of an array."""
    dimensions = []
    for part in split(words, ","):
        bounds = split(part, ":")
        texts = [written(logical, bound) or None for bound in bounds]
        if len(texts) == 1:
            texts = [None, texts[0]]
        assumed = texts[1] == "*"
        dimensions.append(Dimension(texts[0], None if assumed else texts[1], assumed))
    return dimensions


def declare(entities: dict[str, Entity], logical: Logical, words: list[Word]) -> None:
    """Note what a statement says of each name that it declares."""
    head = heading(logical, words)
    if head is None:
        return
    items = split(_without_common(head), ",")
    for number, item in enumerate(items):
        if not item or item[0].kind != "name":
            continue
        word = item[0]
        entity = entities.setdefault(word.text, Entity(word.text, word))
        entity.attributes |= head.attributes
        mention = Mention(logical, items, number, word)
        if head.type_text is not None:
            entity.type_text, entity.typed, entity.word = head.type_text, mention, word
        else:
            entity.others.append(mention)
        if head.dimensions is not None:
            entity.dimensions = head.dimensions
        if head.images is not None:
            entity.images = head.images
        _item(entity, logical, item, head)


def _without_common(head: Heading) -> list[Word]:
    """The items of a statement; the names of COMMON blocks and of SAVE are none of these."""
    if "common" not in head.attributes:
        return head.items
    items: list[Word] = []
    inside = False
    for word in head.items:
        if word.text == "/":
            inside = not inside
        elif not inside:
            items.append(word)
    return items


def _item(entity: Entity, logical: Logical, item: list[Word], head: Heading) -> None:
    at = 1
    if "parameter" in head.attributes and head.type_text is None:
        return
    if len(item) > at and item[at].text == "(":
        end = closing(item, at)
        entity.dimensions = dimensions_of(logical, item[at + 1 : end])
        at = end + 1
    if len(item) > at and item[at].text == "[":
        end = closing(item, at)
        entity.images = written(logical, item[at + 1 : end])
        at = end + 1
    if len(item) > at and item[at].text == "*" and head.type_text is not None:
        length = item[at:]
        equal = next((n for n, word in enumerate(length) if word.text == "="), len(length))
        entity.type_text = (
            f"{head.type_text.split('(')[0].split('*')[0].strip()}{written(logical, length[:equal])}"
        )
        at += equal
    entity.initialised = entity.initialised or len(item) > at
