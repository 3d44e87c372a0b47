"""Lowers the executable directives of a file, each by its entry in the table of directives.

First come the directives that stand alone, then those of each statement, last the kernels.
"""

from __future__ import annotations

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import clause_rules, openacc, sequences
from peerway_xacc.directive_table import lowerings_of
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Statement
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import merged
from peerway_xacc.lowering.table import HasStatement, Lowering, StandsAlone
from peerway_xacc.lowering.unit import Unit


def lower(unit: Unit) -> None:
    """Lower all executable directives. An error ends only the directive in which it occurs."""
    if not unit.foreign_acc:
        sequences.mark(unit)
    on_gpu = openacc.device_statements(unit)
    if not unit.foreign_acc:
        _merge(unit)
    lowerings = lowerings_of(unit)
    statements: dict[int, AnnotatedStatement] = {}
    for directive in unit.directives:
        with unit.diagnostics.collecting():
            lowering = lowerings.get(directive.spelling)
            _check_place(unit, on_gpu, directive, lowering)
            if isinstance(lowering, StandsAlone):
                _check_clauses(unit, directive)
                lowering.lower(unit, directive)
            elif isinstance(lowering, HasStatement) or isinstance(directive, d.Omp):
                _annotate(unit, statements, directive)
    _mark_writes(unit, statements)
    unit.with_directives.update(statements)
    for annotated in statements.values():
        for directive in annotated.directives:
            with unit.diagnostics.collecting():
                lowering = lowerings.get(directive.spelling)
                if isinstance(lowering, HasStatement):
                    _check_clauses(unit, directive)
                    lowering.lower(unit, annotated, directive)
    for generate in unit.compute.pending:
        with unit.diagnostics.collecting():
            generate()
    for annotated in statements.values():
        _emit(unit, annotated)


def _merge(unit: Unit) -> None:
    """Merge clauses that an OpenACC directive has several times."""
    for directive in unit.directives_in():
        if isinstance(directive, d.Acc):
            with unit.diagnostics.collecting():
                merged.merge(directive)


def _check_clauses(unit: Unit, directive: d.Directive) -> None:
    """Refuse clauses of OpenACC that are wrong or not supported; the grammar has checked those of XMP."""
    if isinstance(directive, d.Acc):
        clause_rules.check(unit, directive)


def _check_place(
    unit: Unit, on_gpu: list[Statement], directive: d.Directive, lowering: Lowering | None
) -> None:
    """Refuse a directive of the host that is in a statement for the GPU, or outside functions."""
    if not isinstance(lowering, StandsAlone | HasStatement) or not lowering.host:
        return
    if isinstance(lowering, StandsAlone) and unit.function_of(directive) is None:
        raise Refused(directive.place, "this directive must be in a function")
    around = [statement for statement in on_gpu if statement.start <= directive.start < statement.end]
    if around and directive.file == unit.file:
        note = (unit.text.place(around[0].start), "the statement begins here")
        advice = "move it out of the statement that the GPU executes"
        raise Refused(directive.place, f"{directive.spelling} runs on the host; {advice}", note)


def _annotate(unit: Unit, statements: dict[int, AnnotatedStatement], directive: d.Directive) -> None:
    function = unit.function_of(directive)
    if directive.file != unit.file:
        if isinstance(directive, d.Omp):
            return
        raise Refused(
            directive.place, "this directive in a header is not supported yet; put it into the source file"
        )
    if function is None:
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "this directive must be in a function")
    statement = unit.syntax.statement_after(directive.file, directive.end, function)
    block = unit.syntax.enclosing_block(directive.file, directive.start)
    if statement is None or (block and statement.start >= block.end):
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "expected a statement behind this directive")
    annotated = statements.setdefault(statement.start, AnnotatedStatement(statement, function))
    annotated.directives.append(directive)


def _mark_writes(unit: Unit, statements: dict[int, AnnotatedStatement]) -> None:
    """Insert pwx_written before statements that write distributed arrays outside constructs.

    If such a statement has directives, the call goes before the first one, so that they stay next to it.
    """
    starts = {directive.start for directive in unit.directives_in()}
    for start, arrays_ in unit.writes.statements.items():
        text = " ".join(f"pwx_written({array.address});" for array in arrays_)
        at = statements[start].directives[0].start if start in statements else start
        if at in starts:
            text += f"\n#line {unit.text.place(at).line} {quoted(unit.file)}\n"
        unit.output.edits.before(at, text if at in starts else f"{text} ")


def _emit(unit: Unit, annotated: AnnotatedStatement) -> None:
    """Put all lines before a statement in the place of its last directive; OpenMP directives come last."""
    if all(isinstance(directive, d.Omp) for directive in annotated.directives):
        return
    own = []
    for directive in annotated.directives:
        if isinstance(directive, d.Omp):
            own.append(directive.text)
            newlines = unit.text.text.count("\n", directive.start, directive.end)
            if directive is not annotated.directives[-1]:
                unit.output.edits.replace(directive.start, directive.end, "\n" * newlines)
    lines = [*annotated.before, *own, *annotated.last]
    unit.output.edits.directive(annotated.directives[-1].start, annotated.directives[-1].end, lines)
    unit.output.placed.add(annotated.directives[-1].start)
