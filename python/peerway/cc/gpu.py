"""Compute constructs of acc on a GPU: the launch of a loop's kernel, beside the loop for CPUs."""

from __future__ import annotations

from peerway.cc import (
    beside,
    data,
    device_check,
    kernel,
    kernel_arguments,
    memory,
    nest,
    on_host,
    phrases,
    rows,
)
from peerway.cc import directives as d
from peerway.cc import own as own_variables
from peerway.cc.clauses import default
from peerway.cc.device_code import Unsupported
from peerway.cc.diagnostics import Refused
from peerway.cc.generated import where
from peerway.cc.nest import For
from peerway.cc.source import Range, Variable, used_in
from peerway.cc.tokens import quoted
from peerway.cc.types import OPERATORS, run_time_type
from peerway.cc.unit import Stack, Unit


def later(
    unit: Unit, stack: Stack, made: d.Acc, loops: list[For], region: d.Acc | None, private: list[str]
) -> None:
    """Generate the kernel of a construct once all directives are known; without loops one for one thread."""
    unit.on_gpu = True
    regions = [other for inside, other in unit.acc_regions if _around(stack, inside) and other is not made]

    def generate() -> None:
        try:
            text = _launch(unit, stack, made, loops, region, private, regions)
        except Unsupported as why:
            unit.explain(made, f"acc {made.construct}: no kernel, because {why}")
            unit.found.warn(why.place or made.place, f"no kernel for GPUs: {why}; it runs only on CPUs")
            around = [one for one in (region, *regions) if one is not None]
            if on_host.fall_back(unit, stack, made, around, _named_scalars([made, *around])):
                return
            message = f"{why}, and no kernel is generated for that yet; run it on CPUs (PEERWAY_ACC=host)"
            text = f"if (pwx_gpu()) pwx_error({where(made)}, {quoted('%s')}, {quoted(message)}); else"
        stack.before.append(text)

    unit.kernels.append(generate)


def later_region(unit: Unit, stack: Stack, made: d.Acc) -> None:
    """`acc parallel`, `kernels` and `serial` with a statement: loops in it that threads share have kernels of
    their own; without any one thread does it, with the loops that are done in order.
    """
    unit.on_gpu = True

    def generate() -> None:
        inside = Range(stack.statement.start, stack.statement.end)
        loops = [
            directive
            for region, directive in unit.acc_regions
            if beside.within(region, inside, directive, made) and region.start in unit.shared_loops
        ]
        if not loops:
            later(unit, stack, made, [], None, [])
            unit.kernels.pop()()
            return
        try:
            statements = beside.beside(unit, stack, inside, made)
            if len(loops) + len(statements) > 1:
                _keep_data(unit, stack, made)
            for statement in statements:
                one = Stack(statement, stack.function)
                later(unit, one, made, [], None, [])
                unit.kernels.pop()()
                unit.edits.before(statement.start, f"{' '.join(one.before)} ")
        except Unsupported as why:
            unit.found.warn(why.place or made.place, f"no kernel for GPUs: {why}; it runs only on CPUs")
            message = f"{why}, and no kernel is generated for that; run it on CPUs (PEERWAY_ACC=host)"
            stack.before.append(
                f"if (pwx_gpu()) pwx_error({where(made)}, {quoted('%s')}, {quoted(message)});"
            )

    unit.kernels.append(generate)


def _keep_data(unit: Unit, stack: Stack, made: d.Acc) -> None:
    """What a region's data clauses name stays on the GPU from its first kernel to its last."""
    parts = data.clauses_of(unit, made)
    if not parts:
        return
    name, test = unit.new_name("region"), data.asked(unit, made)
    call = f"(&{name}, {len(parts)}, {name}__list, {data.queue_of(made)}, {where(made)});"
    stack.before.append(
        f"{{ static pwx_data_region {name}; const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"const int {name}__on = pwx_gpu(){f' && {test}' if test else ''}; "
        f"if ({name}__on) {{ {' '.join(data.waits(made))} pwx_data_begin{call} }}"
    )
    unit.edits.behind(stack.statement.end, f" if ({name}__on) pwx_data_end{call} }}")


def _around(stack: Stack, inside: Range) -> bool:
    return inside.start <= stack.statement.start and stack.statement.end <= inside.end


def _launch(
    unit: Unit,
    stack: Stack,
    made: d.Acc,
    loops: list[For],
    region: d.Acc | None,
    private: list[str],
    regions: list[d.Acc],
) -> str:
    inner = _inner(unit, loops)
    loops = loops + [loop for loop, _ in inner]
    directives = [one for one in (made, region, *(directive for _, directive in inner)) if one is not None]
    own = {name.text for one in directives for name in one.named_variables("private")} | set(private)
    reductions = _reductions(unit, directives)
    pointed = _pointed(unit, directives)
    copied = _copied(unit, directives, pointed) - own
    settled = own | copied | {variable.name for _, variable in reductions}
    changed = [] if loops else _copied_back(unit, stack, made, settled)
    named = _named_scalars([*directives, *regions]) | set(changed)
    named |= own_variables.declared_on_device(unit, stack.statement)
    pointers = kernel_arguments.device_pointers(unit, stack.function, [*directives, *regions])
    present = default([*directives, *regions[::-1]]) == "present"
    clauses, data_names = _data(unit, stack, directives, own | copied, pointers, present, regions)
    for name in changed:
        section = phrases.Section(phrases.Name(name, made.place))
        clauses.append(memory.described(unit, made, section, "COPY"))
        data_names.append(name)
    for name in sorted(set(pointed) & copied):
        clauses.append(memory.described(unit, made, pointed[name], "COPYIN"))
    name = unit.new_name(f"{stack.function.name}_{made.place.line}")
    on_device = named - own - copied - {v.name for _, v in reductions}
    sections = memory.sections_of(directives, data.KINDS)
    said = kernel_arguments.Clauses(
        own, copied, on_device, pointers, sections, pointed,
        lambda variable: data.around(unit, variable, regions),
        rows.named(
            unit, [*directives, *regions, *kernel_arguments.declared_in(unit, stack.function)], data.KINDS
        ),
    )  # fmt: skip
    built = kernel.build(unit, stack, made, name, loops, reductions, said)
    device_check.check(unit, built.text)
    _declare(unit, built)
    _explain(unit, made, built, data_names)
    there = where(made)
    passed = [argument for argument in built.arguments if argument.parameter]
    lines = [line for argument in passed for line in argument.made]
    values = ", ".join(f"(void *){argument.value}" for argument in passed) or "0"
    lines.append(f"void *{name}__a[] = {{{values}}};")
    sizes = ", ".join(f"sizeof(*{argument.value})" for argument in passed) or "0"
    lines.append(f"static const unsigned {name}__s[] = {{{sizes}}}; {name}.sizes = {name}__s;")
    totals = _totals(unit, made, reductions, named, lines)
    extents = [f"{letter}__all" if group else "1" for letter, group in zip("xyz", built.groups, strict=True)]
    threads = _threads(directives) if loops else "1"
    blocks = _gangs(directives) if loops else "1"
    scratch = [argument.value[1:] for argument in passed if argument.value.endswith("__w")]
    if scratch:  # as many threads as have memory of their own
        threads = "PWX_OWN_THREADS" if loops else "1"
        bytes_ = " + ".join(f"{one.removesuffix('__w')}__n" for one in scratch)
        count = f"pwx_own_blocks({bytes_}, (double){' * '.join(extents)})" if loops else "1"
        blocks = f"{name}__b"
        lines.append(f"const long {blocks} = {count};")
        for one in scratch:
            bytes_ = f"{one.removesuffix('__w')}__n * {threads} * {blocks}"
            lines.append(f"{one} = pwx_scratch({bytes_}, {there});")
    shape = f"&(const pwx_shape){{{{{', '.join(extents)}}}, {threads}, {blocks}, {int(built.by_block)}}}"
    queue = data.queue_of(region or made)
    lines.append(
        f"pwx_launch(&{name}, {shape}, {name}__a, {len(passed)}, {len(reductions)}, {totals}, "
        f"{queue}, {there});"
    )
    lines += [f"pwx_scratch_end({one}, {queue}, {there});" for one in scratch]
    body = " ".join(lines).replace("PWX_THERE", there)
    before = " ".join(data.waits(region or made))
    if clauses:
        parts = f"{len(clauses)}, {name}__data"
        tail = f"{parts}, {queue}, {there});"
        of_rows = [one for each in directives for one in rows.of(unit, each, data.KINDS, own | copied)]
        filled = " ".join(one.filled for one in of_rows)
        begins = " ".join(one.begin(f"{queue}, {there});") for one in of_rows)
        ends = " ".join(one.end(f"{queue}, {there});") for one in of_rows)
        body = (
            f"static pwx_data_region {name}__region; "
            f"const pwx_data {name}__data[] = {{{', '.join(clauses)}}}; "
            f"{filled} pwx_data_begin(&{name}__region, {tail} {begins} {{ {body} }} "
            f"{ends} pwx_data_end(&{name}__region, {tail}"
        )
    test = data.asked(unit, *((made, region) if region else (made,)))
    asked = f" && {test}" if test else ""
    return f"if (pwx_gpu(){asked}) {{ {before} {body} }} else"


def _pointed(unit: Unit, directives: list[d.Acc]) -> dict[str, phrases.Section]:
    """What private and firstprivate name that a pointer leads to."""
    found: dict[str, phrases.Section] = {}
    for made in directives:
        for section in made.named("private", "firstprivate"):
            variable = unit.syntax.variable(section.name.text, made.file, made.start)
            if variable is not None and own_variables.whole_elements(section, variable):
                found.setdefault(section.name.text, section)
    return found


def _copied_back(unit: Unit, stack: Stack, made: d.Acc, settled: set[str]) -> list[str]:
    """The scalars of a kernels construct of one thread that it changes: OpenACC copies them back."""
    if not made.construct.startswith("kernels"):
        return []
    return sorted(own_variables.changed(unit, stack) - settled)


def _copied(unit: Unit, directives: list[d.Acc], pointed: dict[str, phrases.Section]) -> set[str]:
    """The variables that are firstprivate; of what pointers lead to only where a section says how much."""
    found = set()
    for made in directives:
        for name in made.named_variables("firstprivate"):
            variable = unit.syntax.variable(name.text, made.file, made.start)
            if variable is not None and (not variable.pointer or name.text in pointed):
                found.add(name.text)
    return found


def _inner(unit: Unit, loops: list[For]) -> list[tuple[For, d.Acc]]:
    """Loops directly within, that acc also shares among threads."""
    found: list[tuple[For, d.Acc]] = []
    at = loops[-1] if loops else None
    while at is not None:
        nested = nest.direct(unit, at.statement, 2)
        if len(nested) < 2:
            break
        directive = unit.acc_loops.get(nested[1].statement.start)
        if directive is None or directive.all("seq", "reduction"):
            break
        more = nest.direct(unit, nested[1].statement, _collapsed(directive))
        found += [(loop, directive) for loop in more]
        at = more[-1]
    return found


def _collapsed(made: d.Acc) -> int:
    clauses = made.all("collapse")
    value = clauses[0].expression.value if clauses and clauses[0].expression else 1
    return value or 1


def _reductions(unit: Unit, directives: list[d.Acc]) -> list[tuple[str, Variable]]:
    found: dict[str, tuple[str, Variable]] = {}
    for made in directives:
        for clause in made.all("reduction"):
            for name in clause.variables:
                variable = unit.syntax.variable(name.text, made.file, made.start)
                if variable is None:
                    raise Refused(name.place, f"'{name.text}' is not declared")
                if not variable.scalar or variable.pointee is not None:
                    raise Unsupported(f"the reduction of {name.text} is not of a scalar")
                if run_time_type(variable, name.place, clause.operator) == "PWX_LONG_DOUBLE":
                    raise Unsupported(f"the reduction of {name.text} is of a long double", name.place)
                found[name.text] = (clause.operator, variable)
    return list(found.values())


def _named_scalars(directives: list[d.Acc]) -> set[str]:
    """Scalars that a data clause around puts on the GPU."""
    return {name.text for one in directives for kind in data.KINDS for name in one.named_variables(kind)}


def _data(
    unit: Unit,
    stack: Stack,
    directives: list[d.Acc],
    own: set[str],
    pointers: list[Variable],
    present: bool,
    regions: list[d.Acc],
) -> tuple[list[str], list[str]]:
    """The data clauses of a construct, and arrays that it uses without one, as present or copied: the section
    that a data construct around has, or all.
    """
    clauses: list[str] = []
    named: set[str] = set(own)
    for made in directives:
        for clause in made.clauses:
            for section in clause.sections if clause.name in data.KINDS else ():
                if section.name.text in named:
                    continue
                named.add(section.name.text)
                clauses.append(memory.described(unit, made, section, data.kind_of(clause)))
    names = sorted(named - own)
    whole = Range(stack.statement.start, stack.statement.end)
    for use in used_in(stack.function.uses, whole):
        variable = use.variable
        inside = stack.statement.start <= variable.declarator.start < stack.statement.end
        if variable.name in named or (inside and not variable.file_scope) or use.in_sizeof:
            continue
        if not variable.sizes and variable.pointee is None:
            continue
        if any(one is variable for one in pointers) or kernel_arguments.own_in_loop(unit, use, whole):
            continue
        named.add(variable.name)
        names.append(variable.name)
        section = phrases.Section(phrases.Name(variable.name, directives[0].place))
        kind = "PRESENT" if present else "COPYIN" if variable.constant else "COPY"
        part = data.around(unit, variable, regions)
        clauses.append(
            memory.again(variable.name, part, kind)
            if part
            else memory.described(unit, directives[0], section, kind)
        )
    return clauses, names


def _totals(
    unit: Unit, made: d.Acc, reductions: list[tuple[str, Variable]], named: set[str], lines: list[str]
) -> str:
    """The reductions of a launch, as C text."""
    parts = []
    for operator, variable in reductions:
        kind = run_time_type(variable, made.place, operator)
        device = "0"
        if variable.name in named:
            lines.append(f"static pwx_known {variable.name}__k;")
            device = f"pwx_device(&{variable.name}__k, &{variable.name}, {quoted(variable.name)}, PWX_THERE)"
        parts.append(f"{{{OPERATORS[operator]}, {kind}, &{variable.name}, {device}}}")
    return f"(const pwx_reduction[]){{{', '.join(parts)}}}" if parts else "0"


def _threads(directives: list[d.Acc]) -> str:
    for made in directives:
        for clause in made.all("vector_length"):
            if clause.expression is not None:
                return f"({clause.expression.text})"
        for clause in made.all("vector"):
            if clause.arguments:
                return f"({clause.arguments[0].text})"
    return "0"


def _gangs(directives: list[d.Acc]) -> str:
    said = [clause.expression for made in directives for clause in made.all("num_gangs")]
    return f"({said[0].text})" if said and said[0] else "0"


def _declare(unit: Unit, built: kernel.Kernel) -> None:
    text = "\n".join(f'  {quoted(line)[:-1]}\\n"' for line in built.text.splitlines())
    unit.kernel_names.append(built.name)
    unit.top.append(f"static pwx_kernel {built.name} = {{{quoted(built.name)},\n{text}, 0, 0, 0}};")


def _explain(unit: Unit, made: d.Acc, built: kernel.Kernel, names: list[str]) -> None:
    axes = [
        f"{letter} = {' x '.join(one.index for one in group)}"
        for letter, group in zip("xyz", built.groups, strict=True)
        if group
    ]
    joined = f"; reductions of {', '.join(v.name for _, v in built.reductions)} in the same launch"
    unit.explain(
        made,
        f"kernel {built.name} on a GPU: {', '.join(axes) or 'one thread'}; data: {', '.join(names) or 'none'}"
        + (joined if built.reductions else "")
        + ("; a block an iteration, its threads share the inner loop" if built.by_block else ""),
    )
