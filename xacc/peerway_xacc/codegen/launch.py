"""Writes the text that launches a compute construct's kernel: its arguments, its grid, and data around it."""

from __future__ import annotations

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import Stack
from peerway_xacc.codegen import construct_data, device_check, kernel, kernel_arguments, own_variables
from peerway_xacc.codegen.clause_rules import default
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend import clauses as phrases
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import data_clauses, memory, rows
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.types import OPERATORS, run_time_type
from peerway_xacc.lowering.unit import Unit


def launched(
    unit: Unit,
    stack: Stack,
    directive_of_kernel: d.Acc,
    loops: list[For],
    region: d.Acc | None,
    private: list[str],
    regions: list[d.Acc],
) -> str:
    """The statement for a GPU; it ends with the `else` before the loops for CPUs. Raises Unsupported."""
    inner = _inner(unit, loops)
    loops = loops + [loop for loop, _ in inner]
    directives = [
        row_section
        for row_section in (directive_of_kernel, region, *(directive for _, directive in inner))
        if row_section is not None
    ]
    own = {name.text for row_section in directives for name in row_section.named_variables("private")} | set(
        private
    )
    reductions = _reductions(unit, directives)
    pointed = construct_data.pointed_to(unit, directives)
    copied = construct_data.copied_in(unit, directives, pointed) - own
    settled = own | copied | {variable.name for _, variable in reductions}
    changed = [] if loops else construct_data.copied_back(unit, stack, directive_of_kernel, settled)
    named = construct_data.named_scalars([*directives, *regions]) | set(changed)
    named |= own_variables.declared_on_device(unit, stack.statement)
    pointers = kernel_arguments.device_pointers(unit, stack.function, [*directives, *regions])
    present = default([*directives, *regions[::-1]]) == "present"
    clauses, data_names = construct_data.clauses_and_arrays(
        unit, stack, directives, own | copied, pointers, present, regions
    )
    for name in changed:
        section = phrases.Section(phrases.Name(name, directive_of_kernel.place))
        clauses.append(memory.described(unit, directive_of_kernel, section, "COPY"))
        data_names.append(name)
    for name in sorted(set(pointed) & copied):
        clauses.append(memory.described(unit, directive_of_kernel, pointed[name], "COPYIN"))
    name = unit.output.new_name(f"{stack.function.name}_{directive_of_kernel.place.line}")
    on_device = named - own - copied - {v.name for _, v in reductions}
    sections = memory.sections_of(directives, data_clauses.KINDS)
    text = kernel_arguments.Clauses(
        own, copied, on_device, pointers, sections, pointed,
        lambda variable: data_clauses.around(unit, variable, regions),
        rows.named(
            unit,
            [*directives, *regions, *kernel_arguments.declared_in(unit, stack.function)],
            data_clauses.KINDS,
        ),
    )  # fmt: skip
    built = kernel.build(unit, stack, name, loops, reductions, text)
    device_check.check(unit, built.text)
    _declare(unit, built)
    _explain(unit, directive_of_kernel, built, data_names)
    there = where(directive_of_kernel)
    passed = [argument for argument in built.arguments if argument.parameter]
    lines = [line for argument in passed for line in argument.lines]
    values = ", ".join(f"(void *){argument.value}" for argument in passed) or "0"
    lines.append(f"void *{name}__a[] = {{{values}}};")
    sizes = ", ".join(f"sizeof(*{argument.value})" for argument in passed) or "0"
    lines.append(f"static const unsigned {name}__s[] = {{{sizes}}}; {name}.sizes = {name}__s;")
    totals = _totals(directive_of_kernel, reductions, named, lines)
    extents = [f"{letter}__all" if group else "1" for letter, group in zip("xyz", built.groups, strict=True)]
    threads = _threads(directives) if loops else "1"
    blocks = _gangs(directives) if loops else "1"
    scratch = [argument.value[1:] for argument in passed if argument.value.endswith("__w")]
    if scratch:  # no more threads than have memory of their own
        threads = "PWX_OWN_THREADS" if loops else "1"
        bytes_ = " + ".join(f"{row_section.removesuffix('__w')}__n" for row_section in scratch)
        count = f"pwx_own_blocks({bytes_}, (double){' * '.join(extents)})" if loops else "1"
        blocks = f"{name}__b"
        lines.append(f"const long {blocks} = {count};")
        for row_section in scratch:
            bytes_ = f"{row_section.removesuffix('__w')}__n * {threads} * {blocks}"
            lines.append(f"{row_section} = pwx_scratch({bytes_}, {there});")
    shape = f"&(const pwx_shape){{{{{', '.join(extents)}}}, {threads}, {blocks}, {int(built.by_block)}}}"
    queue = data_clauses.queue_of(region or directive_of_kernel)
    lines.append(
        f"pwx_launch(&{name}, {shape}, {name}__a, {len(passed)}, {len(reductions)}, {totals}, "
        f"{queue}, {there});"
    )
    lines += [f"pwx_scratch_end({row_section}, {queue}, {there});" for row_section in scratch]
    body = " ".join(lines).replace("PWX_THERE", there)
    before = " ".join(data_clauses.waits(region or directive_of_kernel))
    if clauses:
        parts = f"{len(clauses)}, {name}__data"
        tail = f"{parts}, {queue}, {there});"
        of_rows = [
            row_section
            for each in directives
            for row_section in rows.of(unit, each, data_clauses.KINDS, own | copied)
        ]
        filled = " ".join(row_section.filled for row_section in of_rows)
        begins = " ".join(row_section.begin(f"{queue}, {there});") for row_section in of_rows)
        ends = " ".join(row_section.end(f"{queue}, {there});") for row_section in of_rows)
        body = (
            f"static pwx_data_region {name}__region; "
            f"const pwx_data {name}__data[] = {{{', '.join(clauses)}}}; "
            f"{filled} pwx_data_begin(&{name}__region, {tail} {begins} {{ {body} }} "
            f"{ends} pwx_data_end(&{name}__region, {tail}"
        )
    test = data_clauses.condition_text(
        unit, *((directive_of_kernel, region) if region else (directive_of_kernel,))
    )
    condition = f" && {test}" if test else ""
    return f"if (pwx_gpu(){condition}) {{ {before} {body} }} else"


def _inner(unit: Unit, loops: list[For]) -> list[tuple[For, d.Acc]]:
    """Loops directly inside that acc also shares among threads."""
    inner_loops: list[tuple[For, d.Acc]] = []
    at = loops[-1] if loops else None
    while at is not None:
        nested = loop_nest.nested_directly(unit, at.statement, 2)
        if len(nested) < 2:
            break
        directive = unit.compute.loops.get(nested[1].statement.start)
        if directive is None or directive.all("seq", "reduction"):
            break
        more = loop_nest.nested_directly(unit, nested[1].statement, _collapsed(directive))
        inner_loops += [(loop, directive) for loop in more]
        at = more[-1]
    return inner_loops


def _collapsed(directive: d.Acc) -> int:
    clauses = directive.all("collapse")
    value = clauses[0].expression.value if clauses and clauses[0].expression else 1
    return value or 1


def _reductions(unit: Unit, directives: list[d.Acc]) -> list[tuple[str, Variable]]:
    reductions: dict[str, tuple[str, Variable]] = {}
    for directive in directives:
        for clause in directive.all("reduction"):
            for name in clause.variables:
                variable = unit.syntax.variable(name.text, directive.file, directive.start)
                if variable is None:
                    raise Refused(name.place, f"'{name.text}' is not declared")
                if not variable.scalar or variable.pointee is not None:
                    raise Unsupported(f"the reduction of {name.text} is not of a scalar")
                if run_time_type(variable, name.place, clause.operator) == "PWX_LONG_DOUBLE":
                    raise Unsupported(f"the reduction of {name.text} is of a long double", name.place)
                reductions[name.text] = (clause.operator, variable)
    return list(reductions.values())


def _totals(
    directive: d.Acc, reductions: list[tuple[str, Variable]], named: set[str], lines: list[str]
) -> str:
    """The reductions of a launch, as C text."""
    parts = []
    for operator, variable in reductions:
        kind = run_time_type(variable, directive.place, operator)
        device = "0"
        if variable.name in named:
            lines.append(f"static pwx_known {variable.name}__k;")
            device = f"pwx_device(&{variable.name}__k, &{variable.name}, {quoted(variable.name)}, PWX_THERE)"
        parts.append(f"{{{OPERATORS[operator]}, {kind}, &{variable.name}, {device}}}")
    return f"(const pwx_reduction[]){{{', '.join(parts)}}}" if parts else "0"


def _threads(directives: list[d.Acc]) -> str:
    for directive in directives:
        for clause in directive.all("vector_length"):
            if clause.expression is not None:
                return f"({clause.expression.text})"
        for clause in directive.all("vector"):
            if clause.arguments:
                return f"({clause.arguments[0].text})"
    return "0"


def _gangs(directives: list[d.Acc]) -> str:
    text = [clause.expression for directive in directives for clause in directive.all("num_gangs")]
    return f"({text[0].text})" if text and text[0] else "0"


def _declare(unit: Unit, built: kernel.Kernel) -> None:
    text = "\n".join(f'  {quoted(line)[:-1]}\\n"' for line in built.text.splitlines())
    unit.compute.kernel_names.append(built.name)
    unit.output.top.append(f"static pwx_kernel {built.name} = {{{quoted(built.name)},\n{text}, 0, 0, 0}};")


def _explain(unit: Unit, directive: d.Acc, built: kernel.Kernel, names: list[str]) -> None:
    axes = [
        f"{letter} = {' x '.join(dimension.index for dimension in group)}"
        for letter, group in zip("xyz", built.groups, strict=True)
        if group
    ]
    joined = f"; reductions of {', '.join(v.name for _, v in built.reductions)} in the same launch"
    unit.explain(
        directive,
        f"kernel {built.name} on a GPU: {', '.join(axes) or 'one thread'}; data: {', '.join(names) or 'none'}"
        + (joined if built.reductions else "")
        + ("; a block an iteration, its threads share the inner loop" if built.by_block else ""),
    )
