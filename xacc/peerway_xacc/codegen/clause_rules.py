"""Checks the clauses of OpenACC: each is honoured, refused, or ignored as no result depends on it."""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import indices_in
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.frontend import clauses, grammar_acc
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, used_in
from peerway_xacc.lowering.unit import Unit

COMPUTE = ("parallel", "kernels", "serial")
_AT_LEAST_1 = ("num_gangs", "num_workers", "vector_length")
_LEAST_QUEUE = -2  # acc_async_sync; acc_async_noval is -1

HONOURED = frozenset((
    "async", "wait", "num_gangs", "vector_length", "if", "self", "reduction", "default", "private",
    "firstprivate", "collapse", "vector", "seq", "auto", "independent", "finalize", "use_device",
    "if_present", "host", "device", "device_num", "default_async", "read", "write", "update", "capture",
    "delete",
    *(name for name in grammar_acc.DATA if name not in ("attach", "detach", "device_resident", "link")),
))  # fmt: skip
# Clauses that distribute work: a kernel is right for any grid, and each thread calls functions by itself.
HINTS = frozenset(("num_workers", "gang", "worker", "tile", "nohost"))
REFUSED = {
    "attach": "name what the pointer leads to in a data clause",
    "detach": "name what the pointer leads to in a data clause",
    "device_type": "write the clauses that every device shall have",
    "dtype": "write the clauses that every device shall have",
    "device_resident": "write create",
    "link": "write create, or copyin where it is used",
    "bind": "call the other function",
}


def check(unit: Unit, directive: d.Acc) -> None:
    """Check a directive's clauses. Raises Refused.

    Each variable must be declared, and one of deviceptr a pointer. Unsupported clauses are refused, unless
    another compiler gets the directive.
    """
    _check_needed(directive)
    for clause in directive.clauses:
        for name in clause.variables:
            variable = unit.syntax.variable(name.text, directive.file, directive.start)
            if variable is None:
                raise Refused(name.place, f"'{name.text}' is not declared")
            if clause.name == "deviceptr" and unit.scopes.of_variable(variable):
                raise Refused(
                    name.place, f"'{name.text}' is a distributed array, and deviceptr is of pointers"
                )
            if clause.name == "deviceptr" and not variable.pointer:
                raise Refused(name.place, f"'{name.text}' is no pointer, which deviceptr needs")
            if clause.name in ("private", "firstprivate") and unit.scopes.of_variable(variable):
                raise Refused(name.place, f"'{name.text}' is a distributed array, which cannot be private")
        _check_values(unit, directive, clause)
        of_devices = directive.construct in ("init", "shutdown", "set") and clause.name in (
            "device_type",
            "dtype",
        )
        if clause.name in REFUSED and not unit.foreign_acc and not of_devices:
            raise Refused(clause.place, f"{clause.name} not supported yet; {REFUSED[clause.name]}")
        if clause.modifier == "zero" and not unit.foreign_acc:
            unit.output.has_zero = True
            if directive.construct == "declare":
                raise Refused(
                    clause.place, "the modifier zero of acc declare is not supported; set zeros in a loop"
                )


def _check_values(unit: Unit, directive: d.Acc, clause: clauses.Clause) -> None:
    """Refuse constants that a clause cannot have."""
    number = clause.expression
    if clause.name in _AT_LEAST_1 and number and number.value is not None and number.value < 1:
        raise Refused(number.place, f"{clause.name} must be at least 1, not {number.value}")
    for queue in clause.arguments if clause.name in ("async", "wait", "queues") else ():
        if queue.value is not None and queue.value < _LEAST_QUEUE:
            raise Refused(queue.place, f"a queue is a number from 0 on, not {queue.value}")
    for function in clause.arguments if clause.name == "functions" else ():
        if function.text not in unit.syntax.functions_known:
            raise Refused(function.place, f"there is no function '{function.text}' before this directive")
    for section in clause.sections:
        variable = unit.syntax.variable(section.name.text, directive.file, directive.start)
        if variable is None or variable.pointee is not None:
            continue
        for part, size in zip(section.parts, variable.sizes, strict=False):
            _check_part(section, part, size)


def _check_part(section: clauses.Section, part: clauses.Part, size: int | None) -> None:
    first = part.first.value if part.first else 0
    length = 1 if part.index else part.length.value if part.length else 0
    outside = part.length if part.length and first is not None and first >= 0 else part.first
    if size is None or outside is None or first is None or length is None:
        return
    if first < 0 or length < 0 or first + length > size:
        elements = f"{length} elements from {first} on" if not part.index else f"element {first}"
        raise Refused(outside.place, f"{elements}, but '{section.name.text}' has 0 to {size - 1} here")


def _check_needed(directive: d.Acc) -> None:
    """Refuse a directive without any clause that would give it something to do."""
    needed = grammar_acc.GRAMMAR[directive.construct].needed
    if needed and not directive.all(*needed):
        names = ", ".join(name for name in needed if name not in grammar_acc.OLDER)
        raise Refused(directive.place, f"acc {directive.construct} without a clause of {names} does nothing")


def default(directives: list[d.Acc]) -> str:
    """The value of the clause default; the innermost of these constructs comes first."""
    modifiers = [clause.modifier for directive in directives for clause in directive.all("default")]
    return modifiers[0] if modifiers else ""


def check_default(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """With default(none), require that clauses name every outer variable.

    Call it when all directives are known.
    """
    region = Range(annotated.statement.start, annotated.statement.end)
    around = [construct for inside, construct in unit.compute.regions if _within(region, inside)]
    if default(around[::-1]) != "none":
        return
    named = {name.text for construct in around for clause in construct.clauses for name in clause.variables}
    inner = unit.directives_in(region)
    for other in unit.directives:
        if isinstance(other, d.Acc) and (other in inner or other.construct == "declare"):
            named |= {name.text for clause in other.clauses for name in clause.variables}
    named |= indices_in(unit, annotated.statement)
    for use in used_in(annotated.function.uses, region):
        variable = use.variable
        outside = variable.file_scope or not region.start <= variable.declarator.start < region.end
        if outside and variable.name not in named and not use.in_sizeof:
            place = unit.text.place(use.range.start, use.range.end)
            message = f"'{variable.name}' is used in a construct with default(none), and no clause names it"
            raise Refused(place, message, (directive.place, "the construct"))


def _within(inner: Range, outer: Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
