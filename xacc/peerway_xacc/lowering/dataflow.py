"""Finds which constructs may write which distributed array, so that a reflect of an unchanged array is free.

All nodes must agree whether a reflect has anything to do. So an array is marked as written where all of them
pass: before constructs of xmp, which by the language all executing nodes execute, and before statements of
main or of a block that contains such a construct. An array that may be written elsewhere always counts as
written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peerway_xacc.analysis.blocks import statement_behind
from peerway_xacc.analysis.flow import Flow
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Statement, Use, Variable
from peerway_xacc.lowering.descriptors import Described
from peerway_xacc.lowering.sections import assignment, named
from peerway_xacc.lowering.unit import Unit, Written

_INQUIRY = re.compile(r"\bxmp_(?!array_laddr\b)\w+\s*\(\s*$")
_LABEL = re.compile(r"(case\b|default\b|\w+\s*:)")
_STORING = ("memcpy", "memmove", "memset", "fread", "scanf", "fscanf", "sscanf", "frexp", "modf", "sincos")
_COMPUTE = ("parallel", "kernels", "serial")
_COPIED_BACK = ("copy", "pcopy", "present_or_copy", "copyout", "pcopyout", "present_or_copyout")


@dataclass
class _Event:
    """A place where an array may be written; with `behind` it is the end of a statement."""

    array: DistributedArray
    function: Function
    start: int
    behind: bool = False


class _Finder:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.written = Written()
        self.events: list[_Event] = []
        # arrays passed to a parameter of this file
        self.passed: list[tuple[DistributedArray, DistributedArray]] = []
        self.constructs: list[tuple[d.Directive, Statement, Function]] = []
        in_file = [function for function in unit.syntax.functions if function.file == unit.file]
        self.functions = {function.name: function for function in in_file}
        self.parallel: set[int] = set()  # starts of statements that other threads or a device may execute
        for directive in unit.directives_in():
            function = unit.function_of(directive)
            if isinstance(directive, d.Omp) or (
                isinstance(directive, d.Acc) and directive.construct.startswith(_COMPUTE)
            ):
                statement = function and unit.syntax.statement_after(directive.file, directive.end, function)
                self.parallel |= {statement.start} if statement else set()
            if isinstance(directive, d.Loop | d.Task) and function:
                statement = unit.syntax.statement_after(directive.file, directive.end, function)
                if statement:
                    self.constructs.append((directive, statement, function))
        self.flow = Flow(unit, self.constructs)

    def run(self, described: list[Described]) -> Written:
        text = self.unit.text.text
        for array in self.unit.scopes.arrays():
            for description in described:
                if description.name == array.name and not _INQUIRY.search(text, 0, description.range.start):
                    self._always_written(
                        array, description.range.start, "its descriptor goes where its address can be asked"
                    )
        for function in self.functions.values():
            for use in function.uses:
                used = self.unit.scopes.of_variable(use.variable)
                if used:
                    self._use(used, use)
        for directive in self.unit.directives_in():
            if isinstance(directive, d.Acc):
                self._data(directive)
            if isinstance(directive, d.Gmove) and directive.mode == "out":
                self._gmove_out(directive)
        for event in self.events:
            self._mark_event(event)
        self._tasks()
        while self._propagate():
            pass
        return self.written

    # ---- what may be written

    def _always_written(self, array: DistributedArray, offset: int, why: str) -> None:
        self.written.always.setdefault(id(array), (self.unit.text.place(offset), why))

    def _use(self, array: DistributedArray, use: Use) -> None:
        assert array.variable is not None
        at = use.range.start
        if use.in_sizeof:
            return
        if not use.subscripts:
            self._whole(array, use)
        elif not use.address:
            if use.written:
                self.events.append(_Event(array, use.function, at))
        elif use.handed is None:
            self._always_written(array, at, "its address is kept")
        elif not use.handed.reads:
            if not self._only_stores(use.handed.callee, use.handed.position, set()):
                self._always_written(
                    array, at, f"its address goes to '{use.handed.callee}', which may keep it"
                )
            self.events.append(_Event(array, use.function, at))

    def _whole(self, array: DistributedArray, use: Use) -> None:
        """A use of an array without subscripts."""
        at = use.range.start
        if use.argument is None:
            pointer = array.variable is not None and array.variable.pointee is not None
            if not (pointer and use.written and not use.address):  # xmp_malloc may set it
                self._always_written(array, at, "its address is kept")
            return
        called = self.functions.get(use.callee)
        if called and use.position < len(called.parameters):
            parameter = self.unit.scopes.of_variable(called.parameters[use.position])
            if parameter:
                self.passed.append((array, parameter))
                return
        if use.callee != "free" and not (use.handed and use.handed.reads):
            self._always_written(array, at, f"it is passed to '{use.callee}', whose text is elsewhere")

    def _only_stores(self, name: str, position: int, seen: set[tuple[str, int]]) -> bool:
        """Does a function only read and write at an address that it gets, without keeping it?"""
        called = self.functions.get(name)
        if called is None:
            return name in _STORING and name not in self.unit.syntax.functions_known
        if (name, position) in seen:
            return True
        if position >= len(called.parameters):
            return False
        parameter: Variable = called.parameters[position]
        for use in parameter.uses:
            if use.in_sizeof or (use.subscripts and not use.address):
                continue
            handed = use.handed
            if handed is None or not (
                handed.reads or self._only_stores(handed.callee, handed.position, seen | {(name, position)})
            ):
                return False
        return True

    def _gmove_out(self, directive: d.Gmove) -> None:
        """Mark the left side of a gmove out: it may be written while its owners execute other code."""
        target, _right = assignment(self.unit.text, statement_behind(self.unit.text, directive.end))
        variable = self.unit.syntax.variable(named(target, 0)[0], directive.file, directive.start)
        array = self.unit.scopes.of_variable(variable) if variable else None
        if array:
            self._always_written(array, directive.start, "a gmove out writes it")

    def _data(self, directive: d.Acc) -> None:
        """Record acc directives that change the host's memory, or the whole copy on a GPU."""
        function = self.unit.function_of(directive)
        for clause in directive.clauses:
            ends = directive.construct == "data" and clause.name in _COPIED_BACK
            changes = ends or directive.construct == "update" or clause.name in _COPIED_BACK[3:]
            lost = clause.name in ("use_device", "deviceptr", "attach")
            for name in clause.variables if changes or lost else ():
                variable = self.unit.syntax.variable(name.text, directive.file, directive.start)
                array = self.unit.scopes.of_variable(variable) if variable else None
                if array is None:
                    continue
                if lost or function is None:
                    self._always_written(
                        array, directive.start, f"the clause {clause.name} gives its address away"
                    )
                    continue
                start = directive.start
                if ends or directive.construct.startswith(_COMPUTE):
                    statement = self.unit.syntax.statement_after(directive.file, directive.end, function)
                    start = statement.start if statement else start
                self.events.append(_Event(array, function, start, ends))

    # ---- where it is marked

    def _mark_event(self, event: _Event) -> None:
        inside = [
            construct for construct in self.constructs
            if construct[2] is event.function and construct[1].start <= event.start < construct[1].end
        ]  # fmt: skip
        tasks = [statement for directive, statement, _ in inside if isinstance(directive, d.Task)]
        for task in tasks:
            self._mark(event.array, task)
        innermost = max((task.start for task in tasks), default=-1)
        loops = [statement for directive, statement, _ in inside
                 if isinstance(directive, d.Loop) and statement.start >= innermost]  # fmt: skip
        if not loops:
            self._mark_outside_constructs(event, {task.start for task in tasks})
        elif not self._mark(event.array, min(loops, key=lambda loop: (loop.start, -loop.end))):
            self._always_written(event.array, event.start, "it is declared within a loop that is shared")

    def _mark(self, array: DistributedArray, statement: Statement) -> bool:
        if array.function is not None and array.last_directive > statement.start:
            return False  # the array is declared inside
        arrays = self.written.constructs.setdefault(statement.start, [])
        if array not in arrays:
            arrays.append(array)
        return True

    def _mark_outside_constructs(self, event: _Event, tasks: set[int]) -> None:
        """Mark a write outside constructs before the nearest statement that all nodes execute."""
        function = event.function
        around = [
            statement for statement in self.unit.syntax.around(self.unit.file, event.start)
            if function.body.start <= statement.start and statement.end <= function.body.end
        ]  # fmt: skip
        # a directive without a statement of its own
        around.append(Statement("statement", event.start, event.start, 0))
        last = None  # the innermost statement in a block that all nodes execute
        shared = False
        for number, block in enumerate(around[:-1]):
            if block.start in self.parallel:
                break
            if block.kind == "block":
                plain = number > 0 and around[number - 1].kind == "block" and shared
                shared = plain or block.start in tasks or self.flow.all_do(block, around[:number], function)
                last = around[number + 1] if shared else last
        own = last is not None and last.start == event.start
        if (
            last is None
            or (event.array.function is not None and event.array.last_directive > last.start)
            or (self.flow.reflects(last, function) and not (own and event.behind))
            or _LABEL.match(self.unit.text.text, last.start)
        ):
            self._always_written(
                event.array, event.start, "it is written where perhaps not all nodes execute"
            )
        elif event.behind:
            self.unit.output.edits.behind(last.end, f" pwx_written({event.array.address});")
        else:
            arrays = self.written.statements.setdefault(last.start, [])
            if event.array not in arrays:
                arrays.append(event.array)

    def _tasks(self) -> None:
        for directive, statement, function in self.constructs:
            inside = Range(statement.start, statement.end)
            if isinstance(directive, d.Task) and (
                self.flow.calls(inside, function) or self.flow.moves(inside)
            ):
                self.written.everything.add(statement.start)

    def _propagate(self) -> bool:
        """An argument always counts as written if its parameter does. Returns whether anything changed."""
        for array, parameter in self.passed:
            if id(parameter) in self.written.always and id(array) not in self.written.always:
                place, why = self.written.always[id(parameter)]
                self.written.always[id(array)] = place, f"as '{parameter.name}', {why}"
                return True
        return False


def writes(unit: Unit, described: list[Described]) -> Written:
    """Find all that may write a distributed array.

    `described` are the uses of descriptors, from which xmp_array_laddr gets the address of an array's memory.
    """
    if unit.scopes.arrays():
        with unit.diagnostics.collecting():
            return _Finder(unit).run(described)
    return Written()
