"""The text of a kernel: which loops are dimensions of the grid, which variables are arguments, its body."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.unit import Stack, Unit
from peerway_xacc.codegen import atomic, vector
from peerway_xacc.codegen.device_code import around, blank_directives, expands_to_variables, in_device_code
from peerway_xacc.codegen.kernel_arguments import Argument, Clauses, arguments_of, declared
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Variable, used_in
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import subscripts
from peerway_xacc.lowering.checks import checks_of
from peerway_xacc.lowering.loops import ENDS, bound, cycle, unbounded
from peerway_xacc.lowering.types import c_type

DEVICE_OPERATORS = {
    "+": "pwx_sum", "-": "pwx_sum", "*": "pwx_product", "max": "pwx_max", "min": "pwx_min",
    "&": "pwx_bit_and", "|": "pwx_bit_or", "^": "pwx_bit_xor", "&&": "pwx_and", "||": "pwx_or",
}  # fmt: skip


@dataclass
class Dimension:
    """A loop that is shared among threads: its first value, how many it has, and the step between them."""

    loop: For
    kind: str  # of its index
    first: str
    count: str
    step: str
    literal: bool  # the text of all three is of literals
    cyclic: tuple[str, str] | None = None  # iterations are counted; the first value and step of the index

    @property
    def index(self) -> str:
        """Its index."""
        return self.loop.header.index


@dataclass
class Kernel:
    """What a compute construct becomes on a GPU."""

    name: str
    dimensions: list[Dimension]
    groups: list[list[Dimension]]  # of x, y, z: each from the outermost to the innermost loop
    arguments: list[Argument]
    reductions: list[tuple[str, Variable]]
    text: str
    by_block: bool  # a block does one iteration of x


def described(unit: Unit, loop: For, offset: int) -> Dimension:
    """A loop as a dimension of the grid, by the bounds that its node has."""
    head = loop.header
    text = unit.text.text
    first, last = (text[part.start : part.end] for part in (head.first, head.last))
    where = unit.localised.get(loop.statement.start)
    variable = unit.syntax.variable(head.index, unit.file, loop.statement.end - 1)
    kind = head.declared or (variable.spelling if variable else "long")
    if where == "cyclic":
        beyond = f"({last}) + 1" if head.relation == "<=" else last
        begin = f"pwx_before({head.index}__c, {first})"
        count = f"pwx_before({head.index}__c, {beyond}) - {begin}"
        return Dimension(loop, kind, begin, count, "(1)", literal=False, cyclic=(first, head.step))
    literal = where is None and not any(
        expands_to_variables(unit, part, offset) for part in (first, last, head.step)
    )
    if loop.statement.start in unit.unbound:
        first, last = unbounded(head.relation, head.index)
    elif where == "span":
        call = "pwx_first_down" if head.down else "pwx_first"
        first = f"{call}({head.index}__s, {first}, {head.step})"
        last = f"{ENDS[head.relation]}({head.index}__s, {last})"
    low, high = (last, first) if head.down else (first, last)
    extra = 1 if head.relation in ("<=", ">=") else 0
    count = f"(({high}) - ({low}) + ({head.step}) - {1 - extra}) / ({head.step})"
    step = f"-({head.step})" if head.down else f"({head.step})"
    return Dimension(loop, kind, f"({first})", count, step, literal)


def grouped(dimensions: list[Dimension]) -> list[list[Dimension]]:
    """Which loops share x, y and z.

    x has the innermost loops of literal size, which cost divisions by literals alone, and the next one
    outside of them; y has one loop, and z the rest.
    """
    remaining = list(dimensions)
    x: list[Dimension] = []
    while remaining and remaining[-1].literal:
        x.insert(0, remaining.pop())
    if remaining:
        x.insert(0, remaining.pop())
    y = [remaining.pop()] if remaining else []
    return [x, y, remaining]


def build(
    unit: Unit,
    stack: Stack,
    name: str,
    loops: list[For],
    reductions: list[tuple[str, Variable]],
    clauses: Clauses,
) -> Kernel:
    """The kernel of a construct; without loops one thread does its statement."""
    dimensions = [described(unit, loop, stack.statement.start) for loop in loops]
    groups = grouped(dimensions)
    inside = loops[-1].body if loops else Range(stack.statement.start, stack.statement.end)
    edits = Edits(unit.text)
    blank_directives(unit, edits, inside)
    given = _inner_loops(unit, edits, stack, inside)
    held = _arrays(unit, edits, stack, inside)
    for guard in unit.guards:
        if stack.statement.start <= guard.loop < stack.statement.end and guard.body >= inside.start:
            edits.before(guard.body, guard.text)
            given += guard.names
    atomic.statements(unit, edits, inside)
    for loop, of, section in unit.own_in_loops:
        variable = unit.syntax.variable(section.name.text, of.file, of.start)
        if variable is not None and inside.start <= loop.start < inside.end:
            edits.before(loop.start, f"{{ {declared(variable, section)} ")
            edits.behind(loop.end, " }")
    own = clauses.private | clauses.copied
    shared = vector.loops_of(unit, stack, inside, own, DEVICE_OPERATORS) if loops else []
    if shared:
        groups = [dimensions, [], []]
        vector.share(unit, stack, edits, inside, shared, DEVICE_OPERATORS)
    body = edits.part(inside.start, inside.end)
    skipped = {dimension.index for dimension in dimensions} | {variable.name for _, variable in reductions}
    arguments, locals_ = arguments_of(unit, stack, inside, skipped, clauses)
    given += [f"pwx_cycle {dimension.index}__c" for dimension in dimensions if dimension.cyclic]
    arguments += [
        Argument(f"const {dimension}", f"&{dimension.split()[1]}") for dimension in dict.fromkeys(given)
    ]
    arguments += [Argument(f"const long {dimension}", f"&{dimension}", [f"const long {dimension} = {value};"])
                  for dimension, value in held.items()]  # fmt: skip
    arguments += _bounds(dimensions, groups)
    text = _text(unit, name, groups, arguments, locals_, reductions, body, inside, bool(shared))
    return Kernel(
        name,
        dimensions,
        groups,
        arguments,
        reductions,
        in_device_code(unit, around(unit, text, stack.function, inside) + text),
        by_block=bool(shared),
    )


def _inner_loops(unit: Unit, edits: Edits, stack: Stack, inside: Range) -> list[str]:
    """Loops of xmp that a thread runs by itself keep the bounds of their node: gives what these need."""
    given = []
    for statement in unit.syntax.loops_in(unit.file, stack.statement):
        if not inside.start <= statement.start < inside.end or statement.start not in unit.localised:
            continue
        loop = loop_nest.read(unit, statement)
        index = loop.header.index
        if unit.localised[statement.start] == "cyclic":
            cycle(unit, edits, loop, index)
            given.append(f"pwx_cycle {index}__c")
        else:
            bound(unit, edits, loop, index)
            given.append(f"pwx_span {index}__s")
    return given


def _arrays(unit: Unit, edits: Edits, stack: Stack, inside: Range) -> dict[str, str]:
    """Subscripts become those of this node's memory, members of structs plain names. Gives the extents that
    checks need.
    """
    seen: set[int] = set()
    held: dict[str, str] = {}
    checks = None if "NDEBUG" in unit.texts.defines else checks_of(unit)
    for use in used_in(stack.function.uses, inside):
        array = unit.scopes.of_variable(use.variable)
        if array and array.symbol != array.name:
            edits.replace(use.range.start, use.range.end, array.symbol)
        if array:
            subscripts.translate(unit, edits, array, use, seen, declared=True, checks=checks, held=held)
    return held


def _bounds(dimensions: list[Dimension], groups: list[list[Dimension]]) -> list[Argument]:
    """First values and counts known only where the loop begins, and how many iterations x, y, z have."""
    arguments = []
    for dimension in dimensions:
        if dimension.literal:
            continue
        for bound_name, value in (
            ("first", dimension.first),
            ("count", dimension.count),
            ("step", dimension.step),
        ):
            if bound_name == "step" and dimension.step in ("(1)", "-(1)"):
                continue
            name = f"{dimension.index}__{bound_name}"
            arguments.append(Argument(f"const long {name}", f"&{name}", [f"const long {name} = {value};"]))
        for bound_name, value in zip(("from", "by"), dimension.cyclic or (), strict=False):
            if dimension.cyclic and dimension.cyclic[1] != "1":
                name = f"{dimension.index}__{bound_name}"
                arguments.append(
                    Argument(f"const long {name}", f"&{name}", [f"const long {name} = {value};"])
                )
    for letter, group in zip("xyz", groups, strict=True):
        if group:
            product = " * ".join(count_of(dimension) for dimension in group)
            lines = [f"const unsigned {letter}__all = pwx_iterations({product}, PWX_THERE);"]
            arguments.append(Argument(f"const unsigned {letter}__all", f"&{letter}__all", lines))
    return arguments


def count_of(dimension: Dimension) -> str:
    """How many iterations a loop has, as C text on the host."""
    count = f"({dimension.count})" if dimension.literal else f"{dimension.index}__count"
    return f"PWX_AT_LEAST_0({count})"


def _text(
    unit: Unit,
    name: str,
    groups: list[list[Dimension]],
    arguments: list[Argument],
    locals_: list[str],
    reductions: list[tuple[str, Variable]],
    body: str,
    inside: Range,
    by_block: bool,
) -> str:
    parameters = [argument.parameter for argument in arguments if argument.parameter]
    parameters += [f"pwx_total<{c_type(variable)}> {variable.name}__t" for _, variable in reductions]
    lines = [f'extern "C" __global__ void {name}({", ".join(parameters)}) {{', "  pwx_ready_next();"]
    lines += [f"  {argument.opened}" for argument in arguments if argument.opened]
    for operator, variable in reductions:
        kind = c_type(variable)
        lines.append(f"  {kind} {variable.name} = {DEVICE_OPERATORS[operator]}::neutral<{kind}>();")
    for letter, group in reversed(list(zip("xyz", groups, strict=True))):
        if group:
            lines.append(_BLOCKS if by_block else _stride(letter))
    if not groups[0]:
        lines.append("  if (blockIdx.x == 0 && threadIdx.x == 0)")
    lines.append("  {")
    for letter, group in zip("xyz", groups, strict=True):
        lines += [f"    {line}" for line in _indices(letter, group)]
    lines += [f"    {line}" for line in locals_]
    place = unit.text.place(inside.start)
    lines += [f"#line {place.line} {quoted(unit.file)}", body, "  }"]
    for operator, variable in reductions:
        value = variable.name
        if by_block:  # all its threads have the value of the block
            kind = c_type(variable)
            value = f"threadIdx.x == 0 ? {value} : {DEVICE_OPERATORS[operator]}::neutral<{kind}>()"
        lines.append(f"  {variable.name}__t.add({DEVICE_OPERATORS[operator]}(), {value});")
    return "\n".join([*lines, "}"]) + "\n"


_BLOCKS = "  for (unsigned x__q = blockIdx.x; x__q < x__all; x__q += gridDim.x)"


def _stride(letter: str) -> str:
    if letter == "x":
        return (
            "  for (unsigned x__q = blockIdx.x * blockDim.x + threadIdx.x; x__q < x__all; "
            "x__q += gridDim.x * blockDim.x)"
        )
    return (
        f"  for (unsigned {letter}__q = blockIdx.{letter}; {letter}__q < {letter}__all; "
        f"{letter}__q += gridDim.{letter})"
    )


def _indices(letter: str, group: list[Dimension]) -> list[str]:
    """The indices of the loops that share a dimension, the innermost the fastest."""
    lines = []
    quotient = f"{letter}__q"
    for number in range(len(group) - 1, -1, -1):
        dimension = group[number]
        if number == 0:
            at = quotient
        else:
            count = (
                f"(unsigned)({dimension.count})"
                if dimension.literal
                else f"(unsigned){dimension.index}__count"
            )
            at, rest = f"{dimension.index}__q", f"{dimension.index}__rest"
            lines.append(f"const unsigned {at} = {quotient} % {count}, {rest} = {quotient} / {count};")
            quotient = rest
        first = dimension.first if dimension.literal else f"{dimension.index}__first"
        if dimension.step in ("(1)", "-(1)"):
            value = f"{first} {dimension.step[0] if dimension.step[0] == '-' else '+'} (long){at}"
        else:
            step = dimension.step if dimension.literal else f"{dimension.index}__step"
            value = f"{first} + (long){at} * ({step})"
        if dimension.cyclic:
            value = f"pwx_at({dimension.index}__c, {value})"
        lines.append(f"const {dimension.kind} {dimension.index} = ({dimension.kind})({value});")
        if dimension.cyclic and dimension.cyclic[1] != "1":
            lines.append(
                f"if (({dimension.index} - {dimension.index}__from) % {dimension.index}__by) continue;"
            )
    return lines
