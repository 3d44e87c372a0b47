"""Decides which kernels a compute construct gets for a GPU, beside the loops for CPUs."""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import construct_data, launch, on_host, statements
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Range
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import data_clauses
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit


def generate_kernel_later(
    unit: Unit,
    annotated: AnnotatedStatement,
    directive: d.Acc,
    loops: list[For],
    region: d.Acc | None,
    private: list[str],
) -> None:
    """Generate a construct's kernel once all directives are known; without loops, one thread executes it."""
    unit.output.on_gpu = True
    regions = [
        other
        for inside, other in unit.compute.regions
        if _around(annotated, inside) and other is not directive
    ]

    def generate() -> None:
        try:
            text = launch.launched(unit, annotated, directive, loops, region, private, regions)
        except Unsupported as why:
            unit.explain(directive, f"acc {directive.construct}: no kernel, because {why}")
            unit.diagnostics.warn(
                why.place or directive.place, f"no kernel for GPUs: {why}; it runs only on CPUs"
            )
            around = [*([region] if region else []), *regions]
            if on_host.fall_back(
                unit, annotated, directive, around, construct_data.named_scalars([directive, *around])
            ):
                return
            message = f"{why}, and no kernel is generated for that yet; run it on CPUs (PEERWAY_ACC=host)"
            text = f"if (pwx_gpu()) pwx_error({where(directive)}, {quoted('%s')}, {quoted(message)}); else"
        annotated.before.append(text)

    unit.compute.pending.append(generate)


def generate_region_later(unit: Unit, annotated: AnnotatedStatement, construct: d.Acc) -> None:
    """Generate the kernels of `acc parallel`, `kernels` or `serial` with a statement.

    Loops in it that threads share have kernels of their own. Without such loops, one thread executes the
    statement. The work is done once all directives are known.
    """
    unit.output.on_gpu = True

    def generate() -> None:
        inside = Range(annotated.statement.start, annotated.statement.end)
        loops = [
            directive
            for region, directive in unit.compute.regions
            if statements.within(region, inside, directive, construct)
            and region.start in unit.compute.with_kernels
        ]
        if not loops:
            generate_kernel_later(unit, annotated, construct, [], None, [])
            unit.compute.pending.pop()()
            return
        try:
            beside = statements.beside_loops(unit, annotated, inside, construct)
            if len(loops) + len(beside) > 1:
                _keep_data(unit, annotated, construct)
            for statement in beside:
                single = AnnotatedStatement(statement, annotated.function)
                generate_kernel_later(unit, single, construct, [], None, [])
                unit.compute.pending.pop()()
                unit.output.edits.before(statement.start, f"{' '.join(single.before)} ")
        except Unsupported as why:
            unit.diagnostics.warn(
                why.place or construct.place, f"no kernel for GPUs: {why}; it runs only on CPUs"
            )
            message = f"{why}, and no kernel is generated for that; run it on CPUs (PEERWAY_ACC=host)"
            annotated.before.append(
                f"if (pwx_gpu()) pwx_error({where(construct)}, {quoted('%s')}, {quoted(message)});"
            )

    unit.compute.pending.append(generate)


def _keep_data(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Keep a region's data on the GPU from its first kernel to its last."""
    parts = data_clauses.clauses_of(unit, directive)
    if not parts:
        return
    name, test = unit.output.new_name("region"), data_clauses.condition_text(unit, directive)
    call = f"(&{name}, {len(parts)}, {name}__list, {data_clauses.queue_of(directive)}, {where(directive)});"
    annotated.before.append(
        f"{{ static pwx_data_region {name}; const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"const int {name}__on = pwx_gpu(){f' && {test}' if test else ''}; "
        f"if ({name}__on) {{ {' '.join(data_clauses.waits(directive))} pwx_data_begin{call} }}"
    )
    unit.output.edits.behind(annotated.statement.end, f" if ({name}__on) pwx_data_end{call} }}")


def _around(annotated: AnnotatedStatement, inside: Range) -> bool:
    return inside.start <= annotated.statement.start and annotated.statement.end <= inside.end
