"""Reads the statements of a block in order, each with the directives that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.source import Range, Statement

_BEFORE_STATEMENTS = (d.Acc, d.Loop, d.Task, d.Tasks, d.Omp)


@dataclass(frozen=True)
class Item:
    """A statement with the directives before it, or a directive that stands alone."""

    statement: Statement | None
    directives: list[d.Directive] = field(default_factory=list)

    @property
    def start(self) -> int:
        """Where its first directive begins, or else the statement."""
        if self.directives:
            return self.directives[0].start
        assert self.statement is not None
        return self.statement.start

    @property
    def end(self) -> int:
        """Where the statement ends, or else the directive."""
        return self.statement.end if self.statement is not None else self.directives[-1].end


def items_of(unit: Parsed, inside: Range) -> list[Item]:
    """The items of a block, whose braces are outside the range."""
    statements = unit.syntax.children(unit.file, inside)
    within = [Range(statement.start, statement.end) for statement in statements]
    own = [
        directive for directive in unit.directives_in(inside)
        if not any(piece.start <= directive.start < piece.end for piece in within)
    ]  # fmt: skip
    items: list[Item] = []
    stacked: dict[int, list[d.Directive]] = {}
    for directive in own:
        if not isinstance(directive, _BEFORE_STATEMENTS):
            items.append(Item(None, [directive]))
            continue
        following = next((each.start for each in statements if each.start >= directive.end), -1)
        stacked.setdefault(following, []).append(directive)
    items += [Item(statement, stacked.get(statement.start, [])) for statement in statements]
    return sorted(items, key=lambda item: item.start)
