"""Decides whether a kernel can run beside a reflect before it, and which of its iterations read halos.

Those within `reach` iterations of the first or last one of a distributed loop may read elements that other
nodes own. They wait for the reflect; all others need nothing that it changes.
"""

from __future__ import annotations

import re

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.codegen.grid import Dimension
from peerway_xacc.frontend.source import Range, Use, used_in
from peerway_xacc.lowering.checks import Checks, checks_of
from peerway_xacc.lowering.subscripts import subscripts_in_text
from peerway_xacc.lowering.unit import Unit

_ARITHMETIC = {
    "char", "short", "int", "long", "signed", "unsigned", "float", "double", "_Bool", "bool", "_Complex",
}  # fmt: skip
_CAST_TO_POINTER = re.compile(r"\*\s*\)")


def overlaps(
    unit: Unit, annotated: AnnotatedStatement, inside: Range, dimensions: list[Dimension], text: str
) -> bool:
    """Whether the kernel can run beside a reflect; sets how far its dimensions reach.

    It can if each subscript of a distributed dimension follows a loop's index, and no pointer leads to an
    array by another way. `text` is the kernel's body, with the macros and functions that it needs.
    """
    if not dimensions or any(dimension.cyclic for dimension in dimensions) or _CAST_TO_POINTER.search(text):
        return False
    checks = checks_of(unit)
    reaches: dict[int, int] = {}  # by the offset of the loop
    for use in used_in(annotated.function.uses, inside):
        array = unit.scopes.of_variable(use.variable)
        if array is None:
            if _may_be_a_pointer(use, inside):
                return False
        elif not use.in_sizeof and not _follows(unit, checks, array, use, reaches):
            return False
    shared = {dimension.loop.statement.start for dimension in dimensions}
    if any(reach > 0 and loop not in shared for loop, reach in reaches.items()):
        return False
    for dimension in dimensions:
        dimension.reach = reaches.get(dimension.loop.statement.start, 0)
    return True


def _may_be_a_pointer(use: Use, inside: Range) -> bool:
    """Is this a pointer, or does it come from outside of the kernel and may contain one, as a struct does?

    Such a pointer may lead into a distributed array.
    """
    variable = use.variable
    own = not variable.file_scope and inside.start <= variable.declarator.start < inside.end
    if variable.pointer or variable.has_pointers:
        return True
    return not own and not _ARITHMETIC.issuperset(variable.element.split())


def _follows(unit: Unit, checks: Checks, array: DistributedArray, use: Use, reaches: dict[int, int]) -> bool:
    """Do all subscripts of a use follow loops? Adds how far they reach."""
    if use.address or use.aliased or len(use.subscripts) < len(array.dimensions):
        return False  # it is no element
    written = subscripts_in_text(unit, use)
    for dimension in range(len(array.dimensions)):
        if array.kind_of(dimension) == "*" and array.shadow_values(dimension) == (0, 0):
            continue
        if dimension >= len(written):
            return False
        reach = checks.reach(array, dimension, use, written[dimension])
        if reach is None:
            return False
        for loop, distance in reach.items():
            reaches[loop] = max(reaches.get(loop, 0), distance)
    return True
