"""LOCK and UNLOCK: coarrays of type(lock_type), which the run-time library keeps."""

from __future__ import annotations

from peerway_xacc.fortran.coarray_memory import symbol_of, where
from peerway_xacc.fortran.coindexed import Coindexed, call_items, coarray_at, edited, image_of, surround
from peerway_xacc.fortran.declarations import Entity
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import closing, split, written
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import quoted

_STATES = (
    "use, intrinsic :: iso_fortran_env, only: pwx_locked => stat_locked, pwx_unlocked => stat_unlocked, "
    "pwx_locked_there => stat_locked_other_image"
)


def is_lock(entity: Entity) -> bool:
    """Is a coarray one of locks?"""
    return (entity.type_text or "").lower().replace(" ", "") == "type(lock_type)"


def declare_lock(unit: FortranUnit, entity: Entity) -> None:
    """The lock's own memory in the program is of no use; the type is not one without coarrays."""
    typed = entity.typed
    if typed is None or entity.name != typed.word.text:
        raise Refused(entity.word.place, f"declare '{entity.name}' with its type")
    if "allocatable" in entity.attributes:
        raise Refused(entity.word.place, f"'{entity.name}' is allocatable; locks are not supported so yet")
    words = unit.structure.by_number[typed.logical.number].words
    unit.generated.edit(typed.logical.number, words[0].start, words[closing(words, 1)].end, "integer(1)")


def set_up_lock(unit: FortranUnit, scope: Scope, entity: Entity, lowers: list[str]) -> Call:
    """The call that sets a coarray of locks up, once."""
    symbol, arguments = symbol_of(scope, entity), Arguments()
    rank = len(lowers)
    lines = [f"{symbol}__clb[{rank - 1 - at}] = {arguments.c_text(text)};" for at, text in enumerate(lowers)]
    lines += [f"{symbol}__c.size[{rank - 1 - d}] = c0->dim[{d}].extent;" for d in range(rank)]
    count = f"(long)pwx_f_count(c0), {where(entity.word.place)}"
    lines.append(f"if (!{symbol}__k.state) pwx_locks_init(&{symbol}__k, {quoted(entity.name)}, {count});")
    return Call(unit.name("locks"), lines, arguments.texts, [("any", entity.name)])


def lock(unit: FortranUnit, statement: Statement, at: int) -> None:
    words = statement.words
    verb = words[at].text
    plain, named = call_items(words, at + 1)
    reference = coarray_at(unit, statement, at + 2) if len(plain) == 1 else None
    if reference is None or not is_lock(reference.entity):
        raise Refused(words[at].place, f"{verb.upper()} needs a coarray of type(lock_type)")
    allowed = ("stat", "errmsg", "acquired_lock") if verb == "lock" else ("stat", "errmsg")
    wrong = next((name for name in named if name not in allowed), None)
    if wrong:
        raise Refused(words[at].place, f"{verb.upper()} has no {wrong}=; there are {', '.join(allowed)}")
    arguments = Arguments()
    variable = f"pwx_k{statement.number}"
    which = f"&{reference.symbol}__k, {_element(unit, statement, reference, arguments)}, "
    which += image_of(unit, statement, reference, arguments)
    fails = f"{int('stat' in named)}, {where(words[at].place)}"
    lines = [f"c0[1] = pwx_unlock({which}, {fails});"]
    if verb == "lock":
        acquired = "&acquired" if "acquired_lock" in named else "0"
        lines = ["int acquired = 0;", f"c0[1] = pwx_lock({which}, {acquired}, {fails});", "c0[0] = acquired;"]
    call = Call(unit.name(verb), lines, arguments.texts, [("numbers", variable)])
    unit.generated.declare(statement.scope, f"integer(8) :: {variable}(2)")
    text = unit.generated.call(statement.scope, call)
    unit.generated.edit(statement.number, words[at].start, len(statement.logical.text), text)
    behind = []
    if "acquired_lock" in named:
        behind.append(f"{written(statement.logical, named['acquired_lock'])} = {variable}(1) /= 0")
    if "stat" in named:
        unit.uses_of.setdefault(statement.scope.number, set()).add(_STATES)
        states = "[0, pwx_locked, pwx_unlocked, pwx_locked_there]"
        unit.generated.declare(statement.scope, f"integer, parameter :: pwx_states(0:3) = {states}")
        behind.append(f"{written(statement.logical, named['stat'])} = pwx_states({variable}(2))")
    surround(unit, statement, at if behind else 0, [], behind)


def _element(unit: FortranUnit, statement: Statement, reference: Coindexed, arguments: Arguments) -> str:
    """Which of the locks of an image is meant, as C text."""
    rank = len(reference.entity.dimensions or ())
    parts = split(reference.subscripts, ",") if reference.subscripts else []
    if len(parts) != rank or any(len(split(part, ":")) > 1 for part in parts):
        message = f"'{reference.entity.name}' has {counted(rank, 'dimension')}; name one of its locks"
        raise Refused(reference.words[0].place, message)
    text = "0"
    for at in range(rank - 1, -1, -1):
        d = rank - 1 - at
        index = arguments.c_text(edited(unit, statement, parts[at]))
        text = f"({text}) * {reference.symbol}__c.size[{d}] + ({index} - {reference.symbol}__clb[{d}])"
    return text
