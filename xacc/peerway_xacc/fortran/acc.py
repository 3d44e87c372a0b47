"""OpenACC in Fortran: loops become C with the same directives, which `peerway cc` turns into kernels.

Each construct is a function of C in a file of its own. It gets its arrays by their addresses and its scalars
by value, and has each statement in the line that the program has it in, so errors name the program's lines.
"""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.fortran import acc_data
from peerway_xacc.fortran.acc_clauses import COMPUTE, AccClause, AccDirective, read
from peerway_xacc.fortran.acc_kernel import Acc, kernel
from peerway_xacc.fortran.acc_pragmas import WITH_VALUES
from peerway_xacc.fortran.blocks import Assign, Blocks, CallOf, Loop, Node, walk
from peerway_xacc.fortran.do_loops import loop_end, read_do
from peerway_xacc.fortran.kernel_functions import Procedures
from peerway_xacc.fortran.kernel_names import KernelNames
from peerway_xacc.fortran.members import with_members
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.types import Types
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused


def lower(unit: FortranUnit) -> Acc:
    """Lower all directives of acc of a file, when those of xmp are lowered."""
    acc = Acc(unit, Types(unit))
    for base in unit.directives:
        if isinstance(base, d.Acc):
            with unit.diagnostics.collecting():
                line = unit.reads[id(base)]
                directive = read(unit.structure.text, line.logical, line.number)
                scope = _scope(unit, line.number)
                directive.clauses = [
                    replace(clause, words=tuple(with_members(unit, scope, list(clause.words))))
                    if clause.words else clause
                    for clause in directive.clauses
                ]  # fmt: skip
                acc.directives[line.number] = directive
    for number, directive in sorted(acc.directives.items()):
        if number not in acc.done:
            with unit.diagnostics.collecting():
                _lower(acc, directive, _scope(unit, number))
    return acc


def _scope(unit: FortranUnit, number: int) -> Scope:
    scope = unit.fortran.function_at(unit.file, unit.structure.logicals[number].start)
    assert scope is not None
    return scope


def _lower(acc: Acc, directive: AccDirective, scope: Scope) -> None:
    if directive.is_end:
        if directive.construct != "loop" and not directive.construct.endswith("data"):
            message = f"there is no acc {directive.construct} that this could end"
            raise Refused(directive.place, message)
        return
    construct = directive.construct.split()
    if construct[0] in COMPUTE and len(construct) == 2:
        _construct(acc, directive, scope, directive.clauses, _end_of(acc, directive, optional=True))
    elif construct[0] in COMPUTE:
        _region(acc, directive, scope)
    elif directive.construct in ("loop", "atomic"):
        message = f"acc {directive.construct} is in no parallel, kernels or serial construct"
        raise Refused(directive.place, message)
    else:
        end = _end_of(acc, directive) if directive.construct in ("data", "host_data") else None
        acc_data.lower(acc.unit, directive, scope, end)


def _end_of(acc: Acc, directive: AccDirective, optional: bool = False) -> AccDirective | None:
    """The directive that ends a construct."""
    depth = 0
    scope = _scope(acc.unit, directive.number)
    for number, other in sorted(acc.directives.items()):
        if number <= directive.number or _scope(acc.unit, number) is not scope:
            continue
        if other.construct == directive.construct:
            if other.is_end and depth == 0:
                return other
            depth += -1 if other.is_end else 1
            if optional and not other.is_end:
                return None
    if optional:
        return None
    text = f"write '!$acc end {directive.construct}' behind its statements"
    raise Refused(directive.place, f"this construct has no end; {text}")


# ---- constructs ----


def _construct(
    acc: Acc, directive: AccDirective, scope: Scope, clauses: list[AccClause], end: AccDirective | None
) -> None:
    """`parallel loop` and its kind: the DO that follows."""
    unit = acc.unit
    statement = next(iter(unit.statements_behind(directive.number)), None)
    blocks = Blocks(unit, acc.directives)
    if statement is None or statement.scope is not scope:
        raise Refused(directive.place, "expected a DO with an index behind this directive")
    nodes = _loop_at(unit, blocks, statement, directive)
    last = _last_line(unit, statement)
    if end is not None and end.number != last + 1:
        end = None
    if end is not None:
        acc.done.add(end.number)
    kernel(acc, directive, scope, clauses, nodes, statement.number, last)


def _loop_at(unit: FortranUnit, blocks: Blocks, statement: Statement, directive: AccDirective) -> list[Node]:
    do = read_do(unit, statement)
    if do is None:
        note = (statement.words[0].place, "this follows")
        raise Refused(directive.place, "expected a DO with an index behind this directive", note)
    nodes = blocks.read(statement.number, do.end)
    assert isinstance(nodes[0], Loop)
    nodes[0].acc = directive
    return nodes


def _last_line(unit: FortranUnit, statement: Statement) -> int:
    return loop_end(unit, statement)


def _region(acc: Acc, directive: AccDirective, scope: Scope) -> None:
    """`parallel`, `kernels` or `serial` around statements: each loop with a directive is one kernel, and so
    are the statements between, which one thread executes.
    """
    end = _end_of(acc, directive)
    assert end is not None
    acc.done.update(range(directive.number, end.number + 1))
    unit, blocks = acc.unit, Blocks(acc.unit, acc.directives)
    kind = directive.construct
    loops = [
        other for number, other in sorted(acc.directives.items())
        if directive.number < number < end.number and other.construct == "loop" and not other.is_end
    ]  # fmt: skip
    beside: list[int] = []
    at = directive.number + 1
    while at < end.number:
        other = acc.directives.get(at)
        if other is not None and other in loops and kind != "serial":
            _beside(acc, directive, scope, beside)
            beside = []
            statement = next(iter(unit.statements_behind(at)))
            nodes = _loop_at(unit, blocks, statement, other)
            clauses = [*other.clauses, *_without(directive.clauses, other.clauses)]
            last = _last_line(unit, statement)
            joined = AccDirective(f"{kind} loop", clauses, other.place, other.number)
            assert isinstance(nodes[0], Loop)
            nodes[0].acc = joined
            kernel(acc, joined, scope, clauses, nodes, statement.number, last)
            at = last + 1
            continue
        if other is None and at in unit.structure.by_number:
            beside.append(at)
        at += 1
    _beside(acc, directive, scope, beside)


def _without(clauses: list[AccClause], others: list[AccClause]) -> list[AccClause]:
    have = {clause.name for clause in others} - {"private", "firstprivate", "reduction"}
    return [clause for clause in clauses if clause.name not in have]


def _beside(acc: Acc, directive: AccDirective, scope: Scope, lines: list[int]) -> None:
    """Statements of a region that are in none of its loops: one thread executes them."""
    if not lines:
        return
    nodes = Blocks(acc.unit, acc.directives).read(lines[0], lines[-1])
    if not nodes:
        return
    clauses = [clause for clause in directive.clauses if clause.name not in WITH_VALUES[:7]]
    kind = directive.construct if directive.construct == "kernels" else "serial"
    if directive.construct == "parallel":
        _check_beside(acc, scope, nodes)
    single = AccDirective(kind, clauses, directive.place, directive.number)
    kernel(acc, single, scope, clauses, nodes, lines[0], lines[-1])


def _check_beside(acc: Acc, scope: Scope, nodes: list[Node]) -> None:
    """Each kernel of a region has its own copies of scalars, which the next one does not see."""
    names = KernelNames(acc.unit, scope, acc.types, Procedures(acc.unit))
    for node in walk(nodes):
        if isinstance(node, CallOf):
            message = "a call beside the loops of acc parallel is not possible; use acc kernels or acc serial"
            raise Refused(node.name.place, message)
        if isinstance(node, Assign) and not names.is_array(node.target[0]):
            message = (
                f"this statement beside the loops of acc parallel changes '{node.target[0].text}', which "
                "each gang has for itself; write it before the construct, or use acc kernels"
            )
            raise Refused(node.target[0].place, message)
