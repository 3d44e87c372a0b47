"""The program units of a file: where each has its declarations, its executable statements and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from peerway_xacc.fortran.declarations import Entity, declare
from peerway_xacc.fortran.program_units import is_end_of_unit, unit_header
from peerway_xacc.fortran.source import FortranText, Logical
from peerway_xacc.fortran.specification import (
    FIRST,
    DerivedType,
    Used,
    declare_component,
    derived_type,
    is_specification,
    used_module,
)
from peerway_xacc.fortran.words import Word, closing, split, words_of
from peerway_xacc.frontend.source import Function, Range

_DECLARING = (
    "nodes",
    "template",
    "distribute",
    "align",
    "shadow",
    "static_desc",
    "local_alias",
    "save_desc",
    "coarray",
    "threadprivate",
    "declare",
    "routine",
    "requires",
    "groupprivate",
)  # directives


@dataclass
class Statement:
    """A logical line that is no directive, with its tokens; `scope` is where it stands."""

    logical: Logical
    words: list[Word]
    number: int  # among the statements and directives of the file
    scope: Scope

    @property
    def first(self) -> str:
        """The first word."""
        return self.words[0].text


@dataclass
class Scope(Function):
    """A program unit or a procedure. Numbers are those of logical lines of the file."""

    kind: str = "program"
    parent: Scope | None = None
    begin: int = 0
    foreign: bool = False  # a module of another file
    header: int = -1  # -1: a main program without PROGRAM
    head_end: int = -1  # the last of USE, IMPORT, IMPLICIT, or the header
    first_executable: int = -1
    contains: int | None = None
    end: int = -1
    entities: dict[str, Entity] = field(default_factory=dict)
    types: dict[str, DerivedType] = field(default_factory=dict)
    modules: list[Used] = field(default_factory=list)  # used, with only-lists
    dummies: list[Word] = field(default_factory=list)
    result_name: str = ""
    implicit_none: bool = False
    statements: list[Statement] = field(default_factory=list)
    number: int = 0

    def chain(self) -> Iterator[Scope]:
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


class Structure:
    """The scopes of a file."""

    def __init__(self, text: FortranText, logicals: list[Logical]) -> None:
        self.text = text
        self.logicals = logicals
        self.scopes: list[Scope] = []
        self.statements: list[Statement] = []
        self.by_number: dict[int, Statement] = {}
        self.interfaces: list[Statement] = []  # of INTERFACE blocks
        self._open: list[Scope] = []
        self._skip = ""  # until `end` of this: interface, type, enum
        self._type: DerivedType | None = None  # whose components come
        for number, logical in enumerate(logicals):
            logical.number = number
            if logical.model:
                if not self._open and logical.model == "xmp" and not self._header_follows(number):
                    self._begin(number, "program", "main", header=False)
                continue
            words = words_of(text, logical)
            if words:
                self._take(number, logical, words)
        while self._open:
            self._close(len(logicals))

        for scope in self.scopes:
            self._with_directives(scope)

    def _header_follows(self, number: int) -> bool:
        """Is the next statement behind a directive one that opens a program unit?"""
        logical = next((logical for logical in self.logicals[number:] if not logical.model), None)
        return logical is not None and bool(
            unit_header([word.text for word in words_of(self.text, logical)])[0]
        )

    def _with_directives(self, scope: Scope) -> None:
        """A directive that is executed may stand before the first executable statement."""
        specified = [s.number for s in scope.statements if s.number < scope.first_executable]
        for number in range(max(specified, default=scope.begin - 1) + 1, scope.first_executable):
            logical = self.logicals[number]
            word = re.match(r"\s*([a-zA-Z_]+)", logical.text)
            if logical.model and word and word[1].lower() not in _DECLARING:
                scope.first_executable = number
                return

    # ---- program units ----

    def _take(self, number: int, logical: Logical, words: list[Word]) -> None:
        texts = [word.text for word in words]
        if self._skip == "interface" and self._open:
            self.interfaces.append(Statement(logical, words, number, self._open[-1]))
        if self._skip:
            if texts[0] == f"end{self._skip}" or texts[:2] == ["end", self._skip]:
                self._skip, self._type = "", None
            elif self._type and texts[0] == "contains":
                self._type.has_procedures, self._type = True, None
            elif self._type:
                declare_component(self._type, logical, words)
            return
        if self._opens(number, logical, words, texts):
            return
        if not self._open:
            self._begin(number, "program", "main", header=False)
        scope = self._open[-1]
        statement = Statement(logical, words, number, scope)
        if texts[0] == "contains" and len(texts) == 1:
            scope.contains = number
            self._begin_execution(scope, number)
            return
        if is_end_of_unit(texts):
            self._begin_execution(scope, number)
            self._close(number)
            return
        self.statements.append(statement)
        self.by_number[number] = statement
        scope.statements.append(statement)
        if scope.first_executable < 0:
            self._specify(scope, statement, texts)

    def _opens(self, number: int, logical: Logical, words: list[Word], texts: list[str]) -> bool:
        kind, at = unit_header(texts)
        if not kind:
            return False
        if kind in ("subroutine", "function") and self._open:
            host = self._open[-1]
            if host.contains is None:
                return False
        name = texts[at] if at < len(texts) else "unnamed"
        self._begin(number, kind, name, header=True)
        scope = self._open[-1]
        if kind in ("subroutine", "function") and at + 1 < len(texts) and texts[at + 1] == "(":
            inside = words[at + 2 : closing(words, at + 1)]
            scope.dummies = [part[0] for part in split(inside, ",") if part]
        scope.result_name = name
        if "result" in texts[at + 1 :]:
            scope.result_name = texts[len(texts) - 2]
        scope.statements.append(Statement(logical, words, number, scope))
        return True

    def _begin(self, number: int, kind: str, name: str, header: bool) -> None:
        parent = self._open[-1] if self._open else None
        start = self.logicals[number].start
        start = start if header else max(0, start - 1)
        scope = Scope(
            name, self.text.file, Range(start, start), Range(start, start), [], kind=kind, parent=parent
        )
        scope.header = number if header else -1
        scope.head_end = number if header else number - 1
        scope.begin = number
        scope.foreign = self.logicals[number].first <= self.text.foreign
        scope.number = len(self.scopes)
        scope.suffix = f"__of_{name}" if kind == "module" else f"__{scope.number}"
        self.scopes.append(scope)
        self._open.append(scope)

    def _close(self, number: int) -> None:
        scope = self._open.pop()
        scope.end = number
        end = self.logicals[number].start if number < len(self.logicals) else len(self.text.text)
        scope.whole = scope.body = Range(scope.whole.start, end)
        if scope.first_executable < 0:
            scope.first_executable = number

    def _begin_execution(self, scope: Scope, number: int) -> None:
        if scope.first_executable < 0:
            scope.first_executable = number

    # ---- specification parts ----

    def _specify(self, scope: Scope, statement: Statement, texts: list[str]) -> None:
        if not is_specification(scope.entities, texts):
            scope.first_executable = statement.number
            return
        first = texts[0]
        if first in FIRST:
            scope.head_end = statement.number
            if first == "use" and (used := used_module(texts)):
                scope.modules.append(used)
            scope.implicit_none = scope.implicit_none or texts[:2] == ["implicit", "none"]
        elif first in ("interface", "enum") or texts[:2] == ["abstract", "interface"]:
            self._skip = "interface" if first != "enum" else "enum"
        elif first == "type" and len(texts) > 1 and texts[1] != "(":
            self._skip = "type"
            self._type = derived_type(statement.words)
            if self._type:
                scope.types[self._type.name] = self._type
        else:
            declare(scope.entities, statement.logical, statement.words)
