"""Finds the statements of a compute region outside its loops, each of which one GPU thread executes."""

from __future__ import annotations

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.codegen.kernel_arguments import own_in_loop
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Range, Statement, Use, used_in
from peerway_xacc.lowering import data_clauses
from peerway_xacc.lowering.unit import Unit


def beside_loops(
    unit: Unit, annotated: AnnotatedStatement, inside: Range, directive: d.Acc
) -> list[Statement]:
    """The statements of a region outside its loops; a loop around such loops stays on the host.

    Raises Unsupported.
    """
    loops = [
        region.start
        for region, other in unit.compute.regions
        if within(region, inside, other, directive) and region.start in unit.compute.with_kernels
    ]
    in_order = {
        region.start: region
        for region, other in unit.compute.regions
        if within(region, inside, other, directive) and other.construct == "loop"
    }
    named = {name.text for kind in data_clauses.KINDS for name in directive.named_variables(kind)}
    statements: list[Statement] = []

    def walk(block: Range) -> None:
        for statement in unit.syntax.children(unit.file, block):
            if statement.start in loops:
                continue
            uses = list(used_in(annotated.function.uses, Range(statement.start, statement.end)))
            place = unit.text.place(statement.start, statement.end)
            if any(statement.start <= start < statement.end for start in loops):
                if statement.kind not in ("for", "block"):
                    raise Unsupported(
                        "the loops of an acc region are in a statement other than a loop", place
                    )
                body = Range(statement.start + 1, statement.end - 1)
                walk(loop_nest.read(unit, statement).body if statement.kind == "for" else body)
            elif statement.kind == "declaration":
                if any(use.variable.sizes or use.variable.pointee is not None for use in uses):
                    raise Unsupported("a declaration in an acc region takes its value from an array", place)
            elif statement.start in unit.with_directives and statement.start not in in_order:
                raise Unsupported("a statement with directives is beside the loops of an acc region", place)
            else:
                own_indices = loop_nest.indices_in(unit, statement) if statement.kind == "for" else set()
                changed = [
                    use
                    for use in uses
                    if use.written
                    and _is_shared(use, statement, named)
                    and use.variable.name not in own_indices
                    and not own_in_loop(unit, use, Range(statement.start, statement.end))
                ]
                if not changed:
                    statements.append(statement)
                elif any(not use.variable.scalar or use.variable.name in named for use in uses):
                    name = changed[0].variable.name
                    why = f"a statement beside the loops of an acc region changes {name} and uses an array"
                    raise Unsupported(why, place)  # else the host executes it in its place

    if annotated.statement.kind == "block":
        walk(Range(inside.start + 1, inside.end - 1))
    return statements


def _is_shared(use: Use, statement: Statement, named: set[str]) -> bool:
    """Is this a scalar of the host, which a kernel gets by value?"""
    variable = use.variable
    own = statement.start <= variable.declarator.start < statement.end and not variable.file_scope
    return variable.scalar and not use.subscripts and not own and variable.name not in named


def within(region: Range, inside: Range, directive: d.Acc, construct: d.Acc) -> bool:
    """Is a directive's region inside the one of a construct, and not that one itself?"""
    return directive is not construct and inside.start <= region.start and region.end <= inside.end
