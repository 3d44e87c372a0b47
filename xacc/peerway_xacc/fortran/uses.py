"""Uses of names that the text cannot keep: subscripts of cyclic dimensions, functions of xmp_lib."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran import components, inquiry, pointing
from peerway_xacc.fortran.coindexed import action_of
from peerway_xacc.fortran.declarations import heading
from peerway_xacc.fortran.generated import KINDS
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import closing, split
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted

_INTEGERS = ("xmp_node_num", "xmp_num_nodes", "xmp_all_node_num", "xmp_all_num_nodes")
_REALS = ("xmp_wtime", "xmp_wtick")
_SUBROUTINES = ("xmp_barrier", "xmp_exit")
_SIZES = ("size", "ubound", "lbound", "shape")


def uses(unit: FortranUnit) -> None:
    """Look at each statement."""
    local: dict[tuple[int, int, int], str] = {}
    for statement in unit.structure.statements:
        with unit.diagnostics.collecting():
            if statement.number not in unit.moved:
                _functions(unit, statement)
            _initialised(unit, statement)
            if statement.number not in unit.moved and statement.number >= statement.scope.first_executable:
                _arrays(unit, statement, local)


def _functions(unit: FortranUnit, statement: Statement) -> None:
    """Declare the functions of xmp_lib that a scope calls and does not declare."""
    words = statement.words
    for number, word in enumerate(words[:-1]):
        if word.kind != "name" or not word.text.startswith("xmp_") or words[number + 1].text != "(":
            continue
        if word.text in inquiry.FUNCTIONS or word.text == inquiry.DESCRIPTOR:
            continue
        if unit.fortran.entity(word.text, statement.scope):
            continue
        kind = "integer" if word.text in _INTEGERS else "double precision" if word.text in _REALS else ""
        if not kind and word.text not in _SUBROUTINES:
            known = ", ".join((*_INTEGERS, *_REALS, *_SUBROUTINES))
            message = f"{word.text} is not supported in Fortran yet; there are {known} and inquiry functions"
            raise Refused(word.place, message)
        if kind:
            unit.generated.declare(statement.scope, f"{kind}, external :: {word.text}")


def _initialised(unit: FortranUnit, statement: Statement) -> None:
    """`integer n = 1` without `::` is no Fortran, but other compilers of XcalableMP take it."""
    words = statement.words
    if statement.number >= statement.scope.first_executable:
        return
    head = heading(statement.logical, words)
    if head is None or head.type_text is None or not head.items or head.items is words:
        return
    first = words.index(head.items[0])
    if words[first - 1].text != ":" and any(len(split(item, "=")) > 1 for item in split(head.items, ",")):
        unit.generated.edit(statement.number, head.items[0].start, head.items[0].start, ":: ")


def _arrays(unit: FortranUnit, statement: Statement, local: dict[tuple[int, int, int], str]) -> None:
    words = statement.words
    for number, word in enumerate(words):
        if word.kind != "name" or (number and words[number - 1].text == "%"):
            continue
        components.check_whole(unit, statement, number, word)
        array, last = unit.array_named(words, number, statement.scope)
        if array is None:
            continue
        if len(words) > last + 1 and words[last + 1].text == "=>" and number == action_of(statement):
            pointing.assign(unit, statement, array, number, last + 1)
            return
        before = [other.text for other in words[max(0, number - 2) : number]]
        if (
            before[-1:] == ["("]
            and before[0] in _SIZES
            and unit.fortran.entity(before[0], statement.scope) is None
        ):
            unit.diagnostics.warn(
                words[number - 2].place,
                f"{before[0]} of the distributed array '{array.name}' is that of this node's part of it",
            )
        cyclic = [d for d in range(len(array.dimensions)) if array.kind_of(d) == "cyclic"]
        if cyclic and last + 1 < len(words) and words[last + 1].text == "(":
            _translate(unit, statement, array, cyclic, last + 1, local)


def _translate(
    unit: FortranUnit, statement: Statement, array: DistributedArray, cyclic: list[int], opening: int,
    local: dict[tuple[int, int, int], str],
) -> None:  # fmt: skip
    words = statement.words
    parts = split(words[opening + 1 : closing(words, opening)], ",")
    rank = len(array.dimensions)
    if len(parts) != rank:
        return  # the Fortran compiler's error
    for dimension in cyclic:
        part = parts[rank - 1 - dimension]
        if not part:
            continue
        if len(split(part, ":")) > 1:
            message = f"a section of '{array.name}' along a cyclic dimension is only possible in gmove"
            raise Refused(part[0].place, message)
        name = _local(unit, statement.scope, array, dimension, local)
        unit.generated.wrap(statement.number, part[0].start, part[-1].end, f"{name}(int(", ", 8))")


def _local(
    unit: FortranUnit,
    scope: Scope,
    array: DistributedArray,
    dimension: int,
    local: dict[tuple[int, int, int], str],
) -> str:
    """The function that gives the subscript in memory of an element that this node owns."""
    key = (id(array), dimension, -1)
    if key not in local:
        local[key] = unit.name("local")
        low = f"{array.symbol}__lb[{dimension}]"
        unit.generated.ending.append(
            f"int64_t {local[key]}(int64_t i) {{ "
            f"return pwx_in_cycle({array.address}, {dimension}, i - {low}, "
            f"{quoted(unit.file)}, {array.place.line}) + {low}; }}"
        )
    here = (id(array), dimension, scope.number)
    if here not in local:
        local[here] = local[key]
        unit.generated.interfaces.setdefault(scope.number, []).extend([
            f"pure function {local[key]}(i) bind(C)", KINDS, "integer(c_int64_t), value :: i",
            f"integer(c_int64_t) :: {local[key]}", f"end function {local[key]}",
        ])  # fmt: skip
    return local[key]
