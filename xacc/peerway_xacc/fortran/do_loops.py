"""Reads DO statements: the index and the bounds of a loop, the line that ends it, the loops of a nest."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend.diagnostics import Refused


@dataclass(frozen=True)
class Do:
    """A DO over an index: its statement, the words of its bounds, and the number of the line that ends it."""

    statement: Statement
    index: Word
    first: list[Word]
    last: list[Word]
    step: list[Word]
    end: int
    construct: str = ""

    @property
    def counts_by_one(self) -> bool:
        """Does it count upwards by 1?"""
        return not self.step or self.text(self.step) == "1"

    def text(self, words: list[Word]) -> str:
        """What the program has for some of its words."""
        return written(self.statement.logical, words)


def do_header(statement: Statement) -> tuple[list[Word], str, str] | None:
    """The words behind DO and its label, the label, the name of the construct; None of other statements."""
    words = statement.words
    construct = ""
    if len(words) > 2 and words[1].text == ":" and words[0].kind == "name":
        construct, words = words[0].text, words[2:]
    if words[0].text != "do" or (len(words) > 1 and words[1].text in ("=", "(", "%")):
        return None
    words, label = words[1:], ""
    if words and words[0].kind == "number":
        label, words = words[0].text, words[1:]
    if words and words[0].text == ",":
        words = words[1:]
    return words, label, construct


def loop_end(unit: FortranUnit, statement: Statement) -> int:
    """The number of the statement that ends the DO that begins with a statement."""
    head = do_header(statement)
    assert head is not None
    open_loops = [head[1]]
    last = statement.number
    for other in unit.statements_behind(statement.number):
        if other.scope is not statement.scope or other.number >= statement.scope.end:
            break
        last = other.number
        texts = [word.text for word in other.words[:2]]
        nested = do_header(other)
        if nested is not None:
            open_loops.append(nested[1])
        elif (texts[0] == "enddo" or texts == ["end", "do"]) and open_loops[-1] == "":
            open_loops.pop()
        while open_loops and open_loops[-1] and _same(open_loops[-1], other.logical.label):
            open_loops.pop()
        if not open_loops:
            return other.number
    place = statement.words[0].place
    raise Refused(
        place, "this DO has no end", (unit.text.place(unit.structure.logicals[last].start), "up to here")
    )


def _same(label: str, other: str) -> bool:
    return bool(other) and int(label) == int(other)


def read_do(unit: FortranUnit, statement: Statement) -> Do | None:
    """A DO that counts; None of any other statement."""
    head = do_header(statement)
    if head is None:
        return None
    words, _label, construct = head
    if len(words) < 2 or words[1].text != "=" or words[0].kind != "name":
        return None
    bounds = split(words[2:], ",")
    if len(bounds) not in (2, 3) or not all(bounds):
        return None
    step = bounds[2] if len(bounds) == 3 else []
    return Do(statement, words[0], bounds[0], bounds[1], step, loop_end(unit, statement), construct)


def nest(unit: FortranUnit, outer: Do) -> list[Do]:
    """The counting loops of a nest, the outermost first."""
    inner = [
        statement
        for statement in unit.statements_behind(outer.statement.number)
        if statement.number < outer.end
    ]
    return [outer, *(do for statement in inner if (do := read_do(unit, statement)))]


def check_jumps(unit: FortranUnit, do: Do) -> None:
    """Nothing may leave a distributed loop before its end."""
    open_ends: list[tuple[int, str]] = []
    for statement in unit.statements_behind(do.statement.number):
        if statement.number > do.end:
            return
        open_ends = [entry for entry in open_ends if entry[0] >= statement.number]
        head = do_header(statement)
        if head is not None:
            open_ends.append((loop_end(unit, statement), head[2]))
            continue
        words = statement.words
        at = closing(words, 1) + 1 if words[0].text == "if" and len(words) > 1 else 0
        if at >= len(words):
            continue
        text = words[at].text
        target = words[at + 1].text if at + 1 < len(words) else ""
        leaves = text == "return" and len(words) == at + 1
        if text == "exit":
            inside = any(name == target for _, name in open_ends) if target else bool(open_ends)
            leaves = not inside
        if leaves:
            message = f"{text.upper()} leaves a distributed loop before its end; all its iterations must run"
            raise Refused(words[at].place, message, (do.statement.words[0].place, "the loop begins here"))
