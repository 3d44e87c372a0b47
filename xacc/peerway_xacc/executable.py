"""Lowers the executable directives: which function lowers which directive, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peerway_xacc.analysis.mapped import Stack
from peerway_xacc.codegen import clause_rules, foreign_acc, openacc, sequences
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Statement
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import communication, data, gmove, locks, loops, merged, reflects
from peerway_xacc.lowering.unit import Unit

_COMMUNICATION: dict[type, Callable[[Unit, Any], None]] = {
    d.Reflect: reflects.reflect,
    d.Reduction: communication.reduction,
    d.Bcast: communication.bcast,
    d.Barrier: communication.barrier,
    d.WaitAsync: communication.wait_async,
    d.Gmove: gmove.gmove,
    d.ArrayOn: gmove.array_on,
    d.Post: communication.post,
    d.Lock: locks.lock,
    d.Wait: communication.wait,
}
_ON_HOST = ("data", "host_data", "enter data", "exit data", "update", "wait", "init", "shutdown", "set")
_STACKED: dict[type, Callable[[Unit, Stack, Any], None]] = {
    d.Loop: loops.loop,
    d.Task: loops.task,
    d.Tasks: lambda _unit, _stack, _directive: None,
    d.Acc: openacc.compute,
}


def lower(unit: Unit) -> None:
    """Lower all executable directives. An error ends only the directive in which it occurs."""
    if not unit.foreign_acc:
        sequences.mark(unit)
    on_gpu = openacc.device_statements(unit)
    if not unit.foreign_acc:
        _merge(unit)
    stacks: dict[int, Stack] = {}
    for directive in unit.directives:
        with unit.diagnostics.collecting():
            _check_host(unit, on_gpu, directive)
            if _has_statement(directive):
                _add_to_stack(unit, stacks, directive)
            else:
                _lower_alone(unit, directive)
    _mark_writes(unit, stacks)
    unit.with_directives.update(stacks)
    for stack in stacks.values():
        for directive in stack.directives:
            with unit.diagnostics.collecting():
                if lowering := _STACKED.get(type(directive)):
                    lowering(unit, stack, directive)
    for generate in unit.compute.pending:
        with unit.diagnostics.collecting():
            generate()
    for stack in stacks.values():
        _emit(unit, stack)


def _merge(unit: Unit) -> None:
    """Merge clauses that an OpenACC directive has several times."""
    for directive in unit.directives_in():
        if isinstance(directive, d.Acc):
            with unit.diagnostics.collecting():
                merged.merge(directive)


def _lower_alone(unit: Unit, directive: d.Directive) -> None:
    """Lower a directive that does not belong to a statement."""
    if isinstance(directive, d.Acc):
        clause_rules.check(unit, directive)
        (foreign_acc if unit.foreign_acc else data).executable(unit, directive)
    elif lowering := _COMMUNICATION.get(type(directive)):
        if unit.function_of(directive) is None:
            raise Refused(directive.place, "this directive must be in a function")
        lowering(unit, directive)


def _check_host(unit: Unit, on_gpu: list[Statement], directive: d.Directive) -> None:
    """Refuse a directive of the host that is in a statement for the GPU, or outside functions."""
    acc_of_host = isinstance(directive, d.Acc) and directive.construct in _ON_HOST
    if acc_of_host and directive.file == unit.file and unit.function_of(directive) is None:
        raise Refused(directive.place, "this directive must be in a function")
    host = acc_of_host or type(directive) in _COMMUNICATION or isinstance(directive, d.Task | d.Tasks)
    around = (
        [construct for construct in on_gpu if construct.start <= directive.start < construct.end]
        if directive.file == unit.file
        else []
    )
    if host and around:
        note = (unit.text.place(around[0].start), "the statement begins here")
        advice = "move it out of the statement that the GPU executes"
        raise Refused(directive.place, f"{_as_written(unit, directive)} runs on the host; {advice}", note)


def _as_written(unit: Unit, directive: d.Directive) -> str:
    """A directive as the program writes it: `xmp reflect`, `acc enter data`.

    It must be in the source file.
    """
    if isinstance(directive, d.Acc):
        return f"acc {directive.construct}"
    at = unit.text.line_start(directive.place.line) + directive.place.column - 1
    return f"xmp {unit.text.text[at : at + directive.place.length]}"


def _has_statement(directive: d.Directive) -> bool:
    """Does a directive belong to the statement that follows it?"""
    if isinstance(directive, d.Acc):
        return directive.construct in openacc.STATEMENT
    return isinstance(directive, d.Loop | d.Task | d.Tasks | d.Omp)


def _add_to_stack(unit: Unit, stacks: dict[int, Stack], directive: d.Directive) -> None:
    function = unit.function_of(directive)
    if directive.file != unit.file:
        if isinstance(directive, d.Omp):
            return
        raise Refused(
            directive.place, "this directive in a header is not supported yet; put it into the source file"
        )
    if function is None:
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "this directive must be in a function")
    statement = unit.syntax.statement_after(directive.file, directive.end, function)
    block = unit.syntax.enclosing_block(directive.file, directive.start)
    if statement is None or (block and statement.start >= block.end):
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "expected a statement behind this directive")
    stacks.setdefault(statement.start, Stack(statement, function)).directives.append(directive)


def _mark_writes(unit: Unit, stacks: dict[int, Stack]) -> None:
    """Insert pwx_written before statements that write distributed arrays outside constructs.

    If such a statement has directives, the call goes before the first one, so that they stay next to it.
    """
    directives = {directive.start for directive in unit.directives_in()}
    for start, arrays_ in unit.writes.statements.items():
        text = " ".join(f"pwx_written({array.address});" for array in arrays_)
        at = stacks[start].directives[0].start if start in stacks else start
        if at in directives:
            text += f"\n#line {unit.text.place(at).line} {quoted(unit.file)}\n"
        unit.output.edits.before(at, text if at in directives else f"{text} ")


def _emit(unit: Unit, stack: Stack) -> None:
    """Put all lines before a statement in the place of its last directive; OpenMP directives come last."""
    if all(isinstance(directive, d.Omp) for directive in stack.directives):
        return
    own = []
    for directive in stack.directives:
        if isinstance(directive, d.Omp):
            own.append(directive.text)
            newlines = unit.text.text.count("\n", directive.start, directive.end)
            if directive is not stack.directives[-1]:
                unit.output.edits.replace(directive.start, directive.end, "\n" * newlines)
    lines = [*stack.before, *own, *stack.last]
    unit.output.edits.directive(stack.directives[-1].start, stack.directives[-1].end, lines)
    unit.output.placed.add(stack.directives[-1].start)
