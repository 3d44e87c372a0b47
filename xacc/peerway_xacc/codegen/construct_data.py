"""Collects the data of a compute construct on the GPU: named in its clauses, or used without a clause."""

from __future__ import annotations

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import kernel_arguments, own_variables
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Range, Variable, used_in
from peerway_xacc.lowering import data_clauses, memory
from peerway_xacc.lowering.unit import Unit


def pointed_to(unit: Unit, directives: list[d.Acc]) -> dict[str, clauses.Section]:
    """The sections in private and firstprivate clauses that are memory behind a pointer."""
    sections: dict[str, clauses.Section] = {}
    for directive in directives:
        for section in directive.named("private", "firstprivate"):
            variable = unit.syntax.variable(section.name.text, directive.file, directive.start)
            if variable is not None and own_variables.whole_elements(section, variable):
                sections.setdefault(section.name.text, section)
    return sections


def copied_back(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc, settled: set[str]) -> list[str]:
    """The scalars that a single-threaded kernels construct changes: OpenACC copies them back."""
    if not directive.construct.startswith("kernels"):
        return []
    return sorted(own_variables.changed(unit, annotated) - settled)


def copied_in(unit: Unit, directives: list[d.Acc], pointed: dict[str, clauses.Section]) -> set[str]:
    """The firstprivate variables; a pointer counts only if a section says how much memory is copied."""
    names = set()
    for directive in directives:
        for name in directive.named_variables("firstprivate"):
            variable = unit.syntax.variable(name.text, directive.file, directive.start)
            if variable is not None and (not variable.pointer or name.text in pointed):
                names.add(name.text)
    return names


def named_scalars(directives: list[d.Acc]) -> set[str]:
    """The variables that data clauses put on the GPU."""
    return {
        name.text
        for directive in directives
        for kind in data_clauses.KINDS
        for name in directive.named_variables(kind)
    }


def operands_and_names(
    unit: Unit,
    annotated: AnnotatedStatement,
    directives: list[d.Acc],
    own: set[str],
    pointers: list[Variable],
    present: bool,
    regions: list[d.Acc],
) -> tuple[list[str], list[str]]:
    """The operands of a construct's data, a pwx_data each as C text, and their names.

    An array without a clause is present or copied: with the section of an enclosing data construct, or whole.
    """
    operands: list[str] = []
    named: set[str] = set(own)
    for directive in directives:
        for clause in directive.clauses:
            for section in clause.sections if clause.name in data_clauses.KINDS else ():
                if section.name.text in named:
                    continue
                named.add(section.name.text)
                operands.append(memory.described(unit, directive, section, data_clauses.kind_of(clause)))
    names = sorted(named - own)
    whole = Range(annotated.statement.start, annotated.statement.end)
    for use in used_in(annotated.function.uses, whole):
        variable = use.variable
        inside = annotated.statement.start <= variable.declarator.start < annotated.statement.end
        if variable.name in named or (inside and not variable.file_scope) or use.in_sizeof:
            continue
        if not variable.sizes and variable.pointee is None:
            continue
        if any(pointer is variable for pointer in pointers) or kernel_arguments.own_in_loop(unit, use, whole):
            continue
        named.add(variable.name)
        names.append(variable.name)
        section = clauses.Section(clauses.Name(variable.name, directives[0].place))
        kind = "PRESENT" if present else "COPYIN" if variable.constant else "COPY"
        part = data_clauses.around(unit, variable, regions)
        operands.append(
            memory.again(variable.name, part, kind)
            if part
            else memory.described(unit, directives[0], section, kind)
        )
    return operands, names
