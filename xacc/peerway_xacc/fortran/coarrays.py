"""Coarrays of Fortran 2008: the arrays stay the program's own; transfers and synchronisation become calls.

`x(1:3)[2] = expr` puts a temporary that has the type of x, so Fortran converts and spreads the value. In an
expression, `x(1:3)[2]` becomes a temporary that a call before the statement fills.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran.arrays import is_dummy
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments, place_of
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit, linkage
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.tokens import quoted

_REFUSED = {
    "critical": "CRITICAL", "lock": "LOCK", "unlock": "UNLOCK", "co_sum": "co_sum", "co_max": "co_max",
    "co_min": "co_min", "co_broadcast": "co_broadcast", "co_reduce": "co_reduce",
}  # fmt: skip
_OPENING = ("do", "else", "elseif", "select", "case", "where", "elsewhere", "forall", "associate", "block")


@dataclass(frozen=True)
class _Coindexed:
    """`x(1:3)[2]` in a statement: its words from the name to the bracket that closes."""

    scope: Scope
    entity: Entity
    words: list[Word]
    subscripts: list[Word] | None  # between the parentheses
    images: list[Word]
    start: int  # numbers of words in the statement
    end: int


def coarrays(unit: FortranUnit) -> None:
    """Declarations, transfers and synchronisation of a file."""
    for scope in unit.structure.scopes:
        for entity in scope.entities.values():
            if entity.images is not None:
                with unit.diagnostics.collecting():
                    _declare(unit, scope, entity)
    for statement in unit.structure.statements:
        with unit.diagnostics.collecting():
            _allocate(unit, statement)
            _synchronise(unit, statement)
            _inquire(unit, statement)
            _transfer(unit, statement)


def _symbol(scope: Scope, entity: Entity) -> str:
    return f"{entity.name}{scope.suffix}"


# ---- declarations ----


def _declare(unit: FortranUnit, scope: Scope, entity: Entity) -> None:
    """Take the images out of a declaration, and set the coarray up with its scope."""
    place, name = entity.word.place, entity.name
    if is_dummy(scope, name):
        raise Refused(place, f"'{name}' is a dummy argument; coarrays as arguments are not supported yet")
    lives_on = scope.kind in ("module", "program") or "save" in entity.attributes
    if not lives_on and "allocatable" not in entity.attributes:
        raise Refused(place, f"the coarray '{name}' of a procedure must be SAVE or ALLOCATABLE")
    if not (entity.type_text or "") or (entity.type_text or "").lower().startswith("class"):
        raise Refused(place, f"declare the coarray '{name}' with a type that is not CLASS")
    link, rank = linkage(scope), len(entity.dimensions or ())
    symbol = _symbol(scope, entity)
    unit.generated.top += [f"{link}pwx_coarray {symbol}__c;", f"{link}long {symbol}__clb[{max(rank, 1)}];"]
    if scope.foreign:
        return
    for mention in [*([entity.typed] if entity.typed else []), *entity.others]:
        _strip(unit, mention.logical.number, mention.items[mention.number])
        unit.generated.behind(mention.logical.number)
    typed = entity.typed or entity.others[0]
    _strip_attribute(unit, typed.logical.number)
    if "target" not in entity.attributes and "pointer" not in entity.attributes:
        unit.generated.next_to(typed.logical.number, f"target :: {name}")  # others change it behind our back
    if "allocatable" not in entity.attributes:
        lowers = [dimension.lower or "1" for dimension in entity.dimensions or ()]
        unit.set_up_calls.setdefault(scope.number, []).append(_init(unit, scope, entity, lowers, place))


def _strip(unit: FortranUnit, number: int, item: list[Word]) -> None:
    """Take `[*]` out of the item of a declaration."""
    for at, word in enumerate(item):
        if word.text == "[":
            unit.generated.edit(number, word.start, item[closing(item, at)].end, "")
            return


def _strip_attribute(unit: FortranUnit, number: int) -> None:
    """Take `codimension[*]` out of the attributes of a declaration."""
    words = unit.structure.by_number[number].words if number in unit.structure.by_number else []
    for at, word in enumerate(words[:-1]):
        if word.text == "codimension" and words[at + 1].text == "[" and at and words[at - 1].text == ",":
            end = words[closing(words, at + 1)].end
            unit.generated.edit(number, words[at - 1].start, end, "")


def _init(unit: FortranUnit, scope: Scope, entity: Entity, lowers: list[str], place: Place) -> Call:
    symbol = _symbol(scope, entity)
    rank = len(lowers)
    arguments = Arguments()
    lines = [f"{symbol}__clb[{rank - 1 - at}] = {arguments.c_text(text)};" for at, text in enumerate(lowers)]
    sizes = ", ".join(f"c0->dim[{rank - 1 - d}].extent" for d in range(rank)) or "1"
    where = f"&(const pwx_where){{{quoted(place.file)}, {place.line}}}"
    lines += [
        f"{symbol}__c.base = c0->base_addr;",
        f"pwx_coarray_init(&{symbol}__c, {quoted(entity.name)}, c0->elem_len, {rank}, "
        f"(const long[]){{{sizes}}}, {where});",
    ]
    return Call(unit.name("coarray"), lines, arguments.texts, [("kept", entity.name)])


def _allocate(unit: FortranUnit, statement: Statement) -> None:
    """`allocate(x(n)[*])`."""
    words = statement.words
    verb = next((n for n, word in enumerate(words[:-1]) if word.text in ("allocate", "deallocate")), None)
    if verb is None or words[verb + 1].text != "(" or (verb and words[0].text != "if"):
        return
    for item in split(words[verb + 2 : closing(words, verb + 1)], ","):
        declared = unit.fortran.entity(item[0].text, statement.scope) if item else None
        if declared is None or declared[1].images is None:
            continue
        scope, entity = declared
        if words[verb].text == "deallocate":
            raise Refused(item[0].place, f"DEALLOCATE of the coarray '{entity.name}' is not supported yet")
        if verb:
            raise Refused(item[0].place, f"allocate the coarray '{entity.name}' in a statement of its own")
        _strip(unit, statement.number, item)
        opening = 1 if len(item) > 1 and item[1].text == "(" else None
        inside = item[2 : closing(item, 1)] if opening else []
        lowers = []
        for part in split(inside, ",") if inside else []:
            bounds = split(part, ":")
            lowers.append(written(statement.logical, bounds[0]) if len(bounds) > 1 else "1")
        call = _init(unit, scope, entity, lowers, item[0].place)
        unit.generated.next_to(statement.number, unit.generated.call(statement.scope, call))


# ---- transfers ----


def _coindexed(unit: FortranUnit, statement: Statement) -> list[_Coindexed]:
    references: list[_Coindexed] = []
    words, at = statement.words, 0
    while at < len(words):
        word = words[at]
        declared = unit.fortran.entity(word.text, statement.scope) if word.kind == "name" else None
        if declared is None or declared[1].images is None or (at and words[at - 1].text == "%"):
            at += 1
            continue
        end, subscripts = at, None
        if at + 1 < len(words) and words[at + 1].text == "(":
            end = closing(words, at + 1)
            subscripts = words[at + 2 : end]
        if end + 1 >= len(words) or words[end + 1].text != "[":
            if (
                end + 1 < len(words)
                and words[end + 1].text == "%"
                and any(w.text == "[" for w in words[end:])
            ):
                raise Refused(
                    word.place,
                    f"a component of the coarray '{word.text}' at another image is not supported yet",
                )
            at += 1
            continue
        last = closing(words, end + 1)
        if last + 1 < len(words) and words[last + 1].text in ("%", "("):
            raise Refused(
                word.place, f"a component of the coarray '{word.text}' at another image is not supported yet"
            )
        references.append(
            _Coindexed(*declared, words[at : last + 1], subscripts, words[end + 2 : last], at, last)
        )
        at = last + 1
    return references


def _transfer(unit: FortranUnit, statement: Statement) -> None:
    """Replace what other images have by temporaries, and calls that bring or take these."""
    if statement.number < statement.scope.first_executable:
        return
    words = statement.words
    if words[0].text in ("allocate", "deallocate"):
        return
    references = _coindexed(unit, statement)
    if not references:
        return
    action = 0
    if words[0].text == "if" and len(words) > 1 and words[1].text == "(":
        action = closing(words, 1) + 1
    one_line = 0 < action < len(words) and words[action].text != "then"
    construct = words[2].text if len(words) > 2 and words[1].text == ":" else words[0].text
    if construct in _OPENING and not (
        len(words) > 1
        and words[1].text in ("=", "(", "%")
        and construct not in ("elseif", "select", "case", "where")
    ):
        raise Refused(
            place_of(references[0].words),
            f"a coarray of another image in {construct.upper()} is not supported yet; "
            "assign it to a variable before",
        )
    condition = [reference for reference in references if one_line and reference.start < action]
    rest = [reference for reference in references if reference not in condition]
    begin = action if one_line else 0
    put = next(
        (reference for reference in rest if reference.start == begin and _is_assigned(words, reference)), None
    )
    before: list[str] = []
    for reference in condition:
        before += _get(unit, statement, reference)
    inner: list[str] = []
    for reference in rest:
        if reference is not put:
            inner += _get(unit, statement, reference)
    behind: list[str] = []
    if put:
        prepared, behind = _put(unit, statement, put)
        inner += prepared
    if one_line and rest:
        unit.generated.before(statement.number, *before)
        unit.generated.split(statement.number, words[action].start, inner)
        unit.generated.behind(statement.number, *behind, "end if")
        return
    unit.generated.before(statement.number, *before, *inner)
    unit.generated.behind(statement.number, *behind)


def _is_assigned(words: list[Word], reference: _Coindexed) -> bool:
    return reference.end + 1 < len(words) and words[reference.end + 1].text == "="


def _sections(statement: Statement, reference: _Coindexed, arguments: Arguments) -> tuple[str, int, str]:
    """The section as C text, its rank, and how Fortran writes it at this image."""
    entity = reference.entity
    rank = len(entity.dimensions or ())
    low = f"{_symbol(reference.scope, entity)}__clb"
    coarray = f"{_symbol(reference.scope, entity)}__c"
    if reference.subscripts is None:
        parts: list[list[Word]] = [[] for _ in range(rank)]
    else:
        parts = split(reference.subscripts, ",")
    if len(parts) != rank:
        message = (
            f"'{entity.name}' has {counted(rank, 'dimension')}, and {counted(len(parts), 'subscript')} here"
        )
        raise Refused(place_of(reference.words), message)
    triplets, ranked = [], 0
    for at, part in enumerate(parts):
        d = rank - 1 - at
        texts = [written(statement.logical, bound) for bound in split(part, ":")]
        if len(texts) == 1 and reference.subscripts is not None:
            index = arguments.c_text(texts[0])
            triplets.append(f"pwx_f_triplet({index}, {index}, 1, 1, {low}[{d}])")
            continue
        ranked += 1
        first = arguments.c_text(texts[0]) if texts[0] else f"{low}[{d}]"
        last = (
            arguments.c_text(texts[1])
            if len(texts) > 1 and texts[1]
            else f"{low}[{d}] + {coarray}.size[{d}] - 1"
        )
        step = arguments.c_text(texts[2]) if len(texts) > 2 and texts[2] else "1"
        triplets.append(f"pwx_f_triplet({first}, {last}, {step}, 0, {low}[{d}])")
    text = f"(const pwx_triplet[]){{{', '.join(triplets[::-1]) or '{0, 1, 1, 1}'}}}"
    subscripts = f"({written(statement.logical, reference.subscripts)})" if reference.subscripts else ""
    return text, ranked, f"{entity.name}{subscripts}"


def _image(statement: Statement, reference: _Coindexed, arguments: Arguments) -> str:
    """The number of the image, counted from 0, as C text."""
    assert reference.entity.images is not None
    subscripts = [written(statement.logical, part) for part in split(reference.images, ",")]
    sizes = [part.strip() for part in reference.entity.images.split(",")]
    if len(subscripts) != len(sizes) and "allocatable" not in reference.entity.attributes:
        message = f"'{reference.entity.name}' has {counted(len(sizes), 'dimension')} of images"
        raise Refused(place_of(reference.images or reference.words), message)
    if len(subscripts) > 1 and (":" in reference.entity.images):
        raise Refused(
            place_of(reference.words),
            "an image has one number here; more dimensions need their sizes, as in [2, *]",
        )
    text, size = "0", "1"
    for number, subscript in enumerate(subscripts):
        text += f" + ({arguments.c_text(subscript)} - 1) * ({size})"
        if number + 1 < len(subscripts):
            size += f" * ({arguments.c_text(sizes[number])})"
    return text


def _temporary(
    unit: FortranUnit, statement: Statement, reference: _Coindexed, rank: int, local: str
) -> tuple[str, list[str]]:
    """A variable with the type of a coarray and the shape of a section, and the statements that make it."""
    name = unit.output.new_name("pwx_c").replace("__", "")
    kind = reference.entity.type_text
    if rank == 0:
        unit.temporaries.setdefault(statement.scope.number, []).append(f"{kind} :: {name}")
        return name, [f"{name} = {local}"]
    shape = ",".join(":" * rank)
    unit.temporaries.setdefault(statement.scope.number, []).append(f"{kind}, allocatable :: {name}({shape})")
    return name, [f"if (allocated({name})) deallocate({name})", f"allocate({name}, source={local})"]


def _where(place: Place) -> str:
    return f"&(const pwx_where){{{quoted(place.file)}, {place.line}}}"


def _get(unit: FortranUnit, statement: Statement, reference: _Coindexed) -> list[str]:
    arguments = Arguments()
    section, rank, local = _sections(statement, reference, arguments)
    name, lines = _temporary(unit, statement, reference, rank, local)
    symbol = _symbol(reference.scope, reference.entity)
    image = _image(statement, reference, arguments)
    call = Call(unit.name("get"), [
        "const pwx_section here = pwx_f_section(c0);",
        f"pwx_coarray_get(&here, &{symbol}__c, {image}, {section}, 0, {_where(reference.words[0].place)});",
    ], arguments.texts, [("any", name)])  # fmt: skip
    unit.generated.edit(statement.number, reference.words[0].start, reference.words[-1].end, name)
    return [*lines, unit.generated.call(statement.scope, call)]


def _put(unit: FortranUnit, statement: Statement, reference: _Coindexed) -> tuple[list[str], list[str]]:
    arguments = Arguments()
    section, rank, local = _sections(statement, reference, arguments)
    name, lines = _temporary(unit, statement, reference, rank, local)
    symbol = _symbol(reference.scope, reference.entity)
    image = _image(statement, reference, arguments)
    call = Call(unit.name("put"), [
        "const pwx_section here = pwx_f_section(c0);",
        f"pwx_coarray_put(&{symbol}__c, {image}, {section}, &here, 0, {_where(reference.words[0].place)});",
        f"pwx_sync_memory({_where(reference.words[0].place)});",
    ], arguments.texts, [("any", name)])  # fmt: skip
    whole = f"({','.join(':' * rank)})" if rank else ""
    unit.generated.edit(statement.number, reference.words[0].start, reference.words[-1].end, name + whole)
    return lines, [unit.generated.call(statement.scope, call)]


# ---- synchronisation and inquiry ----


def _synchronise(unit: FortranUnit, statement: Statement) -> None:
    words = statement.words
    at = closing(words, 1) + 1 if words[0].text == "if" and len(words) > 1 and words[1].text == "(" else 0
    if at >= len(words):
        return
    first = words[at].text
    callee = words[at + 1].text if first == "call" and at + 1 < len(words) else ""
    if callee.startswith("atomic_") or callee in _REFUSED:
        raise Refused(words[at + 1].place, f"{callee} is not supported yet")
    alone = at + 1 == len(words) or words[at + 1].text == "("
    declared = unit.fortran.entity(first, statement.scope) is not None
    if first in ("critical", "lock", "unlock") and alone and not declared and not _is_store(words[at:]):
        raise Refused(words[at].place, f"{_REFUSED[first]} is not supported yet")
    joined = first in ("syncall", "syncmemory", "syncimages")
    if not joined and (
        first != "sync" or at + 1 >= len(words) or words[at + 1].text not in ("all", "memory", "images")
    ):
        return
    kind = first[4:] if joined else words[at + 1].text
    rest = words[at + (1 if joined else 2) :]
    inside = rest[1:-1] if rest and rest[0].text == "(" else []
    items = [item for item in split(inside, ",") if item]
    named = [item for item in items if len(item) > 1 and item[1].text == "="]
    where = _where(words[at].place)
    others: list[tuple[str, str]] = []
    line = f"pwx_sync_{kind}({where});"
    if kind == "images":
        plain = [item for item in items if item not in named]
        if len(plain) != 1:
            raise Refused(words[at].place, "SYNC IMAGES needs the images, or '*'")
        if plain[0][0].text == "*":
            line = f"pwx_sync_all({where});"
        else:
            others = [("any", written(statement.logical, plain[0]))]
            line = f"pwx_f_sync_images(c0, {where});"
    call = Call(unit.name("sync"), [line], others=others)
    text = unit.generated.call(statement.scope, call)
    for item in named:
        if item[0].text == "stat":
            unit.generated.before(statement.number, f"{written(statement.logical, item[2:])} = 0")
    unit.generated.edit(statement.number, words[at].start, len(statement.logical.text), text)


def _is_store(words: list[Word]) -> bool:
    return len(words) > 1 and words[1].text == "(" and closing(words, 1) + 1 < len(words)


def _inquire(unit: FortranUnit, statement: Statement) -> None:
    """this_image() and num_images()."""
    words = statement.words
    for at, word in enumerate(words[:-1]):
        if word.text not in ("this_image", "num_images") or words[at + 1].text != "(":
            continue
        if unit.fortran.entity(word.text, statement.scope) is not None:
            continue
        if at + 2 < len(words) and words[at + 2].text != ")":
            raise Refused(word.place, f"{word.text} with arguments is not supported yet")
        name = f"xmp_{word.text}"
        unit.generated.edit(statement.number, word.start, word.end, name)
        unit.generated.declare(statement.scope, f"integer, external :: {name}")
