"""The data directives of OpenACC: what each clause names becomes a pwx_data, and each directive one call.

Where a process computes on its CPUs host and device memory are one, and the calls return at once.
"""

from __future__ import annotations

from peerway.cc import directives as d
from peerway.cc.diagnostics import Refused
from peerway.cc.generated import quoted, where
from peerway.cc.source import Variable
from peerway.cc.unit import Stack, Unit

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
_UPDATES = {"host": "host", "self": "host", "device": "device"}


def queue_of(made: d.Acc) -> str:
    """The queue that a directive names, as C text."""
    clauses = made.all("async")
    if not clauses:
        return "PWX_QUEUE_SYNC"
    arguments = clauses[0].arguments
    return f"({arguments[0].text})" if arguments else "PWX_QUEUE_DEFAULT"


def condition(made: d.Acc) -> str:
    """What the clause `if` asks, as C text before a statement."""
    clauses = made.all("if")
    expression = clauses[0].expression if clauses else None
    return f"if ({expression.text}) " if expression else ""


def waits(made: d.Acc) -> list[str]:
    """The clause `wait`: the directive's own queue goes on after others."""
    lines = []
    for clause in made.all("wait"):
        numbers = ", ".join(argument.text for argument in clause.arguments)
        which = f"{len(clause.arguments)}, (const long[]){{{numbers}}}" if numbers else "0, 0"
        lines.append(f"pwx_acc_wait({which}, {queue_of(made)}, {where(made)});")
    return lines


def bytes_of(variable: Variable, name: str) -> str:
    """How many bytes all of a variable has, as C text; 0 where only the run time can know."""
    if variable.pointee is not None:
        return "0"
    if not variable.parameter or not variable.sizes:
        return f"sizeof({name})"
    if variable.sizes[0] is None:
        return "0"
    return f"{variable.sizes[0]} * sizeof({name}[0])"


def described(unit: Unit, made: d.Acc, section: d.Section, kind: str) -> str:
    """The initialiser of a pwx_data."""
    name = section.name.text
    variable = unit.syntax.variable(name, made.file, made.start)
    if variable is None:
        raise Refused(section.name.place, f"'{name}' is not declared")
    if section.member:
        raise Refused(
            section.name.place, f"a member of '{name}' in a data clause is not supported yet; name a variable"
        )
    array = unit.scopes.of_variable(variable)
    if array:
        return f"{{PWX_DATA_{kind}, {quoted(name)}, {array.address}, 0, 0}}"
    if section.length is None and section.first is None:
        address = name if variable.sizes or variable.pointee is not None else f"&{name}"
        return f"{{PWX_DATA_{kind}, {quoted(name)}, 0, (void *){address}, {bytes_of(variable, name)}}}"
    first = section.first.text if section.first else "0"
    if section.length is not None:
        count = f"({section.length.text})"
    elif variable.sizes and variable.sizes[0] is not None:
        count = f"({variable.sizes[0]} - ({first}))"
    else:
        raise Refused(
            section.name.place, f"the length of this section of '{name}' is not known; write [{first}:length]"
        )
    return f"{{PWX_DATA_{kind}, {quoted(name)}, 0, (void *)&{name}[{first}], {count} * sizeof({name}[0])}}"


def list_of(parts: list[str]) -> str:
    """The count and the array of several, as arguments of a call."""
    return f"{len(parts)}, (const pwx_data[]){{{', '.join(parts)}}}"


def clauses_of(unit: Unit, made: d.Acc) -> list[str]:
    """The data clauses of a directive."""
    return [
        described(unit, made, section, KINDS[clause.name])
        for clause in made.clauses
        if clause.name in KINDS
        for section in clause.sections
    ]


def executable(unit: Unit, made: d.Acc) -> None:
    """A directive without a statement: enter data, exit data, update, wait, declare."""
    unit.on_gpu = True
    lines: list[str] = []
    tail = f"{queue_of(made)}, {where(made)});"
    if made.construct in ("enter data", "exit data"):
        parts = clauses_of(unit, made)
        call = "pwx_enter_data" if made.construct == "enter data" else "pwx_exit_data"
        finalize = f"{int(bool(made.all('finalize')))}, " if made.construct == "exit data" else ""
        if parts:
            lines.append(f"{call}({list_of(parts)}, {finalize}{tail}")
    elif made.construct == "update":
        optional = int(bool(made.all("if_present")))
        for clause in made.clauses:
            if clause.name in _UPDATES:
                parts = [described(unit, made, section, "PRESENT") for section in clause.sections]
                lines.append(f"pwx_update_{_UPDATES[clause.name]}({list_of(parts)}, {optional}, {tail}")
    elif made.construct == "wait":
        numbers = [argument.text for clause in made.all("queues") for argument in clause.arguments]
        which = f"{len(numbers)}, (const long[]){{{', '.join(numbers)}}}" if numbers else "0, 0"
        lines.append(f"pwx_acc_wait({which}, {tail}")
    elif made.construct == "declare":
        _declare(unit, made)
    if lines:
        before = waits(made) if made.construct != "wait" else []
        unit.put(made, [f"{condition(made)}{{ {' '.join([*before, *lines])} }}"])
        unit.explain(made, f"acc {made.construct}: {', '.join(_names(made)) or 'all queues'}")


def _names(made: d.Acc) -> list[str]:
    return [name.text for clause in made.clauses for name in clause.variables]


def _declare(unit: Unit, made: d.Acc) -> None:
    parts = clauses_of(unit, made)
    if not parts:
        return
    call = f"pwx_enter_data({list_of(parts)}, PWX_QUEUE_SYNC, {where(made)});"
    if unit.function_of(made) is None:
        unit.setup_last.append(call)
    elif any("PWX_DATA_PRESENT" not in part for part in parts):
        raise Refused(
            made.place, "acc declare in a function, other than present, is not supported yet; use acc data"
        )


def region(unit: Unit, stack: Stack, made: d.Acc) -> None:
    """`acc data` and `acc host_data` with their statement."""
    unit.on_gpu = True
    if made.construct == "host_data":
        _host_data(unit, stack, made)
        return
    parts = clauses_of(unit, made)
    if not parts:
        return
    name, asked = unit.new_name("data"), unit.new_name("asked")
    call = f"(&{name}, {len(parts)}, {name}__list, {queue_of(made)}, {where(made)});"
    test = made.all("if")
    when = f"{test[0].expression.text}" if test and test[0].expression else "1"
    stack.before.append(
        f"{{ static pwx_data_region {name}; const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"const int {asked} = ({when}) != 0; {' '.join(waits(made))} if ({asked}) pwx_data_begin{call}"
    )
    unit.edits.behind(stack.statement.end, f" if ({asked}) pwx_data_end{call} }}")
    unit.explain(made, f"acc data: {', '.join(_names(made))}")


def _host_data(unit: Unit, stack: Stack, made: d.Acc) -> None:
    """Within the statement the names stand for the addresses on the GPU."""
    opened = []
    for section in made.named("use_device"):
        name = section.name.text
        variable = unit.syntax.variable(name, made.file, made.start)
        if variable is None:
            raise Refused(section.name.place, f"'{name}' is not declared")
        if not variable.sizes and variable.pointee is None:
            raise Refused(section.name.place, f"'{name}' is no array and no pointer, which use_device needs")
        known = unit.new_name("known")
        array = unit.scopes.of_variable(variable)
        if array:
            found = f"pwx_device_array(&{known}, {array.address}, {where(made)})"
        else:
            found = f"pwx_device(&{known}, (const void *){name}, {quoted(name)}, {where(made)})"
        kind = f"__typeof__(&{name}[0])"
        opened.append(
            f"static pwx_known {known}; {kind} {known}__at = pwx_gpu() ? ({kind}){found} : &{name}[0]; "
            f"{{ {kind} {name} = {known}__at;"
        )
    condition_text = condition(made)
    if condition_text:
        raise Refused(made.place, "the clause if of acc host_data is not supported yet")
    stack.before.append("{ " + " ".join(opened))
    unit.edits.behind(stack.statement.end, " }" * (len(opened) + 1))
    unit.explain(made, f"acc host_data: {', '.join(_names(made))}")
