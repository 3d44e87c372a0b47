"""Maps loops to the dimensions of a kernel's grid, and computes a thread's loop indices."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.codegen.argument_forms import Argument
from peerway_xacc.codegen.device_code import expands_to_variables
from peerway_xacc.codegen.vector import Sharing
from peerway_xacc.lowering.loops import ENDS, unbounded
from peerway_xacc.lowering.unit import Unit


@dataclass
class Dimension:
    """A loop that threads share: its first value, its number of iterations, and the step between them."""

    loop: For
    kind: str  # the type of its index
    first: str
    count: str
    step: str
    literal: bool  # whether all three are literals
    cyclic: tuple[str, str] | None = None  # if iterations are counted: the first value and step of the index
    reach: int = 0  # how many of the first and last iterations may read halos, where the kernel overlaps them

    @property
    def index(self) -> str:
        """The name of the loop's index."""
        return self.loop.header.index

    @property
    def position(self) -> str:
        """The variable that says which iteration of this node a thread executes."""
        return f"{self.index}__at"

    @property
    def iterations(self) -> str:
        """The number of iterations of this node, as text of the kernel."""
        return f"(unsigned)({self.count})" if self.literal else f"(unsigned){self.index}__count"


def described(unit: Unit, loop: For, offset: int) -> Dimension:
    """A loop as a dimension of the grid, with the bounds of this node."""
    head = loop.header
    text = unit.text.text
    first, last = (text[part.start : part.end] for part in (head.first, head.last))
    where = unit.loops.localised.get(loop.statement.start)
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
    if loop.statement.start in unit.loops.unbound:
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

    x has the innermost loops of literal size, since only divisions by literals are cheap, and the next loop
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


def bounds(dimensions: list[Dimension], groups: list[list[Dimension]]) -> list[Argument]:
    """Arguments for bounds that are not literal, and for the numbers of iterations of x, y and z."""
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
    """The number of iterations of a loop, as C text for the host."""
    count = f"({dimension.count})" if dimension.literal else f"{dimension.index}__count"
    return f"PWX_AT_LEAST_0({count})"


@dataclass(frozen=True)
class LoopNest:
    """The loops over the iterations of a thread."""

    order: str  # the letters of the dimensions, the outermost loop first
    together: dict[str, int]  # iterations of a dimension that a thread does at once, if more than one
    sharing: Sharing | None  # the threads that share an iteration of x

    def heads(self, used: set[str]) -> list[str]:
        """The lines before the loops' body, for the dimensions that are used."""
        return [line for letter in self.order if letter in used for line in self._head(letter)]

    def _head(self, letter: str) -> list[str]:
        first, step = f"blockIdx.{letter}", f"gridDim.{letter}"
        if letter == "x" and self.sharing is not None:
            first, step = self.sharing.first, self.sharing.step
        elif letter == "x":
            first, step = f"{first} * blockDim.x + threadIdx.x", f"{step} * blockDim.x"
        count = self.together.get(letter, 1)
        if count == 1:
            index = f"{letter}__q"
            return [f"  for (unsigned {index} = {first}; {index} < {letter}__all; {index} += {step})"]
        # The compiler moves the loads of all before the first store, so that more bytes are under way.
        index, number = f"{letter}__p", f"{letter}__k"
        return [
            f"  for (unsigned {index} = {first}; {index} < {letter}__all; {index} += {count} * {step})",
            "  #pragma unroll",
            f"  for (unsigned {number} = 0; {number} < {count}; ++{number})",
        ]

    def beginning(self) -> list[str]:
        """The first lines of the body."""
        lines = []
        for letter in self.together:
            step = f"gridDim.{letter}{' * blockDim.x' if letter == 'x' else ''}"
            lines.append(f"    const unsigned {letter}__q = {letter}__p + {letter}__k * {step};")
            lines.append(f"    if ({letter}__q >= {letter}__all) break;")
        return lines


def indices(groups: list[list[Dimension]]) -> list[str]:
    """The lines that compute the indices of all loops.

    An iteration that may read halos waits for the reflect that the kernel overlaps. Then it loads a zero, and
    adds it to its positions. So the addresses of all halos are known only after the wait; otherwise the
    compiler would load from them before.
    """
    lines = []
    for letter, group in zip("xyz", groups, strict=True):
        lines += _positions(letter, group)
    reaching = [dimension for group in groups for dimension in group if dimension.reach > 0]
    if reaching:
        near = [
            f"pwx_near_end({dimension.position}, {dimension.iterations}, {dimension.reach})"
            for dimension in reaching
        ]
        lines.append("unsigned pwx_zero = 0;")
        lines.append(
            f"if (pwx_overlaps && ({' || '.join(near)})) pwx_zero = pwx_wait_for_halos(pwx_overlaps);"
        )
    for group in groups:
        for dimension in reversed(group):
            lines += _index(dimension)
    return lines


def _positions(letter: str, group: list[Dimension]) -> list[str]:
    """The lines that compute which iteration of each loop a thread executes; the innermost varies fastest."""
    lines = []
    quotient = f"{letter}__q"
    for dimension in reversed(group[1:]):
        at, rest, count = dimension.position, f"{dimension.index}__rest", dimension.iterations
        lines.append(f"const unsigned {at} = {quotient} % {count}, {rest} = {quotient} / {count};")
        quotient = rest
    for dimension in group[:1]:
        value = quotient
        if dimension.reach > 0:
            value = f"pwx_ends_last({quotient}, {dimension.iterations}, {dimension.reach})"
        lines.append(f"const unsigned {dimension.position} = {value};")
    return lines


def _index(dimension: Dimension) -> list[str]:
    """The lines that compute a loop's index from the iteration."""
    index, at = dimension.index, dimension.position
    if dimension.reach > 0:
        at = f"({at} + pwx_zero)"
    first = dimension.first if dimension.literal else f"{index}__first"
    if dimension.step in ("(1)", "-(1)"):
        value = f"{first} {dimension.step[0] if dimension.step[0] == '-' else '+'} (long){at}"
    else:
        step = dimension.step if dimension.literal else f"{index}__step"
        value = f"{first} + (long){at} * ({step})"
    if dimension.cyclic:
        value = f"pwx_at({index}__c, {value})"
    lines = [f"const {dimension.kind} {index} = ({dimension.kind})({value});"]
    if dimension.cyclic and dimension.cyclic[1] != "1":
        lines.append(f"if (({index} - {index}__from) % {index}__by) continue;")
    return lines
