"""Runs compute constructs without a kernel on the host, in a process with a GPU.

Before the construct the host's memory gets the GPU's data, and afterwards the GPU gets it back.
"""

from __future__ import annotations

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import clause_rules
from peerway_xacc.codegen.kernel_arguments import device_pointers
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Variable, used_in
from peerway_xacc.lowering import data_clauses, memory
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit


def fall_back(
    unit: Unit, annotated: AnnotatedStatement, directive: d.Acc, around: list[d.Acc], on_device: set[str]
) -> bool:
    """Let the host execute the statement.

    Returns False if that needs memory that the host cannot reach, or that is not known here.
    """
    if device_pointers(unit, annotated.function, [directive, *around]):
        return False
    sections = memory.sections_of([directive, *around], data_clauses.KINDS)
    parts = []
    for variable in _used(unit, annotated):
        value = variable.scalar and variable.pointee is None
        if value and not variable.file_scope and variable.name not in on_device:
            continue
        if unit.syntax.variable(variable.name, directive.file, directive.start) is not variable:
            return False
        if variable.has_pointers:
            return False  # the GPU's pointers may point to rows there
        section = sections.get(variable.name, clauses.Section(clauses.Name(variable.name, directive.place)))
        try:
            parts.append(memory.described(unit, directive, section, "PRESENT"))
        except Refused:
            return False
    name = unit.output.new_name("host")
    test = data_clauses.condition_text(
        unit, directive, *(construct for construct in around if construct.construct in clause_rules.COMPUTE)
    )
    condition = f" && {test}" if test else ""
    listed = f"{len(parts)}, {name}__list, 1, PWX_QUEUE_SYNC, {where(directive)});"
    opened = f"{{ const int {name} = pwx_gpu(){condition}; "
    if parts:
        opened += f"const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        opened += f"if ({name}) {{ pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)}); "
        opened += f"pwx_update_host({listed} }}"
        unit.output.edits.behind(annotated.statement.end, f" if ({name}) pwx_update_device({listed} }}")
    else:
        opened += f"if ({name}) pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)});"
        unit.output.edits.behind(annotated.statement.end, " }")
    annotated.before.append(opened)
    return True


def _used(unit: Unit, annotated: AnnotatedStatement) -> list[Variable]:
    """The outer variables that the statement, or a function of the program that it calls, uses."""
    inside = Range(annotated.statement.start, annotated.statement.end)
    variables: dict[int, Variable] = {}
    for use in used_in(annotated.function.uses, inside):
        variable = use.variable
        if not use.in_sizeof and (
            variable.file_scope or not inside.start <= variable.declarator.start < inside.end
        ):
            variables[id(variable)] = variable
    known = {function.name: function for function in unit.syntax.functions}
    waiting = [mark.name for mark in annotated.function.marks if inside.start <= mark.start < inside.end]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in known:
            continue
        seen.add(name)
        waiting += [mark.name for mark in known[name].marks]
        for use in known[name].uses:
            if use.variable.file_scope and not use.variable.constant:
                variables[id(use.variable)] = use.variable
    return list(variables.values())
