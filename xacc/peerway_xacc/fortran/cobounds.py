"""The bounds of a coarray's images, as in `x[0:1, *]`, and the functions that inquire about them."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran import image_sets
from peerway_xacc.fortran.coarray_memory import symbol_of
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit, linkage
from peerway_xacc.fortran.words import Word, closing, split, words_in
from peerway_xacc.frontend.diagnostics import Refused, counted

FUNCTIONS = ("this_image", "num_images", "lcobound", "ucobound", "image_index")


@dataclass(frozen=True)
class Bound:
    """One dimension of images, as Fortran text; the last one has no extent of its own."""

    lower: str
    extent: str


def rank_of(entity: Entity) -> int:
    """The number of dimensions of images."""
    return len(_parts(entity))


def _parts(entity: Entity) -> list[list[Word]]:
    return split(words_in(entity.images or "*", entity.word.place), ",")


def _bound(words: list[Word]) -> Bound:
    sides = [" ".join(word.text for word in side) for side in split(words, ":")]
    lower, upper = (sides[0], sides[1]) if len(sides) > 1 else ("1", sides[0])
    lower = lower or "1"
    return Bound(lower, upper if lower == "1" else f"(({upper}) - ({lower}) + 1)")


def is_kept(entity: Entity) -> bool:
    """Are the bounds those of an ALLOCATE, which the C beside the Fortran keeps?"""
    return "allocatable" in entity.attributes


def memory(scope: Scope, entity: Entity) -> str:
    """The declaration, in C, of what keeps bounds: of each dimension the lower bound and the extent."""
    return f"{linkage(scope)}long {symbol_of(scope, entity)}__co[{2 * rank_of(entity)}];"


def keep(unit: FortranUnit, scope: Scope, entity: Entity, item: list[Word]) -> Call:
    """The call that keeps the bounds that an item of ALLOCATE has between brackets. Raises Refused."""
    opening = next((at for at, word in enumerate(item) if word.text == "["), None)
    parts = split(item[opening + 1 : closing(item, opening)], ",") if opening is not None else []
    if len(parts) != rank_of(entity):
        message = f"allocate '{entity.name}' with {counted(rank_of(entity), 'dimension')} of images"
        raise Refused(item[0].place, f"{message}, as in [{', '.join(['2'] * (rank_of(entity) - 1) + ['*'])}]")
    arguments, lines = Arguments(), []
    for at, part in enumerate(parts):
        bound = _bound(part)
        extent = arguments.c_text(bound.extent) if at + 1 < len(parts) else "0"
        lines.append(f"{symbol_of(scope, entity)}__co[{2 * at}] = {arguments.c_text(bound.lower)};")
        lines.append(f"{symbol_of(scope, entity)}__co[{2 * at + 1}] = {extent};")
    return Call(unit.name("cobounds"), lines, arguments.texts)


def registered(scope: Scope, entity: Entity, verb: str) -> str:
    """C that keeps bounds with the memory of a coarray (keep_bounds), or takes them from there (bounds)."""
    symbol = symbol_of(scope, entity)
    return f"pwx_coarray_{verb}(&{symbol}__c, {symbol}__co, {2 * rank_of(entity)});"


def image_number(scope: Scope, entity: Entity, subscripts: list[str], arguments: Arguments) -> str:
    """The number of an image, counted from 0, as C text, from its subscripts as Fortran text."""
    kept = f"{symbol_of(scope, entity)}__co"
    text, size = "0", "1"
    for at, (subscript, part) in enumerate(zip(subscripts, _parts(entity), strict=True)):
        bound = _bound(part)
        lower = f"{kept}[{2 * at}]" if is_kept(entity) else _c_text(bound.lower, arguments)
        text += f" + ({arguments.c_text(subscript)} - {lower}) * ({size})"
        if at + 1 < len(subscripts):
            extent = f"{kept}[{2 * at + 1}]" if is_kept(entity) else _c_text(bound.extent, arguments)
            size += f" * ({extent})"
    return text


def _c_text(text: str, arguments: Arguments) -> str:
    return text if text.isdigit() else arguments.c_text(text)


# ---- inquiry functions ----


def _bounds(unit: FortranUnit, statement: Statement, scope: Scope, entity: Entity) -> list[Bound]:
    """The bounds as Fortran text that a statement can have."""
    parts = _parts(entity)
    if not is_kept(entity):
        return [_bound(part) for part in parts]
    name = unit.name("cobound")
    unit.generated.top.append(
        f"int {name}_(const int* at) {{ return (int){symbol_of(scope, entity)}__co[*at]; }}"
    )
    unit.generated.declare(statement.scope, f"integer, external :: {name}")
    return [Bound(f"{name}({2 * at})", f"{name}({2 * at + 1})") for at in range(len(parts))]


def inquiry(unit: FortranUnit, statement: Statement, at: int) -> str:
    """What a call of one of the functions becomes; the word at `at` names it. Raises Refused."""
    words = statement.words
    word = words[at]
    end = closing(words, at + 1)
    parts, named = _arguments(words[at + 2 : end])
    if not parts and not named and word.text in ("this_image", "num_images"):
        return f"{_counting(unit, statement, word.text)}()"
    coarray = named.pop("coarray", None) or (parts.pop(0) if parts else [])
    declared = unit.fortran.entity(coarray[0].text, statement.scope) if len(coarray) == 1 else None
    other = "sub" if word.text == "image_index" else "dim"
    rest = named.pop(other, None) or (parts.pop(0) if parts else [])
    if word.text == "num_images" or declared is None or declared[1].images is None or parts or named:
        what = f"a coarray and {other}" if word.text != "num_images" else "no argument"
        raise Refused(word.place, f"{word.text} is supported with {what} only")
    bounds = _bounds(unit, statement, *declared)
    second = unit.generated.edited(statement.number, rest[0].start, rest[-1].end) if rest else ""
    if word.text == "image_index":
        if not second:
            raise Refused(word.place, "image_index needs a coarray and its subscripts")
        return _index(unit, statement, bounds, second, declared)
    values = _values(unit, statement, word.text, bounds, declared)
    if second.isdigit() and 1 <= int(second) <= len(values):
        return values[int(second) - 1]
    listed = f"[{', '.join(values)}]"
    if not second:
        return listed
    which = ", ".join(str(number + 1) for number in range(len(values)))
    return f"sum(merge({listed}, 0, [{which}] == ({second})))"


def _arguments(words: list[Word]) -> tuple[list[list[Word]], dict[str, list[Word]]]:
    """The arguments of a call, and those with names."""
    parts = [part for part in split(words, ",") if part]
    named = {part[0].text: part[2:] for part in parts if len(part) > 2 and part[1].text == "="}
    return [part for part in parts if len(part) < 2 or part[1].text != "="], named


def _counting(unit: FortranUnit, statement: Statement, name: str) -> str:
    unit.generated.declare(statement.scope, f"integer, external :: xmp_{name}")
    return f"xmp_{name}"


def _products(bounds: list[Bound]) -> list[str]:
    """How many images apart those are that differ by 1 in a dimension."""
    products = ["1"]
    for bound in bounds[:-1]:
        products.append(f"{products[-1]}*int({bound.extent})")
    return products


def _numbers(unit: FortranUnit, statement: Statement, declared: tuple[Scope, Entity]) -> tuple[str, str]:
    """This image's number among those of a coarray, and how many there are."""
    numbers = image_sets.number_in(unit, statement, *declared)
    counting = [f"{_counting(unit, statement, name)}()" for name in ("this_image", "num_images")]
    return numbers or (counting[0], counting[1])


def _values(
    unit: FortranUnit,
    statement: Statement,
    function: str,
    bounds: list[Bound],
    declared: tuple[Scope, Entity],
) -> list[str]:
    values = []
    this, count = ("", "") if function == "lcobound" else _numbers(unit, statement, declared)
    for bound, product in zip(bounds, _products(bounds), strict=True):
        lower, is_last = f"int({bound.lower})", bound is bounds[-1]
        if function == "lcobound":
            values.append(lower)
        elif function == "this_image":
            steps = f"({this} - 1)/({product})"
            value = f"{lower} + {steps if is_last else f'mod({steps}, int({bound.extent}))'}"
            values.append(f"merge({value}, 0, {this} > 0)")
        elif is_last:
            values.append(f"({lower} + ({count} - 1)/({product}))")
        else:
            values.append(f"({lower} + int({bound.extent}) - 1)")
    return values


def _index(
    unit: FortranUnit,
    statement: Statement,
    bounds: list[Bound],
    subscripts: str,
    declared: tuple[Scope, Entity],
) -> str:
    """image_index: 0 where there is no such image."""
    lowers = f"[{', '.join(_values(unit, statement, 'lcobound', bounds, declared))}]"
    uppers = f"[{', '.join(_values(unit, statement, 'ucobound', bounds, declared))}]"
    number = f"(1 + dot_product(int({subscripts}) - {lowers}, [{', '.join(_products(bounds))}]))"
    exists = f"all(int({subscripts}) >= {lowers}) .and. all(int({subscripts}) <= {uppers})"
    return f"merge({number}, 0, {exists} .and. {number} <= {_numbers(unit, statement, declared)[1]})"
