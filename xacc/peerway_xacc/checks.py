"""Which subscripts of distributed arrays are checked when the program runs.

One that is the index of a distributed loop, plus or minus a constant, is in memory wherever the program is
right, and a check would keep the loop from being vectorised; so would one in a compute construct.
"""

from __future__ import annotations

from peerway_xacc import clauses, nest
from peerway_xacc.source import Range, Use
from peerway_xacc.tokens import scan
from peerway_xacc.unit import Unit


class Checks:
    """What the subscripts of a file are compared with."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._constructs = [
            region for region, made in unit.acc_regions if made.construct.split()[0] in clauses.COMPUTE
        ]
        self._constructs += unit.left_regions
        self._loops = [
            (statement, nest.read(unit, statement).header.index)
            for start in unit.localised
            for statement in unit.syntax.around(unit.file, start)
            if statement.start == start and statement.kind == "for"
        ]

    def needs(self, use: Use, inside: Range) -> bool:
        """Is this subscript of a use checked?"""
        start = use.range.start
        if use.in_sizeof or any(region.start <= start < region.end for region in self._constructs):
            return False
        index = _index(self._unit, inside)
        return not any(name == index and loop.start <= start < loop.end for loop, name in self._loops)


def _index(unit: Unit, inside: Range) -> str | None:
    """The only variable of a subscript that adds and subtracts nothing else but numbers and macros."""
    tokens = scan(unit.text.text, inside.start, inside.end)
    if any(one.kind == "text" or (one.kind == "mark" and one.text not in "+-") for one in tokens):
        return None
    names = [one.text for one in tokens if one.kind == "name" and one.text not in unit.texts.defines]
    return names[0] if len(names) == 1 else None
