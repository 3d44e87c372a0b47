"""Finds the variables of a kernel: its arguments, and the private variables of its threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen.argument_forms import (
    Argument,
    copied,
    cycles_of,
    declared,
    distributed,
    own_memory,
    plain,
    present,
    type,
)
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Section
from peerway_xacc.frontend.source import Function, Range, Use, Variable, used_in
from peerway_xacc.lowering.subscripts import bases_of
from peerway_xacc.lowering.unit import Unit


@dataclass(frozen=True)
class Clauses:
    """What the clauses of a construct, and of those around it, say of the kernel's variables."""

    private: set[str]
    copied: set[str]  # firstprivate
    on_device: set[str]  # scalars whose value is on the GPU
    device_pointers: list[Variable]
    sections: dict[str, Section]  # sections in the construct's data clauses
    pointed: dict[str, Section]  # sections behind pointers in private and firstprivate
    around: Callable[[Variable], str]  # the pwx_data of a data construct around, if it is a part
    rows: set[str]  # pointers to pointers whose rows clauses name


def declared_in(unit: Unit, function: Function) -> list[d.Acc]:
    """The acc declare directives of a function."""
    return [
        directive
        for directive in unit.directives
        if isinstance(directive, d.Acc)
        and directive.construct == "declare"
        and unit.function_of(directive) is function
    ]


def device_pointers(unit: Unit, function: Function, directives: list[d.Acc]) -> list[Variable]:
    """The pointers in clauses deviceptr of these constructs or of an acc declare of the function."""
    pointers = []
    for directive in (*directives, *declared_in(unit, function)):
        for name in directive.named_variables("deviceptr"):
            variable = unit.syntax.variable(name.text, directive.file, directive.start)
            if variable is not None:
                pointers.append(variable)
    return pointers


def own_in_loop(unit: Unit, use: Use, inside: Range) -> bool:
    """Is the variable of a use private to a loop in this range that contains the use?"""
    return any(
        unit.syntax.variable(section.name.text, directive.file, directive.start) is use.variable
        and inside.start <= loop.start <= use.range.start < loop.end
        for loop, directive, section in unit.compute.private
    )


def arguments_of(
    unit: Unit, annotated: AnnotatedStatement, inside: Range, skipped: set[str], clauses: Clauses
) -> tuple[list[Argument], list[str]]:
    """The arguments of a body, and the declarations of its private variables. Raises Unsupported."""
    arguments: list[Argument] = []
    locals_: list[str] = []
    seen: dict[str, tuple[Variable, bool]] = {}
    for use in used_in(annotated.function.uses, inside):
        variable = use.variable
        outside = variable.file_scope or not inside.start <= variable.declarator.start < inside.end
        if not outside or variable.name in skipped or own_in_loop(unit, use, inside):
            continue
        if (
            _leads_to_host(use)
            and variable.name not in clauses.rows
            and variable.name not in clauses.private
            and not any(pointer is variable for pointer in clauses.device_pointers)
        ):
            place = unit.text.place(use.range.start, use.range.end)
            raise Unsupported(
                f"the pointers that {variable.name} has lead to memory of the host; use one block of memory, "
                f"or name the rows, as in {variable.name}[0:n][0:m]",
                place,
            )
        changed = use.written or use.argument is not None or use.aliased
        seen[variable.name] = (variable, changed or seen.get(variable.name, (variable, False))[1])
    for name, (variable, changed) in seen.items():
        if name in clauses.pointed:
            arguments += own_memory(variable, clauses.pointed[name], name in clauses.copied)
        elif name in clauses.private:
            locals_.append(declared(variable))
        if name in clauses.pointed or name in clauses.private:
            continue
        array = unit.scopes.of_variable(variable)
        if array:
            arguments.append(distributed(array, changed))
            arguments += [
                Argument(f"const pwx_cycle {cycle}", f"&{cycle}", [declaration])
                for cycle, declaration in cycles_of(array)
            ]
            arguments += [
                Argument(f"const long {base}", f"&{base}", [declaration])
                for base, declaration in bases_of(array)
            ]
        elif name in clauses.copied and variable.sizes and not variable.pointer:
            arguments.append(copied(variable))
        elif variable.sizes or variable.pointee is not None:
            is_device = any(pointer is variable for pointer in clauses.device_pointers)
            section = clauses.sections.get(name)
            part = "" if section else clauses.around(variable)
            arguments.append(plain(variable, changed, is_device, section, part, _is_aligned(unit, variable)))
        elif name in clauses.on_device:
            arguments.append(present(variable, changed))
        else:
            arguments.append(Argument(f"{type(variable)} {name}", f"&{name}"))
    return arguments, locals_


def _is_aligned(unit: Unit, variable: Variable) -> bool:
    """Is it a pointer to a distributed array of Fortran, as fortran/kernel_names.py declares it?"""
    text = unit.texts.of(variable.file).text
    declared = text[variable.declarator.start : text.find(";", variable.declarator.start)]
    return variable.pointer and variable.initialised and "pwf_aligned(" in declared


def _leads_to_host(use: Use) -> bool:
    """Does a use follow a pointer stored in memory? The GPU's copy of such a pointer points to the host."""
    variable = use.variable
    rank = len(variable.sizes) if variable.pointee is None else 1 + len(variable.pointee)
    return variable.has_pointers and len(use.subscripts) > rank > 0
