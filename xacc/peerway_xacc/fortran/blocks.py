"""The statements of an acc construct as a tree: assignments, IFs, loops, jumps and calls; kernels have no
others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from peerway_xacc.fortran.acc_clauses import AccDirective
from peerway_xacc.fortran.do_loops import Do, do_header, loop_end, read_do
from peerway_xacc.fortran.members import with_members
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused


@dataclass
class Assign:
    """`target = value`; with the words of the directive `atomic` before it."""

    statement: Statement
    target: list[Word]
    value: list[Word]
    atomic: AccDirective | None = None


@dataclass
class If:
    """IF with its branches; the condition of ELSE is None."""

    branches: list[tuple[Statement, list[Word] | None, list[Node]]] = field(default_factory=list)


@dataclass
class Loop:
    """A DO that counts, or DO WHILE with its condition; `acc` is the directive of a loop."""

    statement: Statement
    do: Do | None
    condition: list[Word]
    body: list[Node]
    name: str = ""
    acc: AccDirective | None = None
    parallel: bool = False


@dataclass
class Jump:
    """EXIT, CYCLE, or RETURN of a function."""

    statement: Statement
    word: Word
    target: str


@dataclass
class CallOf:
    """CALL of a subroutine; `changed` are the variables and arrays that it changes, once that is known."""

    statement: Statement
    name: Word
    arguments: list[list[Word]]
    changed: set[str] = field(default_factory=set)


Node = Assign | If | Loop | Jump | CallOf


class Blocks:
    """Reads the lines of a construct. `directives` are those of acc, by the numbers of their lines."""

    def __init__(self, unit: FortranUnit, directives: dict[int, AccDirective]) -> None:
        self._unit = unit
        self._directives = directives
        self._at = 0

    def read(self, first: int, last: int) -> list[Node]:
        """The statements from one logical line to another."""
        self._at = first
        return self._until(last)

    def _until(self, last: int) -> list[Node]:
        nodes: list[Node] = []
        pending: AccDirective | None = None
        while self._at <= last:
            number = self._at
            self._at += 1
            if directive := self._directives.get(number):
                if directive.construct in ("loop", "atomic"):
                    pending = directive
                elif not directive.is_end:
                    raise Refused(directive.place, f"acc {directive.construct} is not possible in a kernel")
                continue
            statement = self._unit.structure.by_number.get(number)
            if statement is None:
                continue
            statement = _with_components(self._unit, statement)
            node = self._node(statement)
            if node is None:
                continue
            self._attach(pending, node, statement)
            pending = None
            nodes.append(node)
        return nodes

    def _attach(self, directive: AccDirective | None, node: Node, statement: Statement) -> None:
        if directive is None:
            return
        if directive.construct == "loop" and isinstance(node, Loop) and node.do:
            node.acc = directive
        elif directive.construct == "atomic" and isinstance(node, Assign):
            node.atomic = directive
        else:
            what = "a DO with an index" if directive.construct == "loop" else "an assignment"
            note = (statement.words[0].place, "this follows")
            raise Refused(directive.place, f"expected {what} behind this directive", note)

    def _node(self, statement: Statement) -> Node | None:
        words = statement.words
        if do_header(statement) is not None:
            return self._loop(statement)
        if words[0].text == "if" and len(words) > 1 and words[1].text == "(":
            end = closing(words, 1)
            if end == 2:
                raise Refused(words[0].place, "this IF has no condition")
            if words[end + 1 :] and words[end + 1].text == "then" and len(words) == end + 2:
                return self._if(statement)
            if end + 1 < len(words) and words[end + 1].text != "=":
                node = self._action(statement, words[end + 1 :])
                return If([(statement, words[2:end], [node] if node else [])])
        return self._action(statement, words)

    def _action(self, statement: Statement, words: list[Word]) -> Node | None:
        first = words[0].text
        if first == "continue" and len(words) == 1:
            return None
        if first in ("exit", "cycle") and len(words) <= 2 and (len(words) == 1 or words[1].kind == "name"):
            return Jump(statement, words[0], words[1].text if len(words) == 2 else "")
        if first == "return" and len(words) == 1:
            return Jump(statement, words[0], "")
        equal = _equal(words)
        if equal:
            return Assign(statement, words[:equal], words[equal + 1 :])
        if first == "call" and len(words) > 1 and words[1].kind == "name":
            return _call(statement, words)
        raise Refused(words[0].place, f"a kernel cannot have this statement ({first.upper()}) yet")

    def _loop(self, statement: Statement) -> Loop:
        head = do_header(statement)
        assert head is not None
        words, _, name = head
        end = loop_end(self._unit, statement)
        do = read_do(self._unit, statement)
        condition: list[Word] = []
        if do is None:
            if words and words[0].text == "while" and len(words) > 3:
                condition = words[2:-1]
            elif words:
                raise Refused(words[0].place, "a kernel cannot have this form of DO yet")
        texts = [word.text for word in self._unit.structure.by_number[end].words[:2]]
        ends = texts[0] == "enddo" or texts == ["end", "do"]
        body = self._until(end - 1 if ends else end)
        self._at = end + 1
        return Loop(statement, do, condition, body, name)

    def _if(self, statement: Statement) -> If:
        node = If()
        at = statement
        condition: list[Word] | None = statement.words[2:-2]
        while True:
            inner, closing_statement = self._branch(at)
            node.branches.append((at, condition, inner))
            words = closing_statement.words
            texts = [word.text for word in words]
            if texts[0] in ("endif", "end"):
                return node
            at = closing_statement
            opening = next((n for n, text in enumerate(texts) if text == "("), None)
            condition = None if opening is None else words[opening + 1 : closing(words, opening)]
            if condition == []:
                raise Refused(words[0].place, "this ELSE IF has no condition")

    def _branch(self, begin: Statement) -> tuple[list[Node], Statement]:
        """The statements of a branch, and the ELSE or END IF behind it."""
        depth = 0
        for statement in self._unit.statements_behind(begin.number):
            if statement.scope is not begin.scope:
                break
            texts = [word.text for word in statement.words]
            is_if = texts[0] == "if" and texts[-1] == "then"
            ends = texts[0] == "endif" or texts[:2] == ["end", "if"]
            if depth == 0 and (ends or (texts[0] in ("else", "elseif") and texts[1:2] != ["="])):
                nodes = self._until(statement.number - 1)
                self._at = statement.number + 1
                return nodes, _with_components(self._unit, statement)
            depth += is_if - ends
        raise Refused(begin.words[0].place, "this IF has no end")


def _with_components(unit: FortranUnit, statement: Statement) -> Statement:
    """A statement whose names of components are words of their own, which no variable has."""
    return replace(statement, words=with_members(unit, statement.scope, statement.words))


def _call(statement: Statement, words: list[Word]) -> CallOf:
    if len(words) == 2:
        return CallOf(statement, words[1], [])
    if words[2].text != "(" or closing(words, 2) != len(words) - 1:
        raise Refused(words[1].place, "a kernel can call subroutines of this file only")
    parts = split(words[3:-1], ",")
    arguments = [] if parts == [[]] else parts
    for part in arguments:
        if not part or (len(part) > 1 and part[1].text == "="):
            raise Refused(words[1].place, "give all arguments of a call in a kernel, without their names")
    return CallOf(statement, words[1], arguments)


def _equal(words: list[Word]) -> int | None:
    """Where the `=` of an assignment is."""
    at = 1
    while at < len(words) and (words[at].text == "(" or words[at].kind == "component"):
        at = closing(words, at) + 1
    if at < len(words) and words[at].text == "[":
        raise Refused(words[0].place, f"a kernel cannot assign to '{words[0].text}' of another image")
    is_assignment = words[0].kind == "name" and at < len(words) - 1 and words[at].text == "="
    return at if is_assignment else None


def walk(nodes: list[Node]) -> Iterator[Node]:
    """All nodes, the outer ones first."""
    for node in nodes:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)
        elif isinstance(node, If):
            for _, _, inner in node.branches:
                yield from walk(inner)
