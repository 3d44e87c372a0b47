"""Tasks of xmp: the statements up to `end task` run on some nodes only."""

from __future__ import annotations

from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import End
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.lowering.c_text import reference, where
from peerway_xacc.lowering.loops import text_of


def task(unit: FortranUnit, directive: d.Task) -> None:
    """The statements up to `end task` run on the nodes of the reference only."""
    scope = unit.scope_of(directive)
    number = unit.number_of(directive)
    end = _end_of_task(unit, directive)
    _check_returns(unit, directive, end)
    variable = f"pwx_t{directive.place.line}_{number}"
    unit.generated.declare(scope, f"integer(8) :: {variable}(2)")
    nodes = reference(unit, directive.on, directive)
    lines = [
        f"const pwx_task task = pwx_task_begin({nodes}, {int(directive.nocomm)}, {where(directive)});",
        "c0[0] = task.inside;", "c0[1] = task.pushed;",
    ]  # fmt: skip
    begin = call_of(unit, "task", lines, unit.reads[id(directive)].arguments, directive)
    begin.others.insert(0, ("numbers", variable))
    over = Call(unit.name("task_end"), [
        "pwx_task task = {(int)c0[0], (int)c0[1]};", "pwx_task_end(&task);"
    ], others=[("numbers", variable)])  # fmt: skip
    unit.generated.before(number, unit.generated.call(scope, begin), f"if ({variable}(1) /= 0) then")
    unit.generated.before(unit.number_of(end), "end if", unit.generated.call(scope, over))
    unit.explain(directive, f"task: what follows runs on {text_of(directive.on)} only")


def _end_of_task(unit: FortranUnit, directive: d.Task) -> End:
    depth = 0
    for other in unit.directives:
        if other.start <= directive.start or unit.scope_of(other) is not unit.scope_of(directive):
            continue
        if isinstance(other, d.Task):
            depth += 1
        elif isinstance(other, End) and other.construct == "task":
            if depth == 0:
                return other
            depth -= 1
    raise Refused(directive.place, "this task has no end; write '!$xmp end task' behind its statements")


def _check_returns(unit: FortranUnit, directive: d.Task, end: End) -> None:
    for statement in unit.statements_behind(unit.number_of(directive)):
        if statement.number > unit.number_of(end):
            return
        words = statement.words
        if words[-1].text == "return" and (len(words) == 1 or words[0].text == "if"):
            note: tuple[Place, str] = (directive.place, "the task begins here")
            raise Refused(words[-1].place, "RETURN leaves a task before its end", note)


def ends(unit: FortranUnit, directive: End) -> None:
    """An `end task` or `end tasks` must end something."""
    kind = d.Task if directive.construct == "task" else d.Tasks
    depth = 0
    for other in unit.directives:
        if other.start > directive.start or unit.scope_of(other) is not unit.scope_of(directive):
            continue
        depth += isinstance(other, kind)
        depth -= isinstance(other, End) and other.construct == directive.construct
    if depth < 0:
        raise Refused(directive.place, f"there is no {directive.construct} that this could end")
