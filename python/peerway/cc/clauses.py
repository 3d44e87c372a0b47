"""What becomes of each clause of OpenACC: it is honoured, or no result depends on it, or it is refused."""

from __future__ import annotations

from peerway.cc import acc
from peerway.cc import directives as d
from peerway.cc.diagnostics import Refused
from peerway.cc.nest import indices_in
from peerway.cc.source import Range, used_in
from peerway.cc.unit import Stack, Unit

COMPUTE = ("parallel", "kernels", "serial")

HONOURED = frozenset((
    "async", "wait", "num_gangs", "vector_length", "if", "self", "reduction", "default", "private",
    "firstprivate", "collapse", "vector", "seq", "auto", "independent", "finalize", "use_device",
    "if_present", "host", "device", "read", "write", "update", "capture", "delete",
    *(name for name in acc.DATA if name not in ("attach", "detach", "device_resident", "link")),
))  # fmt: skip
# How work is dealt out, where a kernel is right for any grid and a function is each thread's own.
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


def check(unit: Unit, made: d.Acc) -> None:
    """Every variable that a clause names must be declared, one of deviceptr a pointer; and what there is not
    is refused, unless the directive is another compiler's.
    """
    for clause in made.clauses:
        for name in clause.variables:
            variable = unit.syntax.variable(name.text, made.file, made.start)
            if variable is None:
                raise Refused(name.place, f"'{name.text}' is not declared")
            if clause.name == "deviceptr" and unit.scopes.of_variable(variable):
                raise Refused(
                    name.place, f"'{name.text}' is a distributed array, and deviceptr is of pointers"
                )
            if clause.name == "deviceptr" and not variable.pointer:
                raise Refused(name.place, f"'{name.text}' is no pointer, which deviceptr needs")
        if clause.name in REFUSED and not unit.acc_left:
            raise Refused(clause.place, f"{clause.name} not supported yet; {REFUSED[clause.name]}")
        if clause.modifier == "zero" and not unit.acc_left:
            why = "on CPUs, whose memory is the device's, it would clear the program's own variable"
            raise Refused(clause.place, f"the modifier zero not supported yet: {why}; set zeros in a loop")


def default(directives: list[d.Acc]) -> str:
    """What the clause default of the innermost of these constructs says; they come in this order."""
    found = [clause.modifier for made in directives for clause in made.all("default")]
    return found[0] if found else ""


def check_default(unit: Unit, stack: Stack, made: d.Acc) -> None:
    """With default(none) clauses must name every variable from outside; once all directives are known."""
    region = Range(stack.statement.start, stack.statement.end)
    around = [one for inside, one in unit.acc_regions if _within(region, inside)]
    if default(around[::-1]) != "none":
        return
    named = {name.text for one in around for clause in one.clauses for name in clause.variables}
    for other in unit.directives:
        inner = region.start <= other.start < region.end
        if isinstance(other, d.Acc) and (inner or other.construct == "declare"):
            named |= {name.text for clause in other.clauses for name in clause.variables}
    named |= indices_in(unit, stack.statement)
    for use in used_in(stack.function.uses, region):
        variable = use.variable
        outside = variable.file_scope or not region.start <= variable.declarator.start < region.end
        if outside and variable.name not in named and not use.in_sizeof:
            place = unit.text.place(use.range.start, use.range.end)
            message = f"'{variable.name}' is used in a construct with default(none), and no clause names it"
            raise Refused(place, message, (made.place, "the construct"))


def _within(inner: Range, outer: Range) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
