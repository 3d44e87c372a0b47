"""Generates gang loops around a vector loop: a block or a warp executes an iteration, its threads the inner
loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.codegen.streaming import mark_streaming_loads
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Statement, Use, used_in
from peerway_xacc.frontend.tokens import names_in
from peerway_xacc.lowering.types import c_type
from peerway_xacc.lowering.unit import Unit

Shared = list[tuple[For, d.Acc]]


@dataclass(frozen=True)
class Sharing:
    """The threads that share an iteration of the outer loop, as CUDA C++."""

    name: str  # for --explain
    constant: str  # a pwx_executor of acc.h
    thread: str  # the number of a thread among them
    threads: str  # how many they are
    first: str  # the first iteration of x
    step: str  # from that to their next one
    wait: str  # for each other
    combine: str  # gives all of them the combined value


BY_BLOCK = Sharing(
    "block", "PWX_BY_BLOCK", "threadIdx.x", "blockDim.x", "blockIdx.x", "gridDim.x",
    "__syncthreads()", "pwx_block",
)  # fmt: skip
BY_WARP = Sharing(
    "warp", "PWX_BY_WARP", "pwx_lane()", "pwx_lanes()", "pwx_warp_of_grid()", "pwx_warps_of_grid()",
    "pwx_wait_for_warp()", "pwx_whole_warp",
)  # fmt: skip
_WARP = 32
_AT_ONCE = 4  # iterations of a short inner loop
_FEW_ELEMENTS = 6
_LOOPS_AND_JUMPS = {"for", "while", "do", "switch", "break", "return", "goto"}


def sharing_of(vector_length: str | None) -> Sharing:
    """A warp shares an iteration if the vector length is 32, else a block."""
    return BY_WARP if vector_length == str(_WARP) else BY_BLOCK


def vector_length_of(directives: list[d.Acc]) -> str | None:
    """The vector length that directives ask for, as C text; None: they do not."""
    for directive in directives:
        for clause in directive.all("vector_length"):
            if clause.expression is not None:
                value = clause.expression.value
                return str(value) if value is not None else f"({clause.expression.text})"
        for clause in directive.all("vector"):
            if clause.arguments:
                return f"({clause.arguments[0].text})"
    return None


def loops_of(
    unit: Unit, annotated: AnnotatedStatement, body: Range, own: set[str], operators: dict[str, str]
) -> Shared:
    """The loops in a body that the threads of a block share; none if one thread must execute it in order.

    `own` are the variables that clauses make private to each thread.
    """
    statements = _statements(unit, body)
    loops: Shared = []
    if "continue" in names_in(unit.text.text[body.start : body.end]):
        return []  # all threads of a block must reach each barrier
    if any(
        (not use.variable.scalar or use.variable.pointee is not None) and use.variable.name in own
        for use in used_in(annotated.function.uses, body)
    ):
        return []  # an iteration has one such array or struct, but each thread would have a copy
    for statement in statements:
        directive = unit.compute.loops.get(statement.start)
        if (
            statement.kind == "for"
            and directive is not None
            and directive.all("vector")
            and not directive.all("seq")
        ):
            try:
                loop = loop_nest.read(unit, statement)
            except Refused:
                return []
            own_only = _changes_only_own(annotated, body, loop, directive, operators)
            if statement.start in unit.loops.localised or not own_only or not _can_step_far(unit, loop):
                return []
            loops.append((loop, directive))
        elif _writes(annotated, statement, body) == {"here", "outside"}:
            return []
    return loops


def _can_step_far(unit: Unit, loop: For) -> bool:
    """Whether a loop ends if its index goes on by a multiple of the step, and does not wrap."""
    variable = unit.syntax.variable(loop.header.index, unit.file, loop.header.parts[1].start)
    kind = variable.element if variable is not None else ""
    signed = kind in ("int", "long", "long long")
    unsigned_up = kind in ("unsigned int", "unsigned long", "unsigned long long") and not loop.header.down
    return loop.header.relation != "!=" and (signed or unsigned_up)


def _statements(unit: Unit, body: Range) -> list[Statement]:
    children = unit.syntax.children(unit.file, body)
    if len(children) == 1 and children[0].kind == "block":
        return unit.syntax.children(unit.file, Range(children[0].start + 1, children[0].end - 1))
    return children


def _uses(annotated: AnnotatedStatement, statement: Statement) -> list[Use]:
    return list(used_in(annotated.function.uses, Range(statement.start, statement.end)))


def _changes_only_own(
    annotated: AnnotatedStatement, body: Range, loop: For, directive: d.Acc, operators: dict[str, str]
) -> bool:
    """Does an inner loop change only its own scalars and those that it reduces?

    It must also not change arrays of the body, which each thread has a copy of.
    """
    named = {name.text for clause in directive.all("reduction", "private") for name in clause.variables}
    if any(clause.operator not in operators for clause in directive.all("reduction")):
        return False
    if any(section.parts for section in directive.named("reduction")):
        return False
    for use in _uses(annotated, loop.statement):
        variable = use.variable
        inside = loop.statement.start <= variable.declarator.start < loop.statement.end
        known = inside or variable.name in named or variable.name == loop.header.index
        of_body = body.start <= variable.declarator.start < body.end and not variable.file_scope
        if of_body and not known and not variable.scalar and (use.written or use.address):
            return False
        if use.written and variable.scalar and not use.subscripts and not known:
            return False
    return True


def _writes(annotated: AnnotatedStatement, statement: Statement, body: Range) -> set[str]:
    """Does a statement change a thread's own memory ("here"), or memory that all threads see ("outside")?"""
    names = set()
    for use in _uses(annotated, statement):
        variable = use.variable
        if use.argument is not None and not variable.scalar:
            names.add("outside")
        elif use.written:
            local = body.start <= variable.declarator.start < body.end and not variable.file_scope
            own = local or (variable.scalar and variable.pointee is None)
            names.add("here" if own and not (use.subscripts and not local) else "outside")
    return names


def share(
    unit: Unit,
    annotated: AnnotatedStatement,
    edits: Edits,
    body: Range,
    loops: Shared,
    operators: dict[str, str],
    sharing: Sharing,
) -> None:
    """Edit the body: threads share the inner loops, and one of them writes outside memory."""
    wait = sharing.wait
    starts = {loop.statement.start for loop, _ in loops}
    for statement in _statements(unit, body):
        if statement.start not in starts and "outside" in _writes(annotated, statement, body):
            edits.before(statement.start, f"{{ {wait}; if ({sharing.thread} == 0) ")
            edits.behind(statement.end, f" {wait}; }}")
    for loop, directive in loops:
        statement = loop.statement
        opened, closed = f"{wait}; {{ ", f" {wait}; }}"
        for clause in directive.all("reduction"):
            operator = operators[clause.operator]
            for name in clause.variables:
                variable = unit.syntax.variable(name.text, directive.file, directive.start)
                if variable is None:
                    raise Refused(name.place, f"'{name.text}' is not declared")
                kind, before = c_type(variable), f"{name.text}__before"
                opened += (
                    f"const {kind} {before} = {name.text}; {name.text} = {operator}::neutral<{kind}>(); "
                )
                combined = f"{sharing.combine}({operator}(), {name.text})"
                closed = f" {name.text} = {operator}()({before}, {combined});" + closed
        edits.before(statement.start, opened)
        edits.behind(statement.end, closed)
        mark_streaming_loads(unit, annotated, edits, body, loop)
        _distribute(unit, annotated, edits, loop, sharing)


def _distribute(unit: Unit, annotated: AnnotatedStatement, edits: Edits, loop: For, sharing: Sharing) -> None:
    """Give each thread every so many iterations of a loop."""
    head, sign = loop.header, "-" if loop.header.down else "+"
    edits.before(head.first.start, "(")
    edits.behind(head.first.end, f") {sign} (long){sharing.thread} * ({head.step})")
    step = head.parts[2]
    if sharing is BY_WARP and head.declared and _is_short(unit, annotated, loop):
        _do_several_at_once(edits, loop)
    else:
        edits.replace(step.start, step.end, f"{head.index} {sign}= ({head.step}) * (long){sharing.threads}")


def _do_several_at_once(edits: Edits, loop: For) -> None:
    """Let a thread do four iterations at once: so it loads the elements of all before it needs the first.

    The compiler unrolls loops, too, but does the last iterations one by one; and a row has few. It needs
    constant distances between the iterations.
    """
    head, sign = loop.header, "-" if loop.header.down else "+"
    index, kind, first, number = head.index, head.declared, f"{head.index}__first", f"{head.index}__k"
    stride = f"({head.step}) * ({kind}){BY_WARP.threads}"
    edits.replace(head.parts[2].start, head.parts[2].end, f"{index} {sign}= {_AT_ONCE} * {stride}")
    condition = edits.part(head.parts[1].start, head.parts[1].end)
    edits.before(
        loop.body.start,
        f"{{ const {kind} {first} = {index}; "
        f'_Pragma("unroll") for (int {number} = 0; {number} < {_AT_ONCE}; ++{number}) {{ '
        f"{kind} {index} = {first} {sign} {number} * {stride}; if ({condition}) ",
    )
    edits.behind(loop.body.end, " } }")


def _is_short(unit: Unit, annotated: AnnotatedStatement, loop: For) -> bool:
    """Whether a body uses few elements, and has no loops and jumps."""
    words = names_in(unit.text.text[loop.body.start : loop.body.end])
    elements = sum(bool(use.subscripts) for use in used_in(annotated.function.uses, loop.body))
    return elements <= _FEW_ELEMENTS and not words & _LOOPS_AND_JUMPS
