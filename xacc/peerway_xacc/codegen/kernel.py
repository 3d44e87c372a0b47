"""Writes the text of a kernel: the loops that form its grid, its arguments, and its body."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen import atomic, vector
from peerway_xacc.codegen.argument_forms import Argument, declared
from peerway_xacc.codegen.device_code import around, blank_directives, in_device_code
from peerway_xacc.codegen.grid import (
    Dimension,
    LoopNest,
    bounds,
    described,
    grouped,
    indices,
)
from peerway_xacc.codegen.kernel_arguments import Clauses, arguments_of
from peerway_xacc.codegen.overlap import overlaps
from peerway_xacc.codegen.vector import Sharing
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Variable, used_in
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import subscripts
from peerway_xacc.lowering.checks import checks_of
from peerway_xacc.lowering.loops import bound, cycle
from peerway_xacc.lowering.types import c_type
from peerway_xacc.lowering.unit import Unit

DEVICE_OPERATORS = {
    "+": "pwx_sum", "-": "pwx_sum", "*": "pwx_product", "max": "pwx_max", "min": "pwx_min",
    "&": "pwx_bit_and", "|": "pwx_bit_or", "^": "pwx_bit_xor", "&&": "pwx_and", "||": "pwx_or",
}  # fmt: skip


_ELEMENTS_OF_STREAM = 3


@dataclass
class Kernel:
    """The kernel of a compute construct."""

    name: str
    dimensions: list[Dimension]
    groups: list[list[Dimension]]  # loops of x, y, z: each from the outermost to the innermost
    arguments: list[Argument]
    reductions: list[tuple[str, Variable]]
    text: str
    sharing: Sharing | None  # the threads that execute one iteration of x together
    y_at_once: int  # iterations of y that a thread does at once
    overlaps: bool  # it can run beside a reflect before it


def build(
    unit: Unit,
    annotated: AnnotatedStatement,
    name: str,
    loops: list[For],
    reductions: list[tuple[str, Variable]],
    clauses: Clauses,
    vector_length: str | None,
) -> Kernel:
    """Build the kernel of a construct; without loops, one thread executes its statement."""
    dimensions = [described(unit, loop, annotated.statement.start) for loop in loops]
    inside = loops[-1].body if loops else Range(annotated.statement.start, annotated.statement.end)
    edits = Edits(unit.text)
    blank_directives(unit, edits, inside)
    parameters = _inner_loops(unit, edits, annotated, inside)
    extents = _arrays(unit, edits, annotated, inside)
    for guard in unit.loops.guards:
        if annotated.statement.start <= guard.loop < annotated.statement.end and guard.body >= inside.start:
            edits.before(guard.body, guard.text)
            parameters += guard.names
    atomic.statements(unit, edits, inside)
    for loop, directive, section in unit.compute.private:
        variable = unit.syntax.variable(section.name.text, directive.file, directive.start)
        if variable is not None and inside.start <= loop.start < inside.end:
            edits.before(loop.start, f"{{ {declared(variable, section)} ")
            edits.behind(loop.end, " }")
    own = clauses.private | clauses.copied
    shared = vector.loops_of(unit, annotated, inside, own, DEVICE_OPERATORS) if loops else []
    groups = [dimensions, [], []] if shared else grouped(dimensions)
    sharing = vector.sharing_of(vector_length) if shared else None
    if sharing is not None:
        vector.share(unit, annotated, edits, inside, shared, DEVICE_OPERATORS, sharing)
    body = edits.part(inside.start, inside.end)
    skipped = {dimension.index for dimension in dimensions} | {variable.name for _, variable in reductions}
    arguments, locals_ = arguments_of(unit, annotated, inside, skipped, clauses)
    parameters += [f"pwx_cycle {dimension.index}__c" for dimension in dimensions if dimension.cyclic]
    arguments += [
        Argument(f"const {parameter}", f"&{parameter.split()[1]}") for parameter in dict.fromkeys(parameters)
    ]
    arguments += [
        Argument(f"const long {extent}", f"&{extent}", [f"const long {extent} = {value};"])
        for extent, value in extents.items()
    ]
    arguments += bounds(dimensions, groups)
    nest = LoopNest("zyx", {}, sharing)
    if not shared and _streams(unit, annotated, groups, inside):
        nest = _streaming_nest(groups, reduces=bool(reductions))
    needed = around(unit, body, annotated.function, inside)
    overlapped = (
        not shared
        and not any(argument.is_part for argument in arguments)
        and overlaps(unit, annotated, inside, dimensions, needed + body)
    )
    text = _text(unit, name, groups, arguments, locals_, reductions, body, inside, nest, overlapped)
    return Kernel(
        name,
        dimensions,
        groups,
        arguments,
        reductions,
        in_device_code(unit, around(unit, text, annotated.function, inside) + text),
        sharing=sharing,
        y_at_once=nest.together.get("y", 1),
        overlaps=overlapped,
    )


def _streaming_nest(groups: list[list[Dimension]], *, reduces: bool) -> LoopNest:
    """The loops of a kernel that streams. A thread needs several loads under way, and with a reduction it has
    several iterations of y.
    """
    if reduces and groups[1]:
        return LoopNest("zxy", {"y": 4}, None)
    return LoopNest("zyx", {} if reduces or groups[1] else {"x": 2}, None)


def _streams(unit: Unit, annotated: AnnotatedStatement, groups: list[list[Dimension]], inside: Range) -> bool:
    """Whether an iteration does no more than STREAM's: it uses at most three elements, and has no loop."""
    if not groups[0]:
        return False
    elements = sum(bool(use.subscripts) for use in used_in(annotated.function.uses, inside))
    loops = (loop.start for loop in unit.syntax.loops_in(unit.file, annotated.statement))
    return 0 < elements <= _ELEMENTS_OF_STREAM and not any(
        inside.start <= start < inside.end for start in loops
    )


def _inner_loops(unit: Unit, edits: Edits, annotated: AnnotatedStatement, inside: Range) -> list[str]:
    """Give the xmp loops that one thread runs the bounds of this node.

    Returns the parameters that they need.
    """
    parameters = []
    for statement in unit.syntax.loops_in(unit.file, annotated.statement):
        if not inside.start <= statement.start < inside.end or statement.start not in unit.loops.localised:
            continue
        loop = loop_nest.read(unit, statement)
        index = loop.header.index
        if unit.loops.localised[statement.start] == "cyclic":
            cycle(unit, edits, loop, index)
            parameters.append(f"pwx_cycle {index}__c")
        else:
            bound(unit, edits, loop, index)
            parameters.append(f"pwx_span {index}__s")
    return parameters


def _arrays(unit: Unit, edits: Edits, annotated: AnnotatedStatement, inside: Range) -> dict[str, str]:
    """Make subscripts local to this node's memory, and replace members of structs by plain names.

    Returns the extents that checks need: their names, and their values on the host.
    """
    seen: set[int] = set()
    held: dict[str, str] = {}
    checks = None if "NDEBUG" in unit.texts.defines else checks_of(unit)
    for use in used_in(annotated.function.uses, inside):
        array = unit.scopes.of_variable(use.variable)
        if array and array.symbol != array.name:
            edits.replace(use.range.start, use.range.end, array.symbol)
        if array:
            subscripts.translate(unit, edits, array, use, seen, declared=True, checks=checks, held=held)
    return held


def _text(
    unit: Unit,
    name: str,
    groups: list[list[Dimension]],
    arguments: list[Argument],
    locals_: list[str],
    reductions: list[tuple[str, Variable]],
    body: str,
    inside: Range,
    nest: LoopNest,
    overlapped: bool,
) -> str:
    parameters = [argument.parameter for argument in arguments if argument.parameter]
    parameters += [f"pwx_total<{c_type(variable)}> {variable.name}__t" for _, variable in reductions]
    parameters.append("const int* pwx_state")
    begin = ["  pwx_begin_in_order();", "  if (!pwx_goes_on(pwx_state)) return;"]
    end: list[str] = []
    if overlapped:
        parameters.append("const unsigned* pwx_overlaps")
        begin = [
            "  pwx_begin(pwx_overlaps);",
            "  if (!pwx_goes_on(pwx_state)) return pwx_wait();",
        ]
        end = ["  pwx_end(pwx_overlaps);"]
    lines = [f'extern "C" __global__ void {name}({", ".join(parameters)}) {{', *begin]
    lines += [f"  {argument.opened}" for argument in arguments if argument.opened]
    for operator, variable in reductions:
        kind = c_type(variable)
        lines.append(f"  {kind} {variable.name} = {DEVICE_OPERATORS[operator]}::neutral<{kind}>();")
    used = {letter for letter, group in zip("xyz", groups, strict=True) if group}
    lines += nest.heads(used) or ["  PWX_ONE_THREAD"]
    lines.append("  {")
    lines += nest.beginning()
    lines += [f"    {line}" for line in indices(groups)]
    lines += [f"    {line}" for line in locals_]
    place = unit.text.place(inside.start)
    lines += [f"#line {place.line} {quoted(unit.file)}", body, "  }"]
    for operator, variable in reductions:
        value = variable.name
        if nest.sharing is not None:  # all of them have its value
            kind, thread = c_type(variable), nest.sharing.thread
            value = f"{thread} == 0 ? {value} : {DEVICE_OPERATORS[operator]}::neutral<{kind}>()"
        lines.append(f"  {variable.name}__t.add({DEVICE_OPERATORS[operator]}(), {value});")
    return "\n".join([*lines, *end, "}"]) + "\n"
