"""Lowers parallel loops of OpenACC for CPU cores: OpenMP directives, and the private variables of threads."""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import gpu, own_variables
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Clause, Part, Section
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Variable, used_in
from peerway_xacc.frontend.tokens import names_in, quoted
from peerway_xacc.lowering.unit import Unit

_NO_DATA = ("use_device", "cache")


def within(inner: Range, outer: Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


def parallel(
    unit: Unit, annotated: AnnotatedStatement, combined: d.Acc, loops: list[For], region: d.Acc | None
) -> None:
    clauses = _with_those_of_region(combined, region)
    cyclic = any(
        directive
        for directive in annotated.directives
        if isinstance(directive, d.Loop) and unit.is_cyclic(directive)
    )
    shared_loops = 1 if len(loops) < 3 or cyclic else 2
    while shared_loops > 1 and _depends(
        unit, loops[shared_loops - 1], [loop.header.index for loop in loops[: shared_loops - 1]]
    ):
        shared_loops -= 1
    private, copied = _own_scalars(unit, annotated, clauses, loops[:shared_loops])
    unit.compute.with_kernels.add(annotated.statement.start)
    gpu.generate_kernel_later(unit, annotated, combined, loops, region, private)
    reductions = _reductions(unit, combined, clauses)
    sharing = [f"collapse({shared_loops})"] if shared_loops > 1 else []
    pointed = _pointed(unit, combined, region)
    kept = [name for name in private if name not in pointed]
    owned = [f"private({', '.join(kept)})"] if kept else []
    copies = [name for name in copied if name not in pointed]
    owned += [f"firstprivate({', '.join(copies)})"] if copies else []
    if pointed:  # each thread has its own memory behind these pointers, for all its iterations
        annotated.last.append(" ".join(["#pragma omp parallel", *owned]))
        annotated.last.append("{")
        unit.output.edits.behind(annotated.statement.end, " }")
        for name, (directive, section) in pointed.items():
            begin, end = own_variables.opened(unit, directive, section, name in copied)
            annotated.last.append(begin)
            unit.output.edits.behind(annotated.statement.end, end)
        pragma = " ".join(["#pragma omp for", *sharing, *reductions])
    else:
        pragma = " ".join(["#pragma omp parallel for", *sharing, *reductions, *owned])
    annotated.last.append(pragma)
    vector = len(loops) == 2 and not cyclic and not copies and set(kept) <= {loops[1].header.index}
    if vector and not _has_loop(unit, loops[1]):
        _simd(unit, loops[1], reductions)
    shape = _shape(loops, shared_loops, vector)
    unit.explain(combined, f"acc {combined.construct}: {shape}; {pragma.removeprefix('#pragma ')}")


def _reductions(unit: Unit, directive: d.Acc, clauses: list[Clause]) -> list[str]:
    """The reduction clauses for OpenMP.

    gcc's OpenMP adds _Bool as bytes; in C their sum is true or false, so they get || and &&.
    """
    reductions: dict[str, str] = {}
    for clause in clauses:
        for section in clause.sections if clause.name == "reduction" else ():
            name = section.name.text
            variable = unit.syntax.variable(name, directive.file, directive.start)
            operator = clause.operator
            if variable is not None and variable.element == "_Bool":
                operator = {"+": "||", "*": "&&"}.get(operator, operator)
            parts = "".join(f"[{_part(part)}]" for part in section.parts)
            reductions.setdefault(name, f"reduction({operator}: {name}{parts})")
    return list(reductions.values())


def _part(part: Part) -> str:
    """A part of a section in OpenMP's syntax."""
    length = "1" if part.index else part.length.text if part.length else ""
    return f"{part.first.text if part.first else '0'}:{length}"


def _with_those_of_region(directive: d.Acc, region: d.Acc | None) -> list[Clause]:
    """The clauses of a loop, and those of its region for other variables than the loop's own clauses name."""
    clauses = list(directive.clauses)
    named = {name.text for name in directive.named_variables("private", "reduction")}
    for clause in region.all("reduction", "private", "firstprivate") if region is not None else ():
        sections = tuple(section for section in clause.sections if section.name.text not in named)
        if sections:
            clauses.append(replace(clause, sections=sections))
    return clauses


def _pointed(unit: Unit, *directives: d.Acc | None) -> dict[str, tuple[d.Acc, Section]]:
    """The sections behind pointers in private and firstprivate, with their directives."""
    sections: dict[str, tuple[d.Acc, Section]] = {}
    for directive in directives:
        if directive is None:
            continue
        for section in directive.named("private", "firstprivate"):
            variable = unit.syntax.variable(section.name.text, directive.file, directive.start)
            if variable is not None and own_variables.whole_elements(section, variable):
                sections.setdefault(section.name.text, (directive, section))
    return sections


def _shape(loops: list[For], shared: int, vector: bool) -> str:
    """Describe for --explain how a nest is executed."""
    indices = [loop.header.index for loop in loops]
    parts = [f"threads share {' and '.join(indices[:shared])}"]
    if vector:
        parts.append(f"vectors over {indices[1]}")
    elif indices[shared:]:
        parts.append(f"each runs {', '.join(indices[shared:])} in order")
    return ", ".join(parts)


def _depends(unit: Unit, loop: For, indices: list[str]) -> bool:
    """Does a loop's header name the index of a loop around it?"""
    text = unit.text.text[loop.header.whole.start : loop.header.whole.end]
    return any(index in names_in(text) for index in indices)


def _has_loop(unit: Unit, loop: For) -> bool:
    return len(unit.syntax.loops_in(unit.file, loop.statement)) > 1


def _simd(unit: Unit, loop: For, reductions: list[str]) -> None:
    """Let the innermost loop be vectorised; the directive has a line of its own."""
    start = loop.statement.start
    line_start = unit.text.line_start(unit.text.line_of(start))
    clauses = "".join(f" {reduction}" for reduction in reductions)
    before = unit.text.text[line_start:start]
    line = f"#line {unit.text.place(start).line} {quoted(unit.file)}\n"
    if before.strip():  # other code is before it on its line
        unit.output.edits.before(start, f"\n#pragma omp simd{clauses}\n{line}{' ' * len(before)}")
    else:
        unit.output.edits.before(line_start, f"{before}#pragma omp simd{clauses}\n{line}")


def _own_scalars(
    unit: Unit, annotated: AnnotatedStatement, clauses: list[Clause], loops: list[For]
) -> tuple[list[str], list[str]]:
    """The private and the firstprivate variables: from clauses, and scalars that the loops write.

    By OpenACC, a scalar without a clause is private to a gang and begins with its outer value; a scalar in a
    data clause is shared.
    """
    statement = annotated.statement
    private = {name.text: None for clause in clauses if clause.name == "private" for name in clause.variables}
    copied = {
        name.text: None for clause in clauses if clause.name == "firstprivate" for name in clause.variables
    }
    settled = {name.text for clause in clauses for name in clause.variables if clause.name == "reduction"}
    for region, directive in unit.compute.regions:
        if within(Range(statement.start, statement.end), region):
            settled |= {
                name.text
                for clause in directive.clauses
                if clause.name not in ("private", "firstprivate", "reduction", *_NO_DATA)
                for name in clause.variables
            }
    settled |= own_variables.declared_on_device(unit, statement)
    indices = {loop.header.index for loop in loops}
    settled |= indices
    headers = {loop.header.index for loop in _all_loops(unit, annotated)}
    region = Range(statement.start, statement.end)
    for use in used_in(annotated.function.uses, region):
        variable = use.variable
        if not _outside(variable, region) or not use.written or not variable.scalar or use.subscripts:
            continue
        if any(atomic.start <= use.range.start < atomic.end for atomic in unit.compute.atomics):
            continue
        if variable.name in settled or variable.name in private or variable.name in copied:
            continue
        (private if variable.name in headers else copied)[variable.name] = None
    return list(private), [name for name in copied if name not in private and name not in indices]


def _outside(variable: Variable, region: Range) -> bool:
    return variable.file_scope or not region.start <= variable.declarator.start < region.end


def _all_loops(unit: Unit, annotated: AnnotatedStatement) -> list[For]:
    loops = []
    for statement in unit.syntax.loops_in(unit.file, annotated.statement):
        try:
            loops.append(loop_nest.read(unit, statement))
        except Refused:
            continue
    return loops
