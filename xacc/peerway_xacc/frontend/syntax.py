"""Answers questions about the types, scopes and statements that `SyntaxReader` has read."""

from __future__ import annotations

from bisect import bisect_left

from peerway_xacc.frontend.diagnostics import Diagnostics, Place
from peerway_xacc.frontend.libclang import errors
from peerway_xacc.frontend.source import Function, Range, Statement, Variable
from peerway_xacc.frontend.syntax_reader import SyntaxReader

_SIZE_OF_RUN_TIME = "variable length array declaration not allowed at file scope"


class Syntax(SyntaxReader):
    """The syntax of a file, from libclang."""

    def sized_at_run_time(self) -> list[Place]:
        """The places in the file where arrays are declared with sizes that are not constant."""
        messages = errors(self._unit, self.file, self._texts.file)
        return [
            place for place, message in messages if message == _SIZE_OF_RUN_TIME and place.file == self.file
        ]

    def errors(self, diagnostics: Diagnostics) -> None:
        """Record libclang's errors in the program, up to the first refused directive.

        After that directive, the text may not be C without it.
        """
        until = diagnostics.first_in(self.file)
        for place, message in errors(self._unit, self.file, self._texts.file):
            if until is None or place < until or place.file != self.file:
                diagnostics.error(place, message)

    def statement_after(self, file: str, offset: int, function: Function) -> Statement | None:
        """The next statement after an offset in a function's body; of several at one place, the outermost."""
        statements = self.statements.get(file, [])
        at = bisect_left(statements, offset, key=lambda statement: statement.start)
        if at == len(statements) or statements[at].start >= function.body.end:
            return None
        return statements[at]

    def enclosing_block(self, file: str, offset: int) -> Statement | None:
        """The innermost block in braces that contains an offset."""
        blocks = [
            statement
            for statement in self.statements.get(file, [])
            if statement.kind == "block" and statement.start < offset < statement.end
        ]
        return max(blocks, key=lambda statement: statement.start, default=None)

    def around(self, file: str, offset: int) -> list[Statement]:
        """The statements that contain an offset, outermost first."""
        return [
            statement
            for statement in self.statements.get(file, [])
            if statement.start <= offset < statement.end
        ]

    def statements_in(self, function: Function) -> list[Statement]:
        """The statements of a function's body, outer ones first."""
        return [
            statement
            for statement in self.statements.get(function.file, [])
            if function.body.start < statement.start and statement.end <= function.body.end
        ]

    def loops_in(self, file: str, statement: Statement) -> list[Statement]:
        """The `for` statements in a statement, including itself, outer ones first."""
        return [
            other
            for other in self.statements.get(file, [])
            if other.kind == "for" and statement.start <= other.start and other.end <= statement.end
        ]

    def children(self, file: str, inside: Range) -> list[Statement]:
        """The outermost statements in a range."""
        statements: list[Statement] = []
        for statement in self.statements.get(file, []):
            if statement.start < inside.start or statement.end > inside.end:
                continue
            if not statements or statement.start >= statements[-1].end:
                statements.append(statement)
        return statements

    def blocks_in(self, file: str, inside: Range) -> list[Statement]:
        """The blocks in braces in a range, outer ones first."""
        return [
            statement
            for statement in self.statements.get(file, [])
            if statement.kind == "block" and inside.start <= statement.start and statement.end <= inside.end
        ]

    def function_at(self, file: str, offset: int) -> Function | None:
        """The function whose body contains an offset, or None."""
        for function in self.functions:
            if function.file == file and function.body.start < offset < function.body.end:
                return function
        return None

    def first_declaration(self, file: str) -> int:
        """The offset of a file's first declaration, or of the text's end if there is none."""
        return self._first.get(file, len(self._text))

    def variable(self, name: str, file: str, offset: int) -> Variable | None:
        """The variable that a name refers to at an offset, or the member that `s.a` refers to."""
        if "." in name:
            base, member = name.split(".", 1)
            struct = self.variable(base, file, offset)
            return self.structs.member(struct, member) if struct else None
        function = self.function_at(file, offset)
        if function:
            seen = [
                variable
                for variable, of in self.locals
                if of is function and variable.name == name
                and variable.declarator.start < offset < variable.visible_until
            ]  # fmt: skip
            if seen:
                return max(seen, key=lambda variable: variable.declarator.start)
        candidates = self.globals.get(name, [])
        return self.defined(candidates) if candidates else None

    def is_type(self, name: str) -> bool:
        """Is there a type with this tag or name?"""
        return any(name in known_type.names for known_type in self.types)
