"""Pointer assignment to a distributed array: `a => b` of two arrays that are aligned alike."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran import arrays
from peerway_xacc.fortran.coindexed import surround
from peerway_xacc.fortran.declarations import Dimension
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments, place_of
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend.diagnostics import Refused


def assign(unit: FortranUnit, statement: Statement, array: DistributedArray, action: int, arrow: int) -> None:
    """Let an array be another one from here on; the run-time library compares how they are mapped. `action`
    and `arrow` are the numbers of the first word of the assignment and of its `=>`.
    """
    words = statement.words
    target = words[arrow + 1 :]
    if [word.text for word in target] == ["null", "(", ")"]:
        return
    _, entity = arrays.declared_in(array)
    if "pointer" not in entity.attributes:
        raise Refused(words[action].place, f"'{array.name}' is a distributed array, and no pointer")
    source, last = unit.array_named(target, 0, statement.scope) if target else (None, 0)
    if source is None or last != len(target) - 1:
        message = f"'{array.name}' is a distributed array; it can only point to another one as a whole"
        raise Refused(place_of(words[action:]), message)
    rank = len(array.dimensions)
    if len(source.dimensions) != rank:
        message = f"'{array.name}' has {rank} dimensions, and '{source.name}' {len(source.dimensions)}"
        raise Refused(place_of(words[action:]), message)
    arguments = Arguments()
    lines = arrays.make(array, [Dimension(None, None)] * rank, arguments, "point")
    lines[:rank] = [f"{array.symbol}__lb[{d}] = {source.symbol}__lb[{d}];" for d in range(rank)]
    call = Call(unit.name("point"), lines, arguments.texts, [("address", source.name)])
    pointed = [unit.generated.call(statement.scope, call), *arrays.attach(unit, statement.scope, array)]
    number = statement.number
    unit.generated.edit(number, words[action].start, len(statement.logical.text), pointed[0])
    surround(unit, statement, action, [], pointed[1:])
    unit.moved.add(number)
