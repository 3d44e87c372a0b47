"""ALLOCATE, DEALLOCATE and ALLOCATED of distributed arrays, which become calls of the run-time library."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran.arrays import attach, declared_in, make
from peerway_xacc.fortran.coarray_memory import symbol_of
from peerway_xacc.fortran.declarations import dimensions_of
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering.c_text import at


def allocations(unit: FortranUnit) -> None:
    """ALLOCATE, DEALLOCATE and ALLOCATED of distributed arrays."""
    for statement in unit.structure.statements:
        with unit.diagnostics.collecting():
            _allocation(unit, statement)


def _allocation(unit: FortranUnit, statement: Statement) -> None:
    words = statement.words
    for number, word in enumerate(words[:-2]):
        asks = word.text == "allocated" and words[number + 1].text == "("
        if asks and unit.array_named(words, number + 2, statement.scope)[0]:
            unit.generated.edit(statement.number, word.start, word.end, "associated")
    verb = next((n for n, word in enumerate(words) if word.text in ("allocate", "deallocate")), None)
    if verb is None or verb + 1 >= len(words) or words[verb + 1].text != "(":
        return
    if verb and words[0].text != "if":
        return
    items = split(words[verb + 2 : closing(words, verb + 1)], ",")
    arrays = [unit.array_named(item, 0, statement.scope)[0] if item else None for item in items]
    if not any(arrays):
        return
    lines: list[str] = []
    kept = [item for item, array in zip(items, arrays, strict=True) if array is None]
    named = [item for item in kept if len(item) > 1 and item[1].text == "="]
    if len(kept) > len(named):
        texts = ", ".join(written(statement.logical, item) for item in kept)
        lines.append(f"{words[verb].text}({texts})")
    for item in named:
        if item[0].text == "stat":
            lines.append(f"{written(statement.logical, item[2:])} = 0")
        elif item[0].text != "errmsg":
            raise Refused(item[0].place, f"{item[0].text}= is not supported for a distributed array yet")
    for item, array in zip(items, arrays, strict=True):
        if array:
            make_or_free = _allocated if words[verb].text == "allocate" else _freed
            lines += make_or_free(unit, statement, array, item)
    if verb:
        unit.generated.edit(statement.number, words[verb].start, len(statement.logical.text), "then")
        lines.append("end if")
    else:
        unit.generated.remove(statement.number)
    unit.generated.behind(statement.number, *lines)


def _allocated(
    unit: FortranUnit, statement: Statement, array: DistributedArray, item: list[Word]
) -> list[str]:
    _, entity = declared_in(array)
    if not entity.deferred:
        raise Refused(item[0].place, f"'{array.name}' is not allocatable")
    opening = next((number for number, word in enumerate(item) if word.text == "("), len(item))
    dimensions = dimensions_of(statement.logical, item[opening + 1 : -1]) if item[opening:] else []
    if len(dimensions) != len(array.dimensions) or any(d.upper is None for d in dimensions):
        raise Refused(item[0].place, f"allocate '{array.name}' with bounds in each of its dimensions")
    arguments = Arguments()
    scope = statement.scope
    call = Call(unit.name("allocate"), make(array, dimensions, arguments, "init"), arguments.texts)
    return [unit.generated.call(scope, call), *attach(unit, scope, array)]


def _freed(unit: FortranUnit, statement: Statement, array: DistributedArray, item: list[Word]) -> list[str]:
    aliases = unit.aliases.get(id(array), [])
    coarrays = [alias for alias in aliases if alias.entity.images is not None]
    ending = [
        f"pwx_coarray_end(&{symbol_of(alias.scope, alias.entity)}__c, {at(item[0].place)});"
        for alias in coarrays
    ]
    call = Call(unit.name("free"), [*ending, f"pwx_array_free({array.address});"])
    names = ", ".join([array.name, *(alias.entity.name for alias in aliases)])
    return [unit.generated.call(statement.scope, call), f"nullify({names})"]
