"""Lowers OpenACC's compute constructs: loops become OpenMP for CPU cores, and also a kernel for a GPU."""

from __future__ import annotations

from peerway_xacc.analysis import loop_nest, restrictions
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import clause_rules, gpu, own_variables
from peerway_xacc.codegen.openmp import parallel, within
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Statement
from peerway_xacc.lowering import data_clauses, data_regions
from peerway_xacc.lowering.table import HasStatement, Lowering
from peerway_xacc.lowering.unit import Unit

_SHARED = "because a loop around it is shared among threads"


def atomic(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower `acc atomic`; in a kernel, atomic.py replaces its statement."""
    kind = next((clause.name for clause in directive.clauses), "update")
    annotated.last.append(f"#pragma omp atomic {kind}")
    unit.compute.atomics.append(Range(annotated.statement.start, annotated.statement.end))


def compute(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower a compute construct, or a loop in one."""
    region = Range(annotated.statement.start, annotated.statement.end)
    outer = [other for inside, other in unit.compute.regions if within(region, inside)]
    for inside, other in unit.compute.regions:
        both = [construct.construct.split()[0] in clause_rules.COMPUTE for construct in (other, directive)]
        loops = [construct.construct.endswith("loop") for construct in (other, directive)]
        if inside == region and (all(both) or all(loops)):
            note = (other.place, "the first is here")
            raise Refused(directive.place, "a second directive of this kind for the same statement", note)
    data_regions.zeros(unit, annotated, directive)
    unit.compute.regions.append((region, directive))
    if directive.construct != "loop":
        unit.compute.pending.append(lambda: clause_rules.check_default(unit, annotated, directive))
    if directive.construct.endswith("loop"):
        _loop(unit, annotated, directive, outer)
    else:
        test = data_clauses.condition(directive)
        if test:  # evaluate it once, before the statement can change its variables
            name = unit.data.conditions[directive.start] = unit.output.new_name("asked")
            annotated.before.append(f"{{ const int {name} = {test};")
            unit.output.edits.behind(annotated.statement.end, " }")
        own_variables.check(unit, directive, set())
        own_variables.on_thread(unit, annotated, directive, implied=directive.construct != "kernels")
        unit.explain(directive, f"acc {directive.construct}: one thread, but for the loops in it")
        gpu.generate_region_later(unit, annotated, directive)


def device_statements(unit: Unit) -> list[Statement]:
    """The statements that a GPU executes."""
    statements = []
    for directive in unit.directives_in():
        function = unit.function_of(directive)
        if isinstance(directive, d.Acc) and function:
            statement = unit.syntax.statement_after(directive.file, directive.end, function)
            if statement and directive.construct.split()[0] in clause_rules.COMPUTE:
                statements.append(statement)
    return statements


def _loop(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc, outer: list[d.Acc]) -> None:
    if annotated.statement.kind != "for":
        place = unit.text.place(annotated.statement.start)
        raise Refused(directive.place, "expected a 'for' loop behind this directive", (place, "this follows"))
    count = _collapse(directive)
    loops = loop_nest.nested_directly(unit, annotated.statement, count)
    if len(loops) < count:
        clause = directive.all("collapse")[0]
        raise Refused(
            clause.place, f"collapse({count}) needs {count} loops nested directly, found {len(loops)}"
        )
    own_variables.check(unit, directive, {loop.header.index for loop in loops})
    why = _sequential(directive, outer)
    if why in ("", _SHARED):
        for loop in loops:
            restrictions.check_end(unit, loop, "leaves a loop whose iterations run in parallel")
    if why:
        unit.explain(directive, f"acc {directive.construct}: one thread, {why}")
        own_variables.on_thread(
            unit, annotated, directive, implied=directive.construct.startswith(("parallel", "serial"))
        )
        if directive.construct != "loop":
            gpu.generate_kernel_later(unit, annotated, directive, [], None, [])
            return
        for section in directive.named("private"):
            unit.compute.private.append((annotated.statement, directive, section))
        if why == _SHARED:  # a kernel may execute its iterations in parallel all the same
            unit.compute.loops[annotated.statement.start] = directive
        return
    region = next((other for other in reversed(outer) if other.construct in clause_rules.COMPUTE), None)
    parallel(unit, annotated, directive, loops, region)


def _collapse(directive: d.Acc) -> int:
    clauses = directive.all("collapse")
    if not clauses:
        return 1
    expression = clauses[0].expression
    assert expression is not None
    if expression.value is None or expression.value < 1:
        raise Refused(expression.place, f"collapse needs a number of loops, found '{expression.text}'")
    return expression.value


def _sequential(directive: d.Acc, outer: list[d.Acc]) -> str:
    """Why a loop is not shared among threads; empty if it is."""
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


LOWERINGS: dict[str, Lowering] = {
    "acc parallel": HasStatement(compute),
    "acc kernels": HasStatement(compute),
    "acc serial": HasStatement(compute),
    "acc parallel loop": HasStatement(compute),
    "acc kernels loop": HasStatement(compute),
    "acc serial loop": HasStatement(compute),
    "acc loop": HasStatement(compute),
    "acc atomic": HasStatement(atomic),
}
