"""References to what other images have, `x(1:3)[2]`: their sections and images, and temporaries for them."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran import cobounds
from peerway_xacc.fortran.coarray_memory import symbol_of, where
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments, place_of
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused, counted


@dataclass(frozen=True)
class Coindexed:
    """`x(1:3)[2]` in a statement: its words from the name to the last bracket. Without `images` it is this
    image's own.
    """

    scope: Scope
    entity: Entity
    words: list[Word]
    subscripts: list[Word] | None  # between the parentheses
    images: list[Word] | None
    start: int  # numbers of words in the statement
    end: int

    @property
    def symbol(self) -> str:
        """How the names of its descriptor begin."""
        return symbol_of(self.scope, self.entity)


# ---- statements ----


def action_of(statement: Statement) -> int:
    """The number of the word that begins what a statement executes, behind the condition of a one-line IF."""
    words = statement.words
    if words[0].text != "if" or len(words) < 2 or words[1].text != "(":
        return 0
    action = closing(words, 1) + 1
    return action if action < len(words) and words[action].text not in ("then", "=", "%") else 0


def surround(
    unit: FortranUnit, statement: Statement, action: int, before: list[str], behind: list[str]
) -> None:
    """Put statements before and behind an action; that of a one-line IF becomes a block."""
    if action:
        unit.generated.split(statement.number, statement.words[action].start, before)
        unit.generated.behind(statement.number, *behind, "end if")
        return
    unit.generated.before(statement.number, *before)
    unit.generated.behind(statement.number, *behind)


def edited(unit: FortranUnit, statement: Statement, words: list[Word]) -> str:
    """What a statement has for some words in a row, with what was put into it so far: inquiry functions."""
    return unit.generated.edited(statement.number, words[0].start, words[-1].end) if words else ""


def call_items(words: list[Word], opening: int) -> tuple[list[list[Word]], dict[str, list[Word]]]:
    """What stands between parentheses: the items, and those with a name by it."""
    if opening >= len(words) or words[opening].text != "(":
        return [], {}
    items = [item for item in split(words[opening + 1 : closing(words, opening)], ",") if item]
    named = {item[0].text: item[2:] for item in items if len(item) > 2 and item[1].text == "="}
    return [item for item in items if not (len(item) > 2 and item[1].text == "=")], named


# ---- references ----


def coarray_at(unit: FortranUnit, statement: Statement, at: int) -> Coindexed | None:
    """The coarray that a word names, with the subscripts and images behind it."""
    words = statement.words
    word = words[at]
    declared = unit.fortran.entity(word.text, statement.scope) if word.kind == "name" else None
    if declared is None or declared[1].images is None or (at and words[at - 1].text == "%"):
        return None
    end, subscripts, images = at, None, None
    if at + 1 < len(words) and words[at + 1].text == "(":
        end = closing(words, at + 1)
        subscripts = words[at + 2 : end]
    if end + 1 < len(words) and words[end + 1].text == "[":
        opening = end + 1
        end = closing(words, opening)
        images = words[opening + 1 : end]
    return Coindexed(*declared, words[at : end + 1], subscripts, images, at, end)


def _sections(
    unit: FortranUnit, statement: Statement, reference: Coindexed, arguments: Arguments
) -> tuple[str, int, str]:
    """The section as C text, its rank, and how Fortran writes it at this image."""
    entity = reference.entity
    rank = len(entity.dimensions or ())
    low = f"{reference.symbol}__clb"
    coarray = f"{reference.symbol}__c"
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
        texts = [edited(unit, statement, bound) for bound in split(part, ":")]
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
    subscripts = f"({edited(unit, statement, reference.subscripts)})" if reference.subscripts else ""
    return text, ranked, f"{entity.name}{subscripts}"


def image_of(unit: FortranUnit, statement: Statement, reference: Coindexed, arguments: Arguments) -> str:
    """The number of the image, counted from 0, as C text."""
    assert reference.entity.images is not None
    if reference.images is None:
        return "xmpc_this_image()"
    subscripts = [edited(unit, statement, part) for part in split(reference.images, ",")]
    if len(subscripts) != cobounds.rank_of(reference.entity):
        dimensions = counted(cobounds.rank_of(reference.entity), "dimension")
        message = f"'{reference.entity.name}' has {dimensions} of images"
        raise Refused(place_of(reference.images or reference.words), message)
    return cobounds.image_number(reference.scope, reference.entity, subscripts, arguments)


# ---- transfers ----


def temporary(
    unit: FortranUnit, statement: Statement, kind: str | None, rank: int, local: str
) -> tuple[str, list[str]]:
    """A variable of a type, with the shape of a section, and the statements that make it."""
    name = unit.output.new_name("pwx_c").replace("__", "")
    if rank == 0:
        unit.temporaries.setdefault(statement.scope.number, []).append(f"{kind} :: {name}")
        return name, [f"{name} = {local}"]
    shape = ",".join(":" * rank)
    unit.temporaries.setdefault(statement.scope.number, []).append(f"{kind}, allocatable :: {name}({shape})")
    return name, [f"if (allocated({name})) deallocate({name})", f"allocate({name}, source={local})"]


def fetched(unit: FortranUnit, statement: Statement, reference: Coindexed) -> tuple[str, int, list[str]]:
    """A temporary with its rank, and the statements that fetch what an image has into it."""
    arguments = Arguments()
    section, rank, local = _sections(unit, statement, reference, arguments)
    name, lines = temporary(unit, statement, reference.entity.type_text, rank, local)
    image = image_of(unit, statement, reference, arguments)
    place = where(reference.words[0].place)
    call = Call(unit.name("get"), [
        "const pwx_section here = pwx_f_section(c0);",
        f"pwx_coarray_get(&here, &{reference.symbol}__c, {image}, {section}, 0, {place});",
    ], arguments.texts, [("any", name)])  # fmt: skip
    return name, rank, [*lines, unit.generated.call(statement.scope, call)]


def sent(unit: FortranUnit, statement: Statement, reference: Coindexed) -> tuple[str, int, list[str], str]:
    """A temporary with its rank, the statements that make it, and the one that puts it to an image."""
    arguments = Arguments()
    section, rank, local = _sections(unit, statement, reference, arguments)
    name, lines = temporary(unit, statement, reference.entity.type_text, rank, local)
    image = image_of(unit, statement, reference, arguments)
    place = where(reference.words[0].place)
    call = Call(unit.name("put"), [
        "const pwx_section here = pwx_f_section(c0);",
        f"pwx_coarray_put(&{reference.symbol}__c, {image}, {section}, &here, 0, {place});",
        f"pwx_sync_memory({place});",
    ], arguments.texts, [("any", name)])  # fmt: skip
    return name, rank, lines, unit.generated.call(statement.scope, call)
