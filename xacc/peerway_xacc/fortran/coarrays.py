"""Coarrays of Fortran 2008: the arrays stay the program's own; transfers and synchronisation become calls."""

from __future__ import annotations

from peerway_xacc.fortran import arrays, cobounds, image_sets, images, locks
from peerway_xacc.fortran.coarray_memory import coarray_call, symbol_of, where
from peerway_xacc.fortran.coindexed import action_of
from peerway_xacc.fortran.declarations import Entity, heading
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.transfers import transfer
from peerway_xacc.fortran.unit import FortranUnit, linkage
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend.diagnostics import Refused


def coarrays(unit: FortranUnit) -> None:
    """Declarations, transfers and synchronisation of a file."""
    for scope in unit.structure.scopes:
        with unit.diagnostics.collecting():
            images.criticals(unit, scope)
        for entity in scope.entities.values():
            if entity.images is not None:
                with unit.diagnostics.collecting():
                    _declare(unit, scope, entity)
    for statement in unit.structure.interfaces:
        _declare_in_interface(unit, statement)
    for statement in unit.structure.statements:
        with unit.diagnostics.collecting():
            _allocate(unit, statement)
            images.inquire(unit, statement)
            image_sets.surround(unit, statement)
            is_about_images = images.replaced(unit, statement)
            image_sets.check(unit, statement, is_about_images)
            if not is_about_images:
                _passed(unit, statement)
                transfer(unit, statement)


# ---- declarations ----


def _declare(unit: FortranUnit, scope: Scope, entity: Entity) -> None:
    """Take the images out of a declaration, and set the coarray up with its scope."""
    name = entity.name
    is_dummy = arrays.is_dummy(scope, name)
    is_allocatable = "allocatable" in entity.attributes
    lives_on = scope.kind in ("module", "program") or "save" in entity.attributes or _saved(scope)
    if not entity.alias:
        _check(scope, entity, is_dummy)
        if not (is_dummy or lives_on or is_allocatable):
            _save(unit, entity)
    link, rank = linkage(scope), len(entity.dimensions or ())
    symbol = symbol_of(scope, entity)
    unit.generated.top += [f"{link}pwx_coarray {symbol}__c;", f"{link}long {symbol}__clb[{max(rank, 1)}];"]
    if cobounds.is_kept(entity):
        unit.generated.top.append(cobounds.memory(scope, entity))
    if locks.is_lock(entity):
        unit.generated.top.append(f"{link}pwx_locks {symbol}__k;")
    if scope.foreign or entity.alias:
        return
    for mention in [*([entity.typed] if entity.typed else []), *entity.others]:
        _strip(unit, mention.logical.number, mention.items[mention.number])
        unit.generated.behind(mention.logical.number)
    typed = entity.typed or entity.others[0]
    number = typed.logical.number
    if number in unit.structure.by_number:
        _strip_attribute(unit, number, unit.structure.by_number[number].words)
    lowers = [dimension.lower or "1" for dimension in entity.dimensions or ()]
    calls = unit.set_up_calls.setdefault(scope.number, [])
    calls += image_sets.set_up(unit, scope, entity)
    if locks.is_lock(entity):
        locks.declare_lock(unit, entity)
        calls.append(locks.set_up_lock(unit, scope, entity, lowers))
        return
    if is_dummy and scope.parent is None and not is_allocatable:
        _point_at_dummy(unit, scope, entity)
    elif "target" not in entity.attributes and "pointer" not in entity.attributes:
        unit.generated.next_to(typed.logical.number, f"target :: {name}")  # others change it behind our back
    if scope.kind == "program" and not is_allocatable and "save" not in entity.attributes:
        # not on the stack: other images use it until they end, too
        unit.generated.next_to(typed.logical.number, f"save :: {name}")
    _set_up(unit, scope, entity, lowers, lives_on)


def _set_up(unit: FortranUnit, scope: Scope, entity: Entity, lowers: list[str], lives_on: bool) -> None:
    """What a scope does with a coarray when it begins and ends."""
    calls = unit.set_up_calls.setdefault(scope.number, [])
    is_dummy, is_allocatable = arrays.is_dummy(scope, entity.name), "allocatable" in entity.attributes
    if is_dummy and is_allocatable:
        unit.pointing.setdefault(scope.number, []).extend(_rebound(unit, scope, scope, entity))
    elif not is_allocatable:
        how = "bind" if is_dummy else "once"
        calls.append(coarray_call(unit, scope, entity, lowers, entity.word.place, how))
    elif not lives_on:
        line = f"pwx_coarray_end(&{symbol_of(scope, entity)}__c, {where(entity.word.place)});"
        unit.leaving.setdefault(scope.number, []).append(line)


def _saved(scope: Scope) -> bool:
    """Has the scope a SAVE for all that it declares?"""
    return any(statement.first == "save" and len(statement.words) == 1 for statement in scope.statements)


def _save(unit: FortranUnit, entity: Entity) -> None:
    """A coarray of a procedure has SAVE, as Fortran demands. The Omni compiler lets programs leave it out."""
    message = f"the coarray '{entity.name}' of a procedure must be SAVE or ALLOCATABLE; it is taken as SAVE"
    unit.diagnostics.warn(entity.word.place, message)
    entity.attributes.add("save")
    typed = entity.typed or entity.others[0]
    unit.generated.next_to(typed.logical.number, f"save :: {entity.name}")


def _check(scope: Scope, entity: Entity, is_dummy: bool) -> None:
    """Raises Refused for a coarray that cannot be declared so."""
    place, name, kind = entity.word.place, entity.name, (entity.type_text or "").lower()
    is_allocatable = "allocatable" in entity.attributes
    if is_dummy and locks.is_lock(entity):
        raise Refused(place, f"'{name}' is a dummy argument, which locks cannot be yet")
    if is_dummy and any(word.text == "recursive" for word in scope.statements[0].words):
        raise Refused(
            place, f"'{name}' is a dummy argument of a recursive procedure, which coarrays cannot be yet"
        )
    if (
        is_dummy
        and not is_allocatable
        and scope.parent is None
        and any(d.upper is None for d in entity.dimensions or ())
    ):
        message = f"give the coarray '{name}' bounds: it is an argument of a procedure outside of modules"
        raise Refused(place, message)
    if not kind or kind.startswith("class"):
        raise Refused(place, f"declare the coarray '{name}' with a type that is not CLASS")


def _strip(unit: FortranUnit, number: int, item: list[Word]) -> None:
    """Take `[*]` out of the item of a declaration."""
    for at, word in enumerate(item):
        if word.text == "[":
            unit.generated.edit(number, word.start, item[closing(item, at)].end, "")
            return


def _declare_in_interface(unit: FortranUnit, statement: Statement) -> None:
    """Take the images out of a declaration in an INTERFACE block, as they are in the procedure itself."""
    head = heading(statement.logical, statement.words)
    if head is None:
        return
    for item in split(head.items, ","):
        has_images = head.images is not None or any(word.text == "[" for word in item)
        _strip(unit, statement.number, item)
        if has_images and "allocatable" in head.attributes:
            unit.generated.next_to(statement.number, f"target :: {item[0].text}")
    _strip_attribute(unit, statement.number, statement.words)


def _strip_attribute(unit: FortranUnit, number: int, words: list[Word]) -> None:
    """Take `codimension[*]` out of the attributes of a declaration."""
    for at, word in enumerate(words[:-1]):
        if word.text == "codimension" and words[at + 1].text == "[" and at and words[at - 1].text == ",":
            end = words[closing(words, at + 1)].end
            unit.generated.edit(number, words[at - 1].start, end, "")


def _point_at_dummy(unit: FortranUnit, scope: Scope, entity: Entity) -> None:
    """Let a pointer lead to a dummy argument, which other images change, where TARGET is not allowed: in a
    procedure without an interface.
    """
    rank = len(entity.dimensions or ())
    shape = f"({','.join(':' * rank)})" if rank else ""
    contiguous = ", contiguous" if rank else ""
    argument = arrays.argument_of(entity.name)
    pointer = f"{entity.type_text}, pointer{contiguous} :: {entity.name}{shape}"
    declared = [f"{d.lower}:{d.upper}" if d.lower else f"{d.upper}" for d in entity.dimensions or ()]
    size = f"({', '.join(declared)})" if rank else ""
    arrays.replace_dummy(unit, scope, entity, [pointer, f"{entity.type_text} :: {argument}{size}"])
    how, line = ("address", "return c0;") if rank else ("any", "return c0->base_addr;")
    call = Call(unit.name("address"), [line], others=[(how, argument)], pointer=True)
    unit.uses_of.setdefault(scope.number, set()).add(arrays.POINTERS)
    unit.generated.declare(scope, "type(pwx_c_ptr) :: pwx_at")
    lines = [f"pwx_at = {unit.generated.call(scope, call)}"]
    bounds = [(dimension.lower or "1", dimension.upper) for dimension in entity.dimensions or ()]
    extents = ", ".join(f"max(0_8, int({upper}, 8) - int({lower}, 8) + 1_8)" for lower, upper in bounds)
    lines.append(f"call pwx_c_f_pointer(pwx_at, {entity.name}{f', [{extents}]' if rank else ''})")
    if rank:
        lines.append(f"{entity.name}({', '.join(f'{lower}:' for lower, _ in bounds)}) => {entity.name}")
    unit.pointing.setdefault(scope.number, []).extend(lines)


def _rebound(unit: FortranUnit, here: Scope, scope: Scope, entity: Entity) -> list[str]:
    """Statements that look whether an allocatable coarray is allocated, and where: a procedure has it as a
    dummy argument, and may have changed that.
    """
    name, symbol = entity.name, symbol_of(scope, entity)
    lowers = [f"lbound({name}, {number + 1})" for number in range(len(entity.dimensions or ()))]
    bind = coarray_call(unit, scope, entity, lowers, entity.word.place, "bind")
    none = Call(unit.name("none"), [f"{symbol}__c.state = 0;"])
    bind.lines.append(cobounds.registered(scope, entity, "bounds"))
    there, absent = (unit.generated.call(here, call) for call in (bind, none))
    return [f"if (allocated({name})) then", there, "else", absent, "end if"]


def _passed(unit: FortranUnit, statement: Statement) -> None:
    """Allocatable coarrays may be other ones behind a call that they are arguments of."""
    words, action = statement.words, action_of(statement)
    if words[action].text != "call" or statement.number < statement.scope.first_executable:
        return
    lines: list[str] = []
    for at in range(action + 2, len(words) - 1):
        is_argument = words[at - 1].text in ("(", ",") and words[at + 1].text in (")", ",")
        declared = unit.fortran.entity(words[at].text, statement.scope) if is_argument else None
        if declared and declared[1].images is not None and "allocatable" in declared[1].attributes:
            lines += _rebound(unit, statement.scope, *declared)
    unit.generated.behind(statement.number, *lines)


def _allocate(unit: FortranUnit, statement: Statement) -> None:
    """`allocate(x(n)[*])`, and `deallocate(x)`, before which all images are done with it."""
    words = statement.words
    verb = next((n for n, word in enumerate(words[:-1]) if word.text in ("allocate", "deallocate")), None)
    if verb is None or words[verb + 1].text != "(" or (verb and words[0].text != "if"):
        return
    for item in split(words[verb + 2 : closing(words, verb + 1)], ","):
        declared = unit.fortran.entity(item[0].text, statement.scope) if item else None
        if declared is None or declared[1].images is None:
            continue
        scope, entity = declared
        if verb:
            message = f"{words[verb].text} the coarray '{entity.name}' in a statement of its own"
            raise Refused(item[0].place, message)
        if words[verb].text == "deallocate":
            line = f"pwx_coarray_end(&{symbol_of(scope, entity)}__c, {where(item[0].place)});"
            call = Call(unit.name("end"), [line])
            unit.generated.before(statement.number, unit.generated.call(statement.scope, call))
            continue
        kept = cobounds.keep(unit, scope, entity, item)
        unit.generated.before(statement.number, unit.generated.call(statement.scope, kept))
        _strip(unit, statement.number, item)
        opening = 1 if len(item) > 1 and item[1].text == "(" else None
        inside = item[2 : closing(item, 1)] if opening else []
        lowers = []
        for part in split(inside, ",") if inside else []:
            bounds = split(part, ":")
            lowers.append(written(statement.logical, bounds[0]) if len(bounds) > 1 else "1")
        call = coarray_call(unit, scope, entity, lowers, item[0].place, "anew")
        call.lines.append(cobounds.registered(scope, entity, "keep_bounds"))
        unit.generated.next_to(statement.number, unit.generated.call(statement.scope, call))
