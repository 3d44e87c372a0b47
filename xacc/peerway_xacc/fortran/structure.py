"""The program units of a file: where each has its declarations, its executable statements and its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from peerway_xacc.fortran.declarations import INTRINSIC, Entity, declare
from peerway_xacc.fortran.source import FortranText, Logical
from peerway_xacc.fortran.words import Word, closing, split, words_of
from peerway_xacc.frontend.source import Function, Range

_SPECIFICATIONS = {
    "use", "import", "implicit", "dimension", "allocatable", "pointer", "target", "save", "parameter",
    "common", "equivalence", "external", "intrinsic", "data", "intent", "optional", "private", "public",
    "namelist", "interface", "abstract", "enum", "procedure", "generic", "volatile", "asynchronous", "bind",
    "protected", "value", "format", "entry", "include", "codimension", "contiguous", *INTRINSIC,
}  # fmt: skip
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
_FIRST = ("use", "import", "implicit")
_PREFIXES = ("recursive", "pure", "elemental", "impure", "module", "non_recursive")
_UNIT_ENDS = ("program", "module", "subroutine", "function", "procedure", "submodule", "block data")


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
    modules: list[tuple[str, dict[str, str] | None]] = field(default_factory=list)  # used, with only-lists
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
        self._open: list[Scope] = []
        self._skip = ""  # until `end` of this: interface, type, enum
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
        return logical is not None and bool(_header([word.text for word in words_of(self.text, logical)])[0])

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
        if self._skip:
            if texts[0] == f"end{self._skip}" or texts[:2] == ["end", self._skip]:
                self._skip = ""
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
        kind, at = _header(texts)
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
        if not self._is_specification(scope, texts):
            scope.first_executable = statement.number
            return
        first = texts[0]
        if first in _FIRST:
            scope.head_end = statement.number
            if first == "use":
                _use(scope, texts)
            scope.implicit_none = scope.implicit_none or texts[:2] == ["implicit", "none"]
        elif first in ("interface", "enum") or texts[:2] == ["abstract", "interface"]:
            self._skip = "interface" if first != "enum" else "enum"
        elif first == "type" and len(texts) > 1 and texts[1] != "(":
            self._skip = "type"
        else:
            declare(scope.entities, statement.logical, statement.words)

    def _is_specification(self, scope: Scope, texts: list[str]) -> bool:
        first = texts[0]
        if len(texts) > 1 and texts[1] in ("=", "%", "=>"):
            return False
        if first in _SPECIFICATIONS and not _is_assignment(texts):
            return True
        if not _is_assignment(texts) or len(texts) < 4:
            return False
        # `f(x) = …` defines a statement function where f is no array
        entity = scope.entities.get(first)
        inside = texts[2 : texts.index(")")]
        plain = all(re.fullmatch(r"[a-z]\w*|,", text) for text in inside)
        return (
            plain and entity is not None and entity.dimensions is None and texts.index(")") + 1 < len(texts)
        )


def _is_assignment(texts: list[str]) -> bool:
    """Does a statement begin `name(…) =`?"""
    if len(texts) < 2 or texts[1] != "(":
        return False
    depth = 0
    for number, text in enumerate(texts[1:], 1):
        depth += (text == "(") - (text == ")")
        if depth == 0:
            return texts[number + 1 : number + 2] in (["="], ["%"]) and texts[0] not in ("type", "class")
    return False


def _use(scope: Scope, texts: list[str]) -> None:
    """`use m`, `use, intrinsic :: m`, `use m, only: a, b => c`: keep the module, and its names here."""
    rest = texts[1:]
    if ":" in rest and rest[0] in (",", ":"):
        rest = rest[rest.index(":") + 2 :]
    if not rest:
        return
    name, rest = rest[0], rest[1:]
    only: dict[str, str] | None = {} if "only" in rest else None
    renames: dict[str, str] = {}
    for number, text in enumerate(rest):
        if text == "=>" and 0 < number < len(rest) - 1:
            renames[rest[number - 1]] = rest[number + 1]
    if only is not None:
        items = rest[rest.index("only") + 1 :]
        for number, text in enumerate(items):
            if re.match(r"[a-z]", text) and (number == 0 or items[number - 1] != "=>"):
                only[text] = renames.get(text, text)
        scope.modules.append((name, only))
    elif renames:
        scope.modules.append((name, {"": "", **renames}))  # all others keep their names
    else:
        scope.modules.append((name, None))


def _header(texts: list[str]) -> tuple[str, int]:
    """The kind of program unit that a statement opens, and the number of the word that names it."""
    if texts[0] == "program" and len(texts) == 2:
        return "program", 1
    if texts[0] == "module" and len(texts) == 2:
        return "module", 1
    if texts[0] == "submodule":
        return "submodule", len(texts) - 1
    if texts[0] == "blockdata" or texts[:2] == ["block", "data"]:
        return "block data", len(texts) - 1
    for number, text in enumerate(texts[:-1] if len(texts) > 1 else []):
        if text in ("subroutine", "function") and re.match(r"[a-z]", texts[number + 1]):
            before = texts[:number]
            if before and before[0] not in (*_PREFIXES, *INTRINSIC):
                return "", 0
            if text == "function" and texts[number + 2 : number + 3] != ["("]:
                return "", 0
            if "," in _outside(before) or "=" in _outside(before) or "end" in before:
                return "", 0
            return text, number + 1
        if text == "(" and number > 0 and texts[0] not in (*_PREFIXES, *INTRINSIC):
            return "", 0
    return "", 0


def _outside(texts: list[str]) -> list[str]:
    depth, outside = 0, []
    for text in texts:
        depth += (text == "(") - (text == ")")
        if depth == 0:
            outside.append(text)
    return outside


def is_end_of_unit(texts: list[str]) -> bool:
    """Does a statement end a program unit or a procedure?"""
    if texts == ["end"]:
        return True
    if texts[0] == "end" and len(texts) <= 3:
        return texts[1] in ("program", "module", "subroutine", "function", "procedure", "submodule") or texts[
            1:3
        ] == ["block", "data"]
    return len(texts) <= 2 and texts[0] in (
        "endprogram", "endmodule", "endsubroutine", "endfunction", "endprocedure", "endsubmodule",
    )  # fmt: skip
