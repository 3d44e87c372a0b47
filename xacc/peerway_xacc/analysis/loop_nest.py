"""Finds the loops after a directive: the `for` of each index, and those nested directly in one another."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from peerway_xacc.analysis.loop_header import Header, header
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.source import Range, Statement


@dataclass(frozen=True)
class For:
    """A `for` statement and its parsed header."""

    statement: Statement
    header: Header

    @property
    def body(self) -> Range:
        """The range of the loop's body."""
        return Range(self.header.body, self.statement.end)


def read(unit: Parsed, statement: Statement) -> For:
    """Parse a `for` statement's header. Raises Refused."""
    return For(statement, header(unit.text, statement.start, statement.end))


def with_index(unit: Parsed, outer: Statement, index: str) -> list[For]:
    """The loops over an index in a nest, without those inside another loop over the same index."""
    matches: list[For] = []
    for statement in unit.syntax.loops_in(unit.file, outer):
        try:
            loop = read(unit, statement)
        except Refused:
            continue  # a loop that no directive concerns may have any header
        if loop.header.index == index and not any(_inside(statement, other.statement) for other in matches):
            matches.append(loop)
    return matches


def indices_in(unit: Parsed, outer: Statement) -> set[str]:
    """The indices of all loops in a statement whose headers have the form that we parse."""
    indices = set()
    for statement in unit.syntax.loops_in(unit.file, outer):
        with contextlib.suppress(Refused):
            indices.add(read(unit, statement).header.index)
    return indices


def _inside(statement: Statement, other: Statement) -> bool:
    return other.start < statement.start and statement.end <= other.end


def nested_directly(unit: Parsed, outer: Statement, count: int) -> list[For]:
    """Up to `count` loops, each of which is the whole body of the previous one."""
    loops = [read(unit, outer)]
    while len(loops) < count:
        inner = _sole_loop(unit, loops[-1].body)
        if inner is None:
            break
        loops.append(read(unit, inner))
    return loops


def _sole_loop(unit: Parsed, body: Range) -> Statement | None:
    """The loop in a range if it is the only statement there, perhaps within blocks; else None."""
    while True:
        children = unit.syntax.children(unit.file, body)
        if len(children) != 1 or children[0].kind not in ("for", "block"):
            return None
        if children[0].kind == "for":
            return children[0]
        body = Range(children[0].start + 1, children[0].end - 1)
