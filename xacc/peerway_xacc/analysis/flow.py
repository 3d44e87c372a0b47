"""Finds the blocks that all executing nodes execute equally often, and what may communicate."""

from __future__ import annotations

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Statement

_GLOBAL = (d.Loop, d.Task, d.Tasks, d.Reflect, d.Reduction, d.Bcast, d.Barrier, d.Gmove, d.ArrayOn)
_REFLECTING = (d.Reflect, d.WaitAsync)
_WRITING = (d.Gmove, d.ArrayOn, d.Reduction)


class Flow:
    """The control flow of nodes through the functions of a file."""

    def __init__(self, unit: Mapped, constructs: list[tuple[d.Directive, Statement, Function]]) -> None:
        self.unit = unit
        self.constructs = constructs
        self.functions = {
            function.name: function for function in unit.syntax.functions if function.file == unit.file
        }

    def all_do(self, block: Statement, outer: list[Statement], function: Function) -> bool:
        """Do all executing nodes execute a block equally often?"""
        if function.name == "main" and block.start == function.body.start:
            return True
        switch = bool(outer) and self.unit.text.text.startswith("switch", outer[-1].start)
        if switch or self._can_leave_early(block, function):
            return False
        return any(
            isinstance(directive, _GLOBAL) and self._is_unconditional(directive.start, block)
            for directive in self.unit.directives_in()
        )

    def _is_unconditional(self, offset: int, block: Statement) -> bool:
        """Is the code at an offset in a block without any condition in between?"""
        inner = [
            enclosing
            for enclosing in self.unit.syntax.around(self.unit.file, offset)
            if enclosing.start >= block.start
        ]
        if not inner or inner[0].start != block.start:
            return False
        tasks = {
            statement.start for directive, statement, _ in self.constructs if isinstance(directive, d.Task)
        }
        return all(enclosing.kind == "block" for enclosing in inner) and not any(
            enclosing.start in tasks for enclosing in inner[1:]
        )

    def _can_leave_early(self, block: Statement, function: Function) -> bool:
        """Can the program leave a block before its end?"""
        whole = block.start == function.body.start
        for mark in function.marks:
            if mark.kind == "call" or not block.start < mark.start < block.end:
                continue
            inner = [statement for statement in self.unit.syntax.around(self.unit.file, mark.start)
                     if statement.start >= block.start]  # fmt: skip
            if mark.kind in ("break", "continue"):
                if any(statement.kind == "for" for statement in inner):
                    continue
            elif mark.kind == "return" and whole:
                rest = self.unit.text.text[mark.start : function.body.end - 1]
                if [statement.kind for statement in inner] == ["block", "statement"] and rest.count(";") == 1:
                    continue
            return True
        return False

    def reflects(self, statement: Statement, function: Function) -> bool:
        """May a statement reflect an array? A reflect clears the mark of a write before the statement."""
        inside = Range(statement.start, statement.end)
        return self.calls(inside, function) or any(
            isinstance(directive, _REFLECTING) for directive in self.unit.directives_in(inside)
        )

    def calls(self, inside: Range, function: Function) -> bool:
        """Does a range call functions that may reflect or write arrays?"""
        return any(
            mark.kind == "call"
            and inside.start <= mark.start < inside.end
            and not self._has_no_effect(mark.name, set())
            for mark in function.marks
        )

    def _has_no_effect(self, name: str, seen: set[str]) -> bool:
        """Is this a function of the file without directives (but OpenMP's) and distributed arrays?

        The same must be true of the functions that it calls.
        """
        called = self.functions.get(name)
        if called is None:
            return False
        if name in seen:
            return True
        return not any(
            not isinstance(directive, d.Omp) for directive in self.unit.directives_in(called.body)
        ) and not any(
            mark.kind == "call" and not self._has_no_effect(mark.name, seen | {name}) for mark in called.marks
        ) and not any(self.unit.scopes.of_variable(use.variable) for use in called.uses)  # fmt: skip

    def moves(self, inside: Range) -> bool:
        """Does a range contain a directive that writes an array at run time?"""
        return any(
            isinstance(directive, _WRITING)
            or (isinstance(directive, d.Reflect) and directive.kind == "reduce_shadow")
            for directive in self.unit.directives_in(inside)
        )  # fmt: skip
