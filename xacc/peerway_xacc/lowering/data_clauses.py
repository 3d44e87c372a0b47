"""Writes the clauses of OpenACC's data and compute directives as C: kinds, queues, conditions, sections."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Clause
from peerway_xacc.frontend.source import Variable
from peerway_xacc.lowering import memory
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit

_COPIES = {
    "copy": "COPY", "copyin": "COPYIN", "copyout": "COPYOUT", "create": "CREATE", "no_create": "NO_CREATE",
    "present": "PRESENT", "delete": "DELETE",
}  # fmt: skip


KINDS = {
    **_COPIES,
    **{f"p{name}": kind for name, kind in _COPIES.items() if kind in ("COPY", "COPYIN", "COPYOUT", "CREATE")},
    **{
        f"present_or_{name}": kind
        for name, kind in _COPIES.items()
        if kind in ("COPY", "COPYIN", "COPYOUT", "CREATE")
    },
}


def kind_of(clause: Clause) -> str:
    """A data clause's constant of pwx_data_kind, without the prefix."""
    return KINDS[clause.name] + ("_ZERO" if clause.modifier == "zero" else "")


def queue_of(directive: d.Acc) -> str:
    """The queue of a directive's async clause, as C text."""
    clauses = directive.all("async")
    if not clauses:
        return "PWX_QUEUE_SYNC"
    arguments = clauses[0].arguments
    return f"({arguments[0].text})" if arguments else "PWX_QUEUE_DEFAULT"


def condition(*directives: d.Acc) -> str:
    """The condition under which work runs on a GPU (clauses `if` and `self`), as C text; empty without them.

    In an update, `self` names variables instead.
    """
    tests = []
    for directive in directives:
        tests += [f"({clause.expression.text})" for clause in directive.all("if") if clause.expression]
        for clause in directive.all("self") if directive.construct != "update" else ():
            tests.append(f"!({clause.arguments[0].text})" if clause.arguments else "0")
    return " && ".join(tests)


def condition_text(unit: Unit, *directives: d.Acc) -> str:
    """The condition for compute constructs.

    If one was evaluated at its construct's start, its variable is used.
    """
    tests = [unit.data.conditions.get(directive.start) or condition(directive) for directive in directives]
    return " && ".join(dict.fromkeys(test for test in tests if test))


def waits(directive: d.Acc) -> list[str]:
    """The calls for the clause `wait`: the directive's queue continues after these queues."""
    lines = []
    for clause in directive.all("wait"):
        numbers = ", ".join(argument.text for argument in clause.arguments)
        which = f"{len(clause.arguments)}, (const long[]){{{numbers}}}" if numbers else "0, 0"
        lines.append(f"pwx_acc_wait({which}, {queue_of(directive)}, {where(directive)});")
    return lines


def list_of(parts: list[str]) -> str:
    """The number and the array of these pwx_data, as arguments of a call."""
    return f"{len(parts)}, (const pwx_data[]){{{', '.join(parts)}}}"


def clauses_of(unit: Unit, directive: d.Acc) -> list[str]:
    """The pwx_data of all data clauses of a directive, as C text."""
    return [
        memory.described(unit, directive, section, kind_of(clause))
        for clause in directive.clauses
        if clause.name in KINDS
        for section in clause.sections
    ]


def around(unit: Unit, variable: Variable, regions: list[d.Acc]) -> str:
    """The pwx_data that the innermost data construct around has for a variable, as C text.

    It describes the section with the bounds that it had at the construct's start. Empty if no construct names
    the variable, or one names all of it.
    """
    for directive in reversed(regions):
        named = [
            section for clause in directive.clauses if clause.name in KINDS for section in clause.sections
        ]
        for number, section in enumerate(named):
            if unit.syntax.variable(section.name.text, directive.file, directive.start) is variable:
                known = (
                    directive.start in unit.data.lists
                    and section.parts
                    and not unit.scopes.of_variable(variable)
                )
                return f"{unit.data.lists[directive.start]}[{number}]" if known else ""
    return ""


def names(directive: d.Acc) -> list[str]:
    return [name.text for clause in directive.clauses for name in clause.variables]
