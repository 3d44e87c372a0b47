"""Reads the statements of a block in order, each with the directives that belong to it."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.source import Range, Statement
from peerway_xacc.frontend.tokens import Text, scan

_BEFORE_STATEMENTS = (d.Acc, d.Loop, d.Task, d.Tasks, d.Omp)
_BEFORE_ASSIGNMENTS = (d.Gmove, d.ArrayOn)  # of sections, which libclang does not see


@dataclass(frozen=True)
class Item:
    """A statement with the directives before it, or a directive that stands alone."""

    statement: Statement | None
    directives: list[d.Directive] = field(default_factory=list)
    assignment: Range | None = None  # of sections, behind a directive that stands alone

    @property
    def start(self) -> int:
        """Where its first directive begins, or else the statement."""
        if self.directives:
            return self.directives[0].start
        assert self.statement is not None
        return self.statement.start

    @property
    def end(self) -> int:
        """Where the statement or the assignment ends, or else the directive."""
        last = self.statement or self.assignment
        return last.end if last is not None else self.directives[-1].end


def statement_behind(text: Text, start: int) -> Range:
    """The statement after a directive, with its semicolon, whether or not libclang sees it."""
    spans = scan(text.text, start, min(len(text.text), start + 4000))
    for span in spans:
        if span.text == ";":
            return Range(spans[0].start, span.end)
        if span.text in ("{", "}", "#"):
            break
    raise Refused(text.place(start), "expected an assignment behind the directive")


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
        if isinstance(directive, _BEFORE_ASSIGNMENTS):
            behind = statement_behind(unit.text, directive.end)
            items.append(Item(None, [directive], behind))
            # libclang sees its semicolon
            statements = [each for each in statements if each.end != behind.end]
            continue
        if not isinstance(directive, _BEFORE_STATEMENTS):
            items.append(Item(None, [directive]))
            continue
        following = next((each.start for each in statements if each.start >= directive.end), -1)
        stacked.setdefault(following, []).append(directive)
    items += [Item(statement, stacked.get(statement.start, [])) for statement in statements]
    return sorted(items, key=lambda item: item.start)
