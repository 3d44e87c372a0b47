"""The clauses expand, margin and peel_and_wait of loop: more or fewer iterations than a node owns.

expand changes the bounds. margin executes only the iterations that expand adds or takes away: the loop goes
over both ranges, and its innermost body skips what is in both of them or in none. peel_and_wait executes the
expanded loop, waits, and then executes the margin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.analysis.mapping import NodeArray, TemplateOf
from peerway_xacc.fortran.do_loops import Do
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Widening
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.lowering.c_text import where

_NUMBERS = {"expand": 2, "margin": 6, "peel_and_wait": 6}


@dataclass
class Widened:
    """The clause of one loop directive. `variable` has the numbers that C computes."""

    clause: Widening
    arguments: Arguments
    variable: str
    number: int  # of the directive's line
    at: dict[str, int] = field(default_factory=dict)  # where the numbers of an index begin

    @property
    def executes_twice(self) -> bool:
        """Is the loop executed once before the communication is complete, and once after it?"""
        return self.clause.kind == "peel_and_wait"

    @property
    def turn(self) -> str:
        """The variable that is 0 in the first pass and 1 in the second."""
        return f"pwx_turn{self.number}"

    def opening(self, directive: d.Loop) -> list[str]:
        """C before the numbers."""
        if not self.executes_twice:
            return []
        assert self.clause.number is not None
        turn = self.arguments.c_text(self.turn)
        return [f"if ({turn}) pwx_wait_async({self.clause.number.text}, {where(directive)});"]

    def numbers(self, dimension: int, index: str, owned: str, loops: list[Do], start: int) -> list[str]:
        """C that computes the numbers of a dimension: the first and the last value of its loop, and for
        margin those of the expanded range and of the node's own.
        """
        width = self.clause.widths[dimension]
        assert width.lower is not None
        assert width.upper is not None
        self.at[index] = start
        do = loops[0]
        first, last = (self.arguments.c_text(do.text(words)) for words in (do.first, do.last))
        widths = f"{width.lower.text}, {width.upper.text}, {int(width.unbound)}"
        spans = [
            f"const pwx_span o = pwx_local_span({owned}, {first}, {last});",
            f"const pwx_span e = pwx_expanded(o, {widths}, {first}, {last});",
        ]
        if self.clause.kind == "expand":
            stored = ["e"]
        else:
            spans.append("const pwx_span s = pwx_hull(o, e);")
            stored = ["s", "e", "o"]
        if self.executes_twice:  # in the first pass no iteration is the node's own but those of the loop
            turn = self.arguments.c_text(self.turn)
            stored = [f"({turn} ? s : e)", "e", f"({turn} ? o : (pwx_span){{1, 0}})"]
        values = " ".join(
            f"c0[{start + 2 * at}] = {span}.first; c0[{start + 2 * at + 1}] = {span}.last;"
            for at, span in enumerate(stored)
        )
        return [f"{{ {' '.join(spans)} {values} }}"]

    @property
    def size(self) -> int:
        """How many numbers a dimension has."""
        return _NUMBERS[self.clause.kind]

    def ranges(self, index: str) -> list[tuple[str, str]]:
        """The first and last value of the expanded range and of the node's own, as Fortran text."""
        start = self.at[index]
        names = [f"{self.variable}({start + at})" for at in range(3, 7)]
        return [(names[0], names[1]), (names[2], names[3])]


def read(unit: FortranUnit, directive: d.Loop, variable: str) -> Widened | None:
    """The clause of a directive, if it has one. Raises Refused for a wrong number of widths."""
    clause = directive.widening
    if clause is None:
        return None
    assert directive.on is not None
    count = len(directive.on.subscripts or ())
    if len(clause.widths) != count:
        message = f"{counted(len(clause.widths), 'width')} of {clause.kind} for {counted(count, 'dimension')}"
        raise Refused(clause.place, message)
    line = unit.reads[id(directive)]
    return Widened(clause, line.arguments, variable, line.number)


def check(
    widened: Widened, mapping: NodeArray | TemplateOf, dimension: int, loops: list[Do], indices: set[str]
) -> None:
    """Raises Refused where a loop cannot have other bounds than the node's part."""
    clause, do = widened.clause, loops[0]
    if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
        raise Refused(clause.place, f"{clause.kind} of a cyclic dimension is not possible")
    if len(loops) != 1 or not do.counts_by_one:
        raise Refused(clause.place, f"{clause.kind} needs one loop over '{do.index.text}', upwards by 1")
    inner = next((word for word in (*do.first, *do.last) if word.text in indices), None)
    if inner is not None:
        message = f"the bounds of a loop with {clause.kind} must not need other indices"
        raise Refused(inner.place, message)


def guard(unit: FortranUnit, widened: Widened, loops: list[Do]) -> None:
    """Let the innermost loop over the clause's indices skip what is not in the margin."""
    if widened.clause.kind == "expand":
        return
    directives = unit.structure.logicals[widened.number + 1 : loops[0].statement.number]
    collapsed = any(line.model in ("acc", "omp") and "collapse" in line.text.lower() for line in directives)
    inner = _innermost(unit, widened, loops, collapsed)
    tests = []
    for at in range(2):
        bounds = [(index, *widened.ranges(index)[at]) for index in widened.at]
        tests.append(
            " .and. ".join(f"{index} >= {low} .and. {index} <= {high}" for index, low, high in bounds)
        )
    number = inner.statement.number
    unit.generated.behind(number, f"if (({tests[0]}) .eqv. ({tests[1]})) cycle")
    unit.margins[number] = {index: widened.ranges(index) for index in widened.at}


def _innermost(unit: FortranUnit, widened: Widened, loops: list[Do], collapsed: bool) -> Do:
    """The loop whose body is all that the nest executes; of `collapsed` loops, which have nothing between
    them, the last one. Raises Refused if there is more.
    """
    left = set(widened.at)
    for at, do in enumerate(loops):
        left.discard(do.index.text)
        end = unit.structure.by_number[do.end]
        simple = [word.text for word in end.words] in (["continue"], ["enddo"]) or end.first == "end"
        inner = loops[at + 1] if at + 1 < len(loops) else None
        is_nested = inner is not None and _is_whole_body(unit, do, inner)
        if not left and simple and not (collapsed and is_nested):
            return do
        if not is_nested:
            break
    clause = widened.clause
    message = f"{clause.kind} needs loops that are nested directly, and end with END DO or CONTINUE"
    raise Refused(clause.place, message)


def _is_whole_body(unit: FortranUnit, outer: Do, inner: Do) -> bool:
    """Is a loop all that stands in another?"""
    statements = [
        statement.number for statement in unit.statements_behind(outer.statement.number)
        if statement.number < outer.end
    ]  # fmt: skip
    outside = [number for number in statements if not inner.statement.number <= number <= inner.end]
    return not outside
