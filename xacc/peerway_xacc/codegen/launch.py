"""Writes the text that launches a compute construct's kernel: its arguments, its grid, and data around it."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import construct_data, device_check, kernel, kernel_arguments, own_variables
from peerway_xacc.codegen.clause_rules import default
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.codegen.vector import vector_length_of
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import data_clauses, memory, rows
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.types import OPERATORS, run_time_type
from peerway_xacc.lowering.unit import Unit


@dataclass(frozen=True)
class _Construct:
    """A compute construct that gets a kernel."""

    unit: Unit
    annotated: AnnotatedStatement
    directive: d.Acc
    region: d.Acc | None  # the compute construct around, if `directive` is a loop in one
    regions: list[d.Acc]  # all constructs around, from the outermost on
    directives: list[d.Acc]  # `directive`, `region` and those of inner loops that threads share, too
    loops: list[For]  # the loops that threads share; none: one thread executes the statement
    reductions: list[tuple[str, Variable]]

    @property
    def around(self) -> d.Acc:
        """The directive whose async and wait clauses apply."""
        return self.region or self.directive


@dataclass(frozen=True)
class _Data:
    """The data of a construct on the GPU."""

    operands: list[str]  # the pwx_data of its data region, as C text
    names: list[str]  # of the operands, for --explain
    scalars: set[str]  # scalars whose values are on the GPU


def launched(
    unit: Unit,
    annotated: AnnotatedStatement,
    directive: d.Acc,
    loops: list[For],
    region: d.Acc | None,
    private: list[str],
    regions: list[d.Acc],
) -> str:
    """The statement for a GPU; it ends with the `else` before the loops for CPUs. Raises Unsupported."""
    inner = _inner(unit, loops)
    directives = [directive, *([region] if region else []), *(shared for _, shared in inner)]
    loops = loops + [loop for loop, _ in inner]
    reductions = _reductions(unit, directives)
    construct = _Construct(unit, annotated, directive, region, regions, directives, loops, reductions)
    variables, data = _variables(construct, private)
    name = unit.output.new_name(f"{annotated.function.name}_{directive.place.line}")
    length = vector_length_of(directives)
    built = kernel.build(unit, annotated, name, loops, reductions, variables, length)
    device_check.check(unit, built.text)
    _declare(unit, built)
    _explain(unit, directive, built, data.names)
    launch = _launch(construct, built, data.scalars)
    if data.operands:
        launch = _in_data_region(construct, name, data.operands, variables, launch)
    waits = " ".join(data_clauses.waits(construct.around))
    test = data_clauses.condition_text(unit, directive, *([region] if region else []))
    return f"if (pwx_gpu(){f' && {test}' if test else ''}) {{ {waits} {launch} }} else"


def _variables(construct: _Construct, private: list[str]) -> tuple[kernel_arguments.Clauses, _Data]:
    """What the clauses say of the kernel's variables, and the data that the construct has on the GPU."""
    unit, annotated = construct.unit, construct.annotated
    directives, regions = construct.directives, construct.regions
    own = {name.text for directive in directives for name in directive.named_variables("private")}
    own |= set(private)
    pointed = construct_data.pointed_to(unit, directives)
    copied = construct_data.copied_in(unit, directives, pointed) - own
    reduced = {variable.name for _, variable in construct.reductions}
    changed: list[str] = []
    if not construct.loops:
        changed = construct_data.copied_back(unit, annotated, construct.directive, own | copied | reduced)
    scalars = construct_data.named_scalars([*directives, *regions]) | set(changed)
    scalars |= own_variables.declared_on_device(unit, annotated.statement)
    pointers = kernel_arguments.device_pointers(unit, annotated.function, [*directives, *regions])
    present = default([*directives, *regions[::-1]]) == "present"
    operands, names = construct_data.operands_and_names(
        unit, annotated, directives, own | copied, pointers, present, regions
    )
    for name in changed:
        section = clauses.Section(clauses.Name(name, construct.directive.place))
        operands.append(memory.described(unit, construct.directive, section, "COPY"))
        names.append(name)
    for name in sorted(set(pointed) & copied):
        operands.append(memory.described(unit, construct.directive, pointed[name], "COPYIN"))
    declared = kernel_arguments.declared_in(unit, annotated.function)
    variables = kernel_arguments.Clauses(
        own, copied, scalars - own - copied - reduced, pointers,
        memory.sections_of(directives, data_clauses.KINDS), pointed,
        lambda variable: data_clauses.around(unit, variable, regions),
        rows.named(unit, [*directives, *regions, *declared], data_clauses.KINDS),
    )  # fmt: skip
    return variables, _Data(operands, names, scalars)


def _launch(construct: _Construct, built: kernel.Kernel, on_device: set[str]) -> str:
    """The C text that computes a kernel's arguments, and launches it."""
    name, there = built.name, where(construct.directive)
    queue = data_clauses.queue_of(construct.around)
    arguments = [argument for argument in built.arguments if argument.parameter]
    lines = [line for argument in arguments for line in argument.lines]
    values = ", ".join(f"(void *){argument.value}" for argument in arguments) or "0"
    lines.append(f"void *{name}__a[] = {{{values}}};")
    sizes = ", ".join(f"sizeof(*{argument.value})" for argument in arguments) or "0"
    lines.append(f"static const unsigned {name}__s[] = {{{sizes}}}; {name}.sizes = {name}__s;")
    totals = _totals(construct.directive, construct.reductions, on_device, lines)
    iterations = [f"{axis}__all" if group else "1" for axis, group in zip("xyz", built.groups, strict=True)]
    threads = vector_length_of(construct.directives) or "0" if construct.loops else "1"
    blocks = _gangs(construct.directives) if construct.loops else "1"
    scratch = [argument.value[1:] for argument in arguments if argument.value.endswith("__w")]
    if scratch:
        threads, blocks = _allocate(construct, name, scratch, iterations, lines)
    executor = built.sharing.constant if built.sharing is not None else "PWX_BY_THREAD"
    parts = f"{{{', '.join(iterations)}}}, {threads}, {blocks}, {executor}, {built.y_at_once}"
    shape = f"&(const pwx_shape){{{parts}}}"
    lines.append(
        f"pwx_launch(&{name}, {shape}, {name}__a, {len(arguments)}, {len(construct.reductions)}, {totals}, "
        f"{queue}, {there});"
    )
    lines += [f"pwx_scratch_end({pointer}, {queue}, {there});" for pointer in scratch]
    return " ".join(lines).replace("PWX_THERE", there)


def _allocate(
    construct: _Construct, name: str, scratch: list[str], iterations: list[str], lines: list[str]
) -> tuple[str, str]:
    """Add lines that allocate the threads' own memory at these pointers.

    Returns the threads of a block and the blocks: no more threads than there is memory for.
    """
    threads = "PWX_OWN_THREADS" if construct.loops else "1"
    sizes = {pointer: f"{pointer.removesuffix('__w')}__n" for pointer in scratch}
    most = f"pwx_own_blocks({' + '.join(sizes.values())}, (double){' * '.join(iterations)})"
    blocks = f"{name}__b"
    lines.append(f"const long {blocks} = {most if construct.loops else '1'};")
    for pointer, size in sizes.items():
        bytes_ = f"{size} * {threads} * {blocks}"
        lines.append(f"{pointer} = pwx_scratch({bytes_}, {where(construct.directive)});")
    return threads, blocks


def _in_data_region(
    construct: _Construct,
    name: str,
    operands: list[str],
    variables: kernel_arguments.Clauses,
    launch: str,
) -> str:
    """The launch of a kernel between the begin and the end of the construct's data."""
    tail = f"{data_clauses.queue_of(construct.around)}, {where(construct.directive)});"
    all_rows = [
        row
        for directive in construct.directives
        for row in rows.of(
            construct.unit, directive, data_clauses.KINDS, variables.private | variables.copied
        )
    ]
    filled = " ".join(row.filled for row in all_rows)
    begins = " ".join(row.begin(tail) for row in all_rows)
    ends = " ".join(row.end(tail) for row in all_rows)
    region = f"(&{name}__region, {len(operands)}, {name}__data, {tail}"
    return (
        f"static pwx_data_region {name}__region; "
        f"const pwx_data {name}__data[] = {{{', '.join(operands)}}}; "
        f"{filled} pwx_data_begin{region} {begins} {{ {launch} }} {ends} pwx_data_end{region}"
    )


def _inner(unit: Unit, loops: list[For]) -> list[tuple[For, d.Acc]]:
    """Loops directly inside that acc also shares among threads."""
    inner_loops: list[tuple[For, d.Acc]] = []
    innermost = loops[-1] if loops else None
    while innermost is not None:
        nested = loop_nest.nested_directly(unit, innermost.statement, 2)
        if len(nested) < 2:
            break
        directive = unit.compute.loops.get(nested[1].statement.start)
        if directive is None or directive.all("seq", "reduction"):
            break
        more = loop_nest.nested_directly(unit, nested[1].statement, _collapsed(directive))
        inner_loops += [(loop, directive) for loop in more]
        innermost = more[-1]
    return inner_loops


def _collapsed(directive: d.Acc) -> int:
    collapse = directive.all("collapse")
    value = collapse[0].expression.value if collapse and collapse[0].expression else 1
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
    directive: d.Acc, reductions: list[tuple[str, Variable]], on_device: set[str], lines: list[str]
) -> str:
    """The reductions of a launch, as C text.

    The results of variables in `on_device` stay on the GPU; adds the lines that they need.
    """
    parts = []
    for operator, variable in reductions:
        kind = run_time_type(variable, directive.place, operator)
        device = "0"
        if variable.name in on_device:
            lines.append(f"static pwx_known {variable.name}__k;")
            device = f"pwx_device(&{variable.name}__k, &{variable.name}, {quoted(variable.name)}, PWX_THERE)"
        parts.append(f"{{{OPERATORS[operator]}, {kind}, &{variable.name}, {device}}}")
    return f"(const pwx_reduction[]){{{', '.join(parts)}}}" if parts else "0"


def _gangs(directives: list[d.Acc]) -> str:
    counts = [clause.expression for directive in directives for clause in directive.all("num_gangs")]
    return f"({counts[0].text})" if counts and counts[0] else "0"


def _declare(unit: Unit, built: kernel.Kernel) -> None:
    text = "\n".join(f'  {quoted(line)[:-1]}\\n"' for line in built.text.splitlines())
    unit.compute.kernel_names.append(built.name)
    apart = "0"
    if built.overlaps:
        passed = [argument for argument in built.arguments if argument.parameter]
        numbers = [str(number) for number, argument in enumerate(passed) if argument.apart]
        apart = f"(const int[]){{{', '.join([*numbers, '-1'])}}}"
    unit.output.top.append(
        f"static pwx_kernel {built.name} = {{{quoted(built.name)},\n{text}, 0, 0, {apart}, 0}};"
    )


def _explain(unit: Unit, directive: d.Acc, built: kernel.Kernel, names: list[str]) -> None:
    axes = [
        f"{letter} = {' x '.join(dimension.index for dimension in group)}"
        for letter, group in zip("xyz", built.groups, strict=True)
        if group
    ]
    reduced = f"; reductions of {', '.join(v.name for _, v in built.reductions)} in the same launch"
    shared = (
        f"; a {built.sharing.name} an iteration, its threads share the inner loop" if built.sharing else ""
    )
    unit.explain(
        directive,
        f"kernel {built.name} on a GPU: {', '.join(axes) or 'one thread'}; data: {', '.join(names) or 'none'}"
        + (reduced if built.reductions else "")
        + shared
        + _overlap(built),
    )


def _overlap(built: kernel.Kernel) -> str:
    """What the kernel does beside a reflect, for --explain."""
    reaches = [
        f"{dimension.reach} of {dimension.index}" for dimension in built.dimensions if dimension.reach > 0
    ]
    return (
        f"; overlaps a reflect before it, except for the first and last {' and '.join(reaches)}"
        if reaches
        else ""
    )
