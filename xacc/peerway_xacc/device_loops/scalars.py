"""Decides which variables of a function live on the device while a part of it runs there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Variable, used_in
from peerway_xacc.frontend.tokens import scan

PREFIX = "pwx_s_"  # how the names of all scalars of the device begin
_TYPES = (
    "char", "signed char", "unsigned char", "short", "unsigned short", "int", "unsigned int", "long",
    "unsigned long", "long long", "unsigned long long", "float", "double", "_Bool",
)  # fmt: skip


@dataclass
class DeviceScalars:
    """The variables on the device: their names, and their declarations at file scope."""

    names: dict[int, str] = field(default_factory=dict)  # by the variable's id()
    types: dict[str, str] = field(default_factory=dict)  # of all variables on the device, by name

    def add(self, name: str, kind: str) -> str:
        """Declare a variable of the device and return its name."""
        self.types[name] = kind
        return name

    def declarations(self) -> str:
        """The text that declares all variables."""
        return "".join(f" static {kind} {name};" for name, kind in self.types.items())


@dataclass(frozen=True)
class Compute:
    """The statements of a file that acc distributes among threads, and what they reduce."""

    ranges: list[Range]
    reduced: list[tuple[Range, str]]  # the statement, and the name of a variable

    def around(self, offset: int) -> bool:
        """Is an offset inside one of the statements?"""
        return any(inside.start <= offset < inside.end for inside in self.ranges)


def compute_statements(unit: Mapped) -> Compute:
    """The compute constructs of a file."""
    ranges: list[Range] = []
    reduced: list[tuple[Range, str]] = []
    for directive in unit.directives_in():
        function = unit.function_of(directive)
        if not isinstance(directive, d.Acc | d.Loop) or function is None:
            continue
        statement = unit.syntax.statement_after(directive.file, directive.end, function)
        if statement is None:
            continue
        inside = Range(statement.start, statement.end)
        if isinstance(directive, d.Loop):
            reduced += [(inside, operand.name.text) for operand in directive.reduced]
        elif directive.construct.split()[0] in ("parallel", "kernels", "serial"):
            ranges.append(inside)
            reduced += [
                (inside, name.text) for clause in directive.all("reduction") for name in clause.variables
            ]
    return Compute(ranges, reduced)


def on_device(
    unit: Mapped, compute: Compute, function: Function, inside: Range, always: Sequence[Variable] = ()
) -> list[Variable]:
    """The variables of a function that a range writes between its loops, and those that follow from them.

    Raises StaysOnHost if one of them cannot live on the device.
    """
    reduced = {
        id(unit.syntax.variable(name, unit.file, statement.start))
        for statement, name in compute.reduced
        if inside.start <= statement.start < inside.end
    }
    chosen: dict[int, Variable] = {id(variable): variable for variable in always}
    uses = list(used_in(function.uses, inside))
    for use in uses:
        between = use.written and not compute.around(use.range.start)
        if _within_arithmetic(unit, use.variable, inside):
            continue
        if (between or id(use.variable) in reduced) and id(use.variable) not in chosen:
            chosen[id(use.variable)] = use.variable
    declared = [variable for variable, of in unit.syntax.locals if of is function and variable.initialised
                and inside.start <= variable.declarator.start < inside.end
                and not compute.around(variable.declarator.start)]  # fmt: skip
    calls = [mark.start for mark in function.marks if mark.kind == "call"]
    more = True
    while more:
        more = False
        for variable in declared:
            own = variable.declarator
            needs = any(own.start < start < own.end for start in calls) or any(
                id(use.variable) in chosen for use in used_in(uses, own) if use.variable is not variable
            )
            if needs and id(variable) not in chosen:
                chosen[id(variable)] = variable
                more = True
    for variable in chosen.values():
        _check(unit, compute, function, variable, inside, id(variable) in reduced)
    return list(chosen.values())


def _within_arithmetic(unit: Mapped, variable: Variable, inside: Range) -> bool:
    """Is a variable declared in an if or a loop between the loops of acc, which is copied as it is?"""
    at = variable.declarator.start
    if variable.file_scope or not inside.start <= at < inside.end:
        return False
    around = unit.syntax.around(unit.file, at)
    return any(
        statement.kind not in ("block", "declaration") and inside.start < statement.start
        for statement in around
    )


def is_volatile(unit: Mapped, variable: Variable) -> bool:
    """Is a variable declared as volatile? True also if something else before it in its declaration is."""
    text, at = unit.texts.of(variable.file).text, max(variable.declarator.start, 0)
    return any(span.text == "volatile" for span in scan(text, text.rfind(";", 0, at) + 1, at))


def _check(
    unit: Mapped, compute: Compute, function: Function, variable: Variable, inside: Range, reduced: bool
) -> None:
    name = variable.name
    at = max(variable.declarator.start, 0) if not variable.file_scope else inside.start
    if variable.file_scope or variable.static:
        raise StaysOnHost(at, f"'{name}' outlives the function")
    if is_volatile(unit, variable):
        raise StaysOnHost(at, f"'{name}' is volatile")
    if not variable.scalar or variable.pointee is not None or variable.element not in _TYPES:
        raise StaysOnHost(at, f"'{name}' is no number")
    for use in variable.uses:
        if use.function is function and use.address:
            raise StaysOnHost(use.range.start, f"the address of '{name}' is taken")
        if not (use.function is function and inside.start <= use.range.start < inside.end):
            continue
        if use.macro and unit.text.text[use.range.start : use.range.end] != name:
            raise StaysOnHost(use.range.start, f"a macro uses '{name}'")
        if use.written and compute.around(use.range.start) and not reduced:
            raise StaysOnHost(use.range.start, f"threads write '{name}'")
