"""The compute constructs of OpenACC: loops become OpenMP for CPU cores, and beside it a kernel for a GPU."""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis import restrictions as shared
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.unit import Stack, Unit
from peerway_xacc.codegen import clause_rules as clauses
from peerway_xacc.codegen import foreign_acc, gpu, own_variables
from peerway_xacc.frontend import clauses as phrases
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Statement, Variable, used_in
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import data

STATEMENT = ("parallel", "kernels", "serial", "parallel loop", "kernels loop", "serial loop", "loop", "data",
             "host_data", "atomic")  # fmt: skip
_NO_DATA = ("use_device", "cache")
_SHARED = "because a loop around it is shared among threads"


def compute(unit: Unit, stack: Stack, directive: d.Acc) -> None:
    """A directive with a statement."""
    clauses.check(unit, directive)
    if unit.acc_left:
        foreign_acc.compute(unit, stack, directive)
        return
    if directive.construct == "atomic":
        kind = next((clause.name for clause in directive.clauses), "update")
        stack.last.append(f"#pragma omp atomic {kind}")
        unit.acc_atomics.append(Range(stack.statement.start, stack.statement.end))
        return
    region = Range(stack.statement.start, stack.statement.end)
    if directive.construct in ("data", "host_data"):
        unit.acc_regions.append((region, directive))
        data.region(unit, stack, directive)
        return
    outer = [other for inside, other in unit.acc_regions if _within(region, inside)]
    for inside, other in unit.acc_regions:
        both = [construct.construct.split()[0] in clauses.COMPUTE for construct in (other, directive)]
        loops = [construct.construct.endswith("loop") for construct in (other, directive)]
        if inside == region and (all(both) or all(loops)):
            note = (other.place, "the first is here")
            raise Refused(directive.place, "a second directive of this kind for the same statement", note)
    data.zeros(unit, stack, directive)
    unit.acc_regions.append((region, directive))
    if directive.construct != "loop":
        unit.kernels.append(lambda: clauses.check_default(unit, stack, directive))
    if directive.construct.endswith("loop"):
        _loop(unit, stack, directive, outer)
    else:
        test = data.condition(directive)
        if test:  # once, before the statement may change what it asks
            name = unit.conditions[directive.start] = unit.new_name("asked")
            stack.before.append(f"{{ const int {name} = {test};")
            unit.edits.behind(stack.statement.end, " }")
        own_variables.check(unit, directive, set())
        own_variables.on_thread(unit, stack, directive, implied=directive.construct != "kernels")
        unit.explain(directive, f"acc {directive.construct}: one thread, but for the loops in it")
        gpu.later_region(unit, stack, directive)


def device_statements(unit: Unit) -> list[Statement]:
    """The statements that a GPU executes, in whole."""
    result = []
    for directive in unit.directives_in():
        function = unit.function_of(directive)
        if isinstance(directive, d.Acc) and function:
            statement = unit.syntax.statement_after(directive.file, directive.end, function)
            if statement and directive.construct.split()[0] in clauses.COMPUTE:
                result.append(statement)
    return result


def _within(inner: Range, outer: Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def _loop(unit: Unit, stack: Stack, directive: d.Acc, outer: list[d.Acc]) -> None:
    if stack.statement.kind != "for":
        place = unit.text.place(stack.statement.start)
        raise Refused(directive.place, "expected a 'for' loop behind this directive", (place, "this follows"))
    count = _collapse(directive)
    loops = loop_nest.direct(unit, stack.statement, count)
    if len(loops) < count:
        clause = directive.all("collapse")[0]
        raise Refused(
            clause.place, f"collapse({count}) needs {count} loops nested directly, found {len(loops)}"
        )
    own_variables.check(unit, directive, {loop.header.index for loop in loops})
    why = _sequential(directive, outer)
    if why in ("", _SHARED):
        for loop in loops:
            shared.check_end(unit, loop, "leaves a loop whose iterations run in parallel")
    if why:
        unit.explain(directive, f"acc {directive.construct}: one thread, {why}")
        own_variables.on_thread(
            unit, stack, directive, implied=directive.construct.startswith(("parallel", "serial"))
        )
        if directive.construct != "loop":
            gpu.later(unit, stack, directive, [], None, [])
            return
        for section in directive.named("private"):
            unit.own_in_loops.append((stack.statement, directive, section))
        if why == _SHARED:  # a kernel may have its iterations done side by side, too
            unit.acc_loops[stack.statement.start] = directive
        return
    region = next((other for other in reversed(outer) if other.construct in clauses.COMPUTE), None)
    _parallel(unit, stack, directive, loops, region)


def _collapse(directive: d.Acc) -> int:
    text = directive.all("collapse")
    if not text:
        return 1
    expression = text[0].expression
    assert expression is not None
    if expression.value is None or expression.value < 1:
        raise Refused(expression.place, f"collapse needs a number of loops, found '{expression.text}'")
    return expression.value


def _sequential(directive: d.Acc, outer: list[d.Acc]) -> str:
    """Why a loop is not shared among threads, or nothing."""
    if directive.all("seq") or directive.construct.startswith("serial"):
        return "as the directive says"
    kernels = directive.construct.startswith("kernels") or any(
        other.construct.startswith("kernels") for other in outer
    )
    if (kernels or directive.all("auto")) and not directive.all("independent"):
        return "because nothing says that its iterations are independent"
    if any(other.construct == "serial" for other in outer):
        return "as the directive around it says"
    if any(other.construct.endswith("loop") and not other.all("seq") for other in outer):
        return _SHARED
    return ""


def _parallel(unit: Unit, stack: Stack, combined: d.Acc, loops: list[For], region: d.Acc | None) -> None:
    output = _said(combined, region)
    cyclic = any(
        directive
        for directive in stack.directives
        if isinstance(directive, d.Loop) and unit.is_cyclic(directive)
    )
    shared_loops = 1 if len(loops) < 3 or cyclic else 2
    while shared_loops > 1 and _depends(
        unit, loops[shared_loops - 1], [loop.header.index for loop in loops[: shared_loops - 1]]
    ):
        shared_loops -= 1
    private, copied = _own_scalars(unit, stack, output, loops[:shared_loops])
    unit.shared_loops.add(stack.statement.start)
    gpu.later(unit, stack, combined, loops, region, private)
    reductions = _reductions(unit, combined, output)
    sharing = [f"collapse({shared_loops})"] if shared_loops > 1 else []
    pointed = _pointed(unit, combined, region)
    kept = [name for name in private if name not in pointed]
    owned = [f"private({', '.join(kept)})"] if kept else []
    copies = [name for name in copied if name not in pointed]
    owned += [f"firstprivate({', '.join(copies)})"] if copies else []
    if pointed:  # each thread has memory of its own for what these pointers lead to, for all its iterations
        stack.last.append(" ".join(["#pragma omp parallel", *owned]))
        stack.last.append("{")
        unit.edits.behind(stack.statement.end, " }")
        for name, (of, section) in pointed.items():
            begin, end = own_variables.opened(unit, of, section, name in copied)
            stack.last.append(begin)
            unit.edits.behind(stack.statement.end, end)
        text = ["#pragma omp for", *sharing, *reductions]
    else:
        text = ["#pragma omp parallel for", *sharing, *reductions, *owned]
    stack.last.append(" ".join(text))
    vector = len(loops) == 2 and not cyclic and not copies and set(kept) <= {loops[1].header.index}
    if vector and not _has_loop(unit, loops[1]):
        _simd(unit, loops[1], reductions)
    unit.explain(
        combined, f"acc {combined.construct}: {_shape(loops, shared_loops, vector)}; {' '.join(text)[8:]}"
    )


def _reductions(unit: Unit, directive: d.Acc, text: list[phrases.Clause]) -> list[str]:
    """OpenMP's clauses. Its sums of _Bool in gcc are of bytes, and C's are true or false."""
    result: dict[str, str] = {}
    for clause in text:
        for section in clause.sections if clause.name == "reduction" else ():
            name = section.name.text
            variable = unit.syntax.variable(name, directive.file, directive.start)
            operator = clause.operator
            if variable is not None and variable.element == "_Bool":
                operator = {"+": "||", "*": "&&"}.get(operator, operator)
            parts = "".join(f"[{_part(part)}]" for part in section.parts)
            result.setdefault(name, f"reduction({operator}: {name}{parts})")
    return list(result.values())


def _part(part: phrases.Part) -> str:
    """A part of a section as OpenMP has it."""
    length = "1" if part.index else part.length.text if part.length else ""
    return f"{part.first.text if part.first else '0'}:{length}"


def _said(directive: d.Acc, region: d.Acc | None) -> list[phrases.Clause]:
    """The clauses of a loop and those of its region about variables that its own are not about."""
    text = list(directive.clauses)
    named = {name.text for name in directive.named_variables("private", "reduction")}
    for clause in region.all("reduction", "private", "firstprivate") if region is not None else ():
        sections = tuple(section for section in clause.sections if section.name.text not in named)
        if sections:
            text.append(replace(clause, sections=sections))
    return text


def _pointed(unit: Unit, *directives: d.Acc | None) -> dict[str, tuple[d.Acc, phrases.Section]]:
    """What private and firstprivate name that a pointer leads to, and in which directive."""
    result: dict[str, tuple[d.Acc, phrases.Section]] = {}
    for directive in directives:
        for section in directive.named("private", "firstprivate") if directive is not None else ():
            variable = (
                unit.syntax.variable(section.name.text, directive.file, directive.start)
                if directive
                else None
            )
            if (
                directive is not None
                and variable is not None
                and own_variables.whole_elements(section, variable)
            ):
                result.setdefault(section.name.text, (directive, section))
    return result


def _shape(loops: list[For], shared: int, vector: bool) -> str:
    """How a nest is done, as --explain shows it."""
    indices = [loop.header.index for loop in loops]
    parts = [f"threads share {' and '.join(indices[:shared])}"]
    if vector:
        parts.append(f"vectors over {indices[1]}")
    elif indices[shared:]:
        parts.append(f"each runs {', '.join(indices[shared:])} in order")
    return ", ".join(parts)


def _depends(unit: Unit, loop: For, indices: list[str]) -> bool:
    """Does a loop's header name an index of the loops around it?"""
    text = unit.text.text[loop.header.whole.start : loop.header.whole.end]
    return any(index in unit.words(text) for index in indices)


def _has_loop(unit: Unit, loop: For) -> bool:
    return len(unit.syntax.loops_in(unit.file, loop.statement)) > 1


def _simd(unit: Unit, loop: For, reductions: list[str]) -> None:
    """Let the innermost loop be done in vectors; the directive has a line of its own."""
    start = loop.statement.start
    line_start = unit.text.line_start(unit.text.place(start).line)
    clauses = "".join(f" {reduction}" for reduction in reductions)
    before = unit.text.text[line_start:start]
    line = f"#line {unit.text.place(start).line} {quoted(unit.file)}\n"
    if before.strip():  # something else begins on this line
        unit.edits.before(start, f"\n#pragma omp simd{clauses}\n{line}{' ' * len(before)}")
    else:
        unit.edits.before(line_start, f"{before}#pragma omp simd{clauses}\n{line}")


def _own_scalars(
    unit: Unit, stack: Stack, result: list[phrases.Clause], loops: list[For]
) -> tuple[list[str], list[str]]:
    """Which variables each thread has of its own: those of the clauses, and scalars that the loops write.

    OpenACC makes a scalar that no clause names private to a gang, with the value from before; one that a data
    clause names stays common to all.
    """
    statement = stack.statement
    private = {name.text: None for clause in result if clause.name == "private" for name in clause.variables}
    copied = {
        name.text: None for clause in result if clause.name == "firstprivate" for name in clause.variables
    }
    settled = {name.text for clause in result for name in clause.variables if clause.name == "reduction"}
    for region, directive in unit.acc_regions:
        if _within(Range(statement.start, statement.end), region):
            settled |= {
                name.text
                for clause in directive.clauses
                if clause.name not in ("private", "firstprivate", "reduction", *_NO_DATA)
                for name in clause.variables
            }
    settled |= own_variables.declared_on_device(unit, statement)
    indices = {loop.header.index for loop in loops}
    settled |= indices
    headers = {loop.header.index for loop in _all_loops(unit, stack)}
    region = Range(statement.start, statement.end)
    for use in used_in(stack.function.uses, region):
        variable = use.variable
        if not _outside(variable, region) or not use.written or not variable.scalar or use.subscripts:
            continue
        if any(atomic.start <= use.range.start < atomic.end for atomic in unit.acc_atomics):
            continue
        if variable.name in settled or variable.name in private or variable.name in copied:
            continue
        (private if variable.name in headers else copied)[variable.name] = None
    return list(private), [name for name in copied if name not in private and name not in indices]


def _outside(variable: Variable, region: Range) -> bool:
    return variable.file_scope or not region.start <= variable.declarator.start < region.end


def _all_loops(unit: Unit, stack: Stack) -> list[For]:
    result = []
    for statement in unit.syntax.loops_in(unit.file, stack.statement):
        try:
            result.append(loop_nest.read(unit, statement))
        except Refused:
            continue
    return result
