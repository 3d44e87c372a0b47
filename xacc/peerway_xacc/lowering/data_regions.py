"""Lowers the data directives that have a statement: `acc data` and `acc host_data`."""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import rows
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.data_clauses import (
    KINDS,
    around,
    clauses_of,
    condition,
    names,
    queue_of,
    waits,
)
from peerway_xacc.lowering.table import HasStatement, Lowering
from peerway_xacc.lowering.unit import Unit


def data(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower `acc data` with its statement."""
    _begin(unit, annotated, directive)
    _region(unit, annotated, directive)


def _begin(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    unit.output.on_gpu = True
    unit.compute.regions.append((Range(annotated.statement.start, annotated.statement.end), directive))


def _region(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    parts = clauses_of(unit, directive)
    if not parts:
        return
    name, guard = unit.output.new_name("data"), unit.output.new_name("asked")
    tail = f"{queue_of(directive)}, {where(directive)});"
    call = f"(&{name}, {len(parts)}, {name}__list, {tail}"
    all_rows = rows.of(unit, directive, KINDS)
    test = condition(directive) or "1"
    unit.data.lists[directive.start] = f"{name}__list"
    begins = " ".join([f"pwx_data_begin{call}", *(row.begin(tail) for row in all_rows)])
    annotated.before.append(
        f"{{ static pwx_data_region {name}; const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"const int {guard} = ({test}) != 0; "
        f"{' '.join([*waits(directive), *(row.filled for row in all_rows)])} if ({guard}) {{ {begins} }}"
    )
    ends = " ".join([*(row.end(tail) for row in all_rows), f"pwx_data_end{call}"])
    unit.output.edits.behind(annotated.statement.end, f" if ({guard}) {{ {ends} }} }}")
    unit.explain(directive, f"acc data: {', '.join(names(directive))}")


def zeros(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower a compute construct's clauses with the modifier zero like a data construct around it.

    They take effect even if no kernel starts.
    """
    named = [clause for clause in directive.clauses if clause.modifier == "zero"]
    if named:
        unit.output.on_gpu = True
        clauses = named + directive.all("async", "if", "self")
        _region(unit, annotated, replace(directive, spelling="acc data", clauses=clauses))
        unit.data.lists.pop(directive.start)  # it lacks the construct's other variables


def on_gpu(unit: Unit, directive: d.Acc) -> str:
    """C text that is true, within the statement of a host_data, if its names mean addresses on the GPU."""
    if not condition(directive):
        return "pwx_gpu()"
    return unit.data.conditions.setdefault(directive.start, unit.output.new_name("asked"))


def host_data(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower `acc host_data`: within the statement the names are addresses on the GPU."""
    _begin(unit, annotated, directive)
    opened = []
    guard = on_gpu(unit, directive)
    inside = annotated.statement
    regions = [
        other for region, other in unit.compute.regions
        if region.start <= inside.start and inside.end <= region.end and other is not directive
    ]  # fmt: skip
    for section in directive.named("use_device"):
        name = section.name.text
        variable = unit.syntax.variable(name, directive.file, directive.start)
        if variable is None:
            raise Refused(section.name.place, f"'{name}' is not declared")
        if not variable.sizes and variable.pointee is None:
            raise Refused(section.name.place, f"'{name}' is no array and no pointer, which use_device needs")
        known = unit.output.new_name("known")
        array = unit.scopes.of_variable(variable)
        if directive.all("if_present"):
            at = f"0, {array.address}" if array else f"(const void *){name}, 0"
            text = f"pwx_device_or_host({at}, {quoted(name)}, {where(directive)})"
        elif array:
            text = f"pwx_device_array(&{known}, {array.address}, {where(directive)})"
        elif part := around(unit, variable, regions):  # memory before the section need not be present
            text = f"pwx_device(&{known}, {part}.address, {quoted(name)}, {where(directive)})"
            text = f"((char *){text} - ((char *){part}.address - (char *){name}))"
        else:
            text = f"pwx_device(&{known}, (const void *){name}, {quoted(name)}, {where(directive)})"
        kind = f"__typeof__(&{name}[0])"
        opened.append(
            f"static __attribute__((unused)) pwx_known {known}; "
            f"{kind} {known}__at = {guard} ? ({kind}){text} : &{name}[0]; "
            f"{{ __attribute__((unused)) {kind} {name} = {known}__at;"
        )
    test, begin = condition(directive), "{ "
    if test:
        begin += f"const int {guard} = pwx_gpu() && {test}; "
    annotated.before.append(begin + " ".join(opened))
    unit.output.edits.behind(annotated.statement.end, " }" * (len(opened) + 1))
    unit.explain(directive, f"acc host_data: {', '.join(names(directive))}")


LOWERINGS: dict[str, Lowering] = {
    "acc data": HasStatement(data, host=True),
    "acc host_data": HasStatement(host_data, host=True),
}
