"""Statements about images: SYNC, LOCK, CRITICAL, this_image, collective and atomic subroutines."""

from __future__ import annotations

from peerway_xacc.fortran import cobounds, locks
from peerway_xacc.fortran.coarray_memory import where
from peerway_xacc.fortran.coindexed import (
    action_of,
    call_items,
    coarray_at,
    edited,
    fetched,
    sent,
    surround,
)
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, written
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted

_REDUCTIONS = {"co_sum": "PWX_SUM", "co_max": "PWX_MAX", "co_min": "PWX_MIN"}
_ATOMICS = ("atomic_define", "atomic_ref")


def replaced(unit: FortranUnit, statement: Statement) -> bool:
    """Replace a statement about images by a call; False if a statement is another one."""
    words, action = statement.words, action_of(statement)
    first = words[action].text
    callee = words[action + 1].text if first == "call" and action + 1 < len(words) else ""
    if callee and not _is_own(unit, callee):
        return _called(unit, statement, action, callee)
    if unit.fortran.entity(first, statement.scope) is not None or _is_assignment(words[action:]):
        return False
    if first in ("lock", "unlock") and words[action + 1 : action + 2] and words[action + 1].text == "(":
        locks.lock(unit, statement, action)
        return True
    return _synchronised(unit, statement, action)


def _is_own(unit: FortranUnit, name: str) -> bool:
    """Is this a procedure of the file?"""
    return any(
        scope.name == name and scope.kind in ("subroutine", "function") for scope in unit.structure.scopes
    )


def _is_assignment(words: list[Word]) -> bool:
    return len(words) > 1 and words[1].text == "(" and closing(words, 1) + 1 < len(words)


# ---- synchronisation ----


def _synchronised(unit: FortranUnit, statement: Statement, at: int) -> bool:
    words = statement.words
    first = words[at].text
    joined = first in ("syncall", "syncmemory", "syncimages")
    if not joined and (
        first != "sync" or at + 1 >= len(words) or words[at + 1].text not in ("all", "memory", "images")
    ):
        return False
    kind = first[4:] if joined else words[at + 1].text
    plain, named = call_items(words, at + (1 if joined else 2))
    place = where(words[at].place)
    others: list[tuple[str, str]] = []
    line = f"pwx_sync_{kind}({place});"
    if kind == "images":
        if len(plain) != 1:
            raise Refused(words[at].place, "SYNC IMAGES needs the images, or '*'")
        if plain[0][0].text == "*":
            line = f"pwx_sync_all({place});"
        else:
            others = [("any", written(statement.logical, plain[0]))]
            line = f"pwx_f_sync_images(c0, {place});"
    _call(unit, statement, at, Call(unit.name("sync"), [line], others=others), named)
    return True


def _call(unit: FortranUnit, statement: Statement, at: int, call: Call, named: dict[str, list[Word]]) -> None:
    """Replace an action by a call that cannot fail: what its `stat` names becomes 0."""
    text = unit.generated.call(statement.scope, call)
    unit.generated.edit(statement.number, statement.words[at].start, len(statement.logical.text), text)
    if "stat" in named:
        surround(unit, statement, at, [], [f"{written(statement.logical, named['stat'])} = 0"])


def inquire(unit: FortranUnit, statement: Statement) -> None:
    """this_image, num_images and the functions about bounds of images; those in brackets first."""
    words = statement.words
    for at in range(len(words) - 2, -1, -1):
        word = words[at]
        if word.text not in cobounds.FUNCTIONS or words[at + 1].text != "(":
            continue
        if unit.fortran.entity(word.text, statement.scope) is not None or (at and words[at - 1].text == "%"):
            continue
        text = cobounds.inquiry(unit, statement, at)
        unit.generated.edit(statement.number, word.start, words[closing(words, at + 1)].end, text)


# ---- critical ----


def criticals(unit: FortranUnit, scope: Scope) -> None:
    """CRITICAL constructs of a scope: each has a lock, at the first image."""
    inside: list[tuple[Statement, str]] = []
    for statement in scope.statements:
        words = statement.words
        texts = [word.text for word in words]
        named = 2 if len(texts) > 2 and texts[1] == ":" else 0
        if texts[named] == "critical" and (len(texts) == named + 1 or texts[named + 1] == "("):
            if not _is_assignment(words[named:]):
                name = unit.name("critical")
                inside.append((statement, name))
                unit.generated.top.append(f"static pwx_locks {name};")
                place = where(words[named].place)
                unit.program_setups.append(f'pwx_locks_init(&{name}, "critical", 1, {place});')
                call = Call(unit.name("enter"), [f"pwx_lock(&{name}, 0, 0, 0, 0, {place});"])
                _, items = call_items(words, named + 1)
                _call(unit, statement, 0, call, items)
        elif texts[:2] == ["end", "critical"] or texts[0] == "endcritical":
            if not inside:
                raise Refused(words[0].place, "there is no CRITICAL that this could end")
            _, name = inside.pop()
            call = Call(unit.name("leave"), [f"pwx_unlock(&{name}, 0, 0, 0, {where(words[0].place)});"])
            _call(unit, statement, 0, call, {})
        elif inside and words[-1].text == "return" and (len(words) == 1 or action_of(statement)):
            note = (inside[-1][0].words[0].place, "the construct begins here")
            raise Refused(words[-1].place, "RETURN leaves CRITICAL before its end", note)
    if inside:
        raise Refused(inside[-1][0].words[0].place, "this CRITICAL has no end")


# ---- intrinsic subroutines ----


def _called(unit: FortranUnit, statement: Statement, at: int, callee: str) -> bool:
    """A call of an intrinsic subroutine about images."""
    word = statement.words[at + 1]
    if callee in _ATOMICS:
        _atomic(unit, statement, at, callee)
    elif callee in _REDUCTIONS or callee == "co_broadcast":
        _collective(unit, statement, at, callee)
    elif callee == "co_reduce":
        raise Refused(
            word.place, "co_reduce is not supported; there are co_sum, co_max, co_min, co_broadcast"
        )
    elif callee.startswith("atomic_"):
        message = f"{callee} is not supported: the run-time library has atomic_define and atomic_ref only; "
        raise Refused(word.place, message + "change the variable between LOCK and UNLOCK")
    else:
        return False
    return True


def _collective(unit: FortranUnit, statement: Statement, at: int, callee: str) -> None:
    word = statement.words[at + 1]
    plain, named = call_items(statement.words, at + 2)
    value = plain.pop(0) if plain else named.get("a") or named.get("source")
    if value is None:
        raise Refused(word.place, f"{callee} needs a variable")
    result = named.get("result")
    if callee in _REDUCTIONS and plain and _is_result(unit, statement, plain[0]):
        result = plain.pop(0)
    text, place = written(statement.logical, result or value), where(word.place)
    arguments = Arguments()
    if callee == "co_broadcast":
        source = plain[0] if plain else named.get("source_image")
        if source is None:
            raise Refused(word.place, "co_broadcast needs the image that has the value")
        image = arguments.c_text(edited(unit, statement, source))
        line = f"pwx_co_broadcast({image} - 1, c0->base_addr, pwx_f_count(c0) * c0->elem_len, {place});"
    else:
        line = f"pwx_f_co_reduce({_REDUCTIONS[callee]}, c0, {quoted(text)}, {place});"
    if len(plain) > 1 and "stat" not in named:
        named = {**named, "stat": plain[1]}
    call = Call(unit.name("co"), [line], arguments.texts, [("any", text)])
    if result is None:
        _call(unit, statement, at, call, named)
        return
    copy = f"{text} = {written(statement.logical, value)}"
    unit.generated.edit(statement.number, statement.words[at].start, len(statement.logical.text), copy)
    surround(unit, statement, at, [], [unit.generated.call(statement.scope, call)])


def _is_result(unit: FortranUnit, statement: Statement, item: list[Word]) -> bool:
    """Is the second argument of a reduction the variable that gets the result, as the Omni compiler has it?
    The result image of Fortran 2018 is one integer.
    """
    declared = unit.fortran.entity(item[0].text, statement.scope) if item[0].kind == "name" else None
    if declared is None or "parameter" in declared[1].attributes:
        return False
    kind, dimensions = (declared[1].type_text or "integer").lower(), declared[1].dimensions
    is_section = any(word.text == ":" for word in item)
    return not kind.startswith("integer") or is_section or (dimensions is not None and len(item) == 1)


def _atomic(unit: FortranUnit, statement: Statement, at: int, callee: str) -> None:
    """`call atomic_define(x[2], value)` puts one element, and `call atomic_ref(value, x[2])` gets it."""
    words, logical = statement.words, statement.logical
    parts, named = call_items(words, at + 2)
    if len(parts) < 2:
        raise Refused(words[at + 1].place, f"{callee} needs an atom and a value, in their order")
    atom, value = (parts[0], parts[1]) if callee == "atomic_define" else (parts[1], parts[0])
    reference = coarray_at(unit, statement, words.index(atom[0]))
    if reference is None or reference.words[-1] is not atom[-1]:
        raise Refused(atom[0].place, f"the atom of {callee} must be a coarray, or an element of one")
    begin, end = words[at].start, len(logical.text)
    text = written(logical, value)
    if callee == "atomic_define":
        name, rank, before, call = sent(unit, statement, reference)
        unit.generated.edit(statement.number, begin, end, f"{name} = {text}")
        behind = [call]
    else:
        name, rank, before = fetched(unit, statement, reference)
        unit.generated.edit(statement.number, begin, end, f"{text} = {name}")
        look = Call(unit.name("look"), [f"pwx_look_again({where(atom[0].place)});"])
        behind = [unit.generated.call(statement.scope, look)]
    if rank:
        raise Refused(atom[0].place, f"the atom of {callee} must be one element")
    status = parts[2] if len(parts) > 2 else named.get("stat")
    if status:
        behind.append(f"{written(logical, status)} = 0")
    surround(unit, statement, at, before, behind)
