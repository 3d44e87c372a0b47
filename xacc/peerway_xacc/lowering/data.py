"""The data directives of OpenACC: what each clause names becomes a pwx_data, and each directive one call.

Where a process computes on its CPUs host and device memory are one, and the calls return at once.
"""

from __future__ import annotations

from dataclasses import replace

from peerway_xacc.analysis.unit import Stack, Unit
from peerway_xacc.frontend import clauses as phrases
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import memory, rows
from peerway_xacc.lowering.c_text import where

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


def kind_of(clause: phrases.Clause) -> str:
    """What a data clause does, as the end of its name in pwx_data_kind."""
    return KINDS[clause.name] + ("_ZERO" if clause.modifier == "zero" else "")


def queue_of(directive: d.Acc) -> str:
    """The queue that a directive names, as C text."""
    clauses = directive.all("async")
    if not clauses:
        return "PWX_QUEUE_SYNC"
    arguments = clauses[0].arguments
    return f"({arguments[0].text})" if arguments else "PWX_QUEUE_DEFAULT"


def condition(*directives: d.Acc) -> str:
    """What the clauses `if` and `self` ask before work goes to a GPU, as C text; nothing where none asks.

    Of update `self` names variables.
    """
    tests = []
    for directive in directives:
        tests += [f"({clause.expression.text})" for clause in directive.all("if") if clause.expression]
        for clause in directive.all("self") if directive.construct != "update" else ():
            tests.append(f"!({clause.arguments[0].text})" if clause.arguments else "0")
    return " && ".join(tests)


def condition_text(unit: Unit, *directives: d.Acc) -> str:
    """The same of compute constructs; one around loops asked where it began."""
    tests = [unit.conditions.get(directive.start) or condition(directive) for directive in directives]
    return " && ".join(dict.fromkeys(test for test in tests if test))


def waits(directive: d.Acc) -> list[str]:
    """The clause `wait`: the directive's own queue goes on after others."""
    lines = []
    for clause in directive.all("wait"):
        numbers = ", ".join(argument.text for argument in clause.arguments)
        which = f"{len(clause.arguments)}, (const long[]){{{numbers}}}" if numbers else "0, 0"
        lines.append(f"pwx_acc_wait({which}, {queue_of(directive)}, {where(directive)});")
    return lines


def list_of(parts: list[str]) -> str:
    """The count and the array of several, as arguments of a call."""
    return f"{len(parts)}, (const pwx_data[]){{{', '.join(parts)}}}"


def clauses_of(unit: Unit, directive: d.Acc) -> list[str]:
    """The data clauses of a directive."""
    return [
        memory.described(unit, directive, section, kind_of(clause))
        for clause in directive.clauses
        if clause.name in KINDS
        for section in clause.sections
    ]


def around(unit: Unit, variable: Variable, regions: list[d.Acc]) -> str:
    """The pwx_data that the innermost data construct around has of a variable, as C text: its section at the
    bounds that it began with. Nothing where none names the variable, or all of it.
    """
    for directive in reversed(regions):
        named = [
            section for clause in directive.clauses if clause.name in KINDS for section in clause.sections
        ]
        for number, section in enumerate(named):
            if unit.syntax.variable(section.name.text, directive.file, directive.start) is variable:
                known = (
                    directive.start in unit.data_lists
                    and section.parts
                    and not unit.scopes.of_variable(variable)
                )
                return f"{unit.data_lists[directive.start]}[{number}]" if known else ""
    return ""


def executable(unit: Unit, directive: d.Acc) -> None:  # noqa: C901
    """A directive without a statement: enter data, exit data, update, wait, declare."""
    unit.on_gpu = True
    lines: list[str] = []
    tail = f"{queue_of(directive)}, {where(directive)});"
    if directive.construct in ("enter data", "exit data"):
        parts = clauses_of(unit, directive)
        call = "pwx_enter_data" if directive.construct == "enter data" else "pwx_exit_data"
        finalize = f"{int(bool(directive.all('finalize')))}, " if directive.construct == "exit data" else ""
        if parts:
            of_rows = rows.of(unit, directive, KINDS)
            calls = [row_section.call(call, finalize + tail) for row_section in of_rows]
            tables = f"{call}({list_of(parts)}, {finalize}{tail}"
            lines += [row_section.filled for row_section in of_rows]
            lines += (
                [*calls, tables]
                if finalize
                else [tables, *calls, *(row_section.attached for row_section in of_rows)]
            )
    elif directive.construct == "update":
        optional = int(bool(directive.all("if_present")))
        for clause in directive.clauses:
            if clause.name in _UPDATES:
                to = _UPDATES[clause.name]
                for each in rows.of(unit, directive, {clause.name: "PRESENT"}):
                    lines += [each.filled, each.call(f"pwx_update_{to}", f"{optional}, {tail}")]
                some = {
                    section: memory.part(unit, directive, section)
                    for section in clause.sections
                    if memory.row_parts(unit, directive, section) is None
                }
                whole = [
                    memory.described(unit, directive, row_section, "PRESENT")
                    for row_section in some
                    if not some[row_section]
                ]
                if whole:
                    lines.append(f"pwx_update_{to}({list_of(whole)}, {optional}, {tail}")
                for section, part in some.items():
                    if part:
                        name = quoted(section.name.text)
                        lines.append(
                            f"pwx_update_part({int(to == 'device')}, {part}, {name}, {optional}, {tail}"
                        )
    elif directive.construct == "wait":
        numbers = [argument.text for clause in directive.all("queues") for argument in clause.arguments]
        which = f"{len(numbers)}, (const long[]){{{', '.join(numbers)}}}" if numbers else "0, 0"
        lines.append(f"pwx_acc_wait({which}, {tail}")
    elif directive.construct == "declare":
        _declare(unit, directive)
    elif directive.construct == "set":
        lines.append(_set(directive))
    elif directive.construct in ("init", "shutdown"):
        device_type(directive)
        unit.explain(directive, f"acc {directive.construct}: nothing to do; the first use opens the device")
    if lines:
        before = waits(directive) if directive.construct != "wait" else []
        test = condition(directive)
        guard = f"if ({test}) " if test else ""
        unit.put(directive, [f"{guard}{{ {' '.join([*before, *lines])} }}"])
        unit.explain(directive, f"acc {directive.construct}: {', '.join(_names(directive)) or 'all queues'}")


_DEVICES = {"*": 1, "default": 1, "host": 2, "multicore": 2, "not_host": 4, "nvidia": 5}


def device_type(directive: d.Acc) -> int:
    """The acc_device_t that device_type names, else that of the default."""
    for clause in directive.all("device_type", "dtype"):
        if clause.modifier.lower() not in _DEVICES:
            known = ", ".join(_DEVICES)
            raise Refused(clause.place, f"unknown device type '{clause.modifier}'; there are {known}")
        return _DEVICES[clause.modifier.lower()]
    return 1


def _set(directive: d.Acc) -> str:
    def pointer(kind: str, name: str) -> str:
        text = [clause.expression.text for clause in directive.all(name) if clause.expression]
        return f"&(const {kind}){{{text[0]}}}" if text else "0"

    number, queue = pointer("int", "device_num"), pointer("long", "default_async")
    return f"pwx_acc_set({device_type(directive)}, {number}, {queue}, {where(directive)});"


def _names(directive: d.Acc) -> list[str]:
    return [name.text for clause in directive.clauses for name in clause.variables]


def _declare(unit: Unit, directive: d.Acc) -> None:
    parts = clauses_of(unit, directive)
    if not parts:
        return
    tail = f"PWX_QUEUE_SYNC, {where(directive)});"
    of_rows = rows.of(unit, directive, KINDS)
    if unit.function_of(directive) is None:
        if of_rows:
            raise Refused(
                directive.place,
                "acc declare outside functions names rows, whose pointers are not set before main; name them "
                "in enter data, behind what sets them",
            )
        unit.setup_last.append(f"pwx_enter_data({list_of(parts)}, {tail}")
        return
    # In a function until the block ends that it stands in, by whichever way.
    name = unit.new_name("declared")
    unit.put(directive, [
        f"const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"__attribute__((cleanup(pwx_declared_end))) pwx_declared {name} = "
        f"{{{len(parts)}, {name}__list, {where(directive)}}}; "
        f"pwx_enter_data({len(parts)}, {name}__list, {tail}",
        *(f"{row.filled} {row.declared(where(directive))} {row.call('pwx_enter_data', tail)} {row.attached}"
          for row in of_rows),
    ])  # fmt: skip
    unit.explain(directive, f"acc declare: {', '.join(_names(directive))}, until this block ends")


def region(unit: Unit, stack: Stack, directive: d.Acc) -> None:
    """`acc data` and `acc host_data` with their statement."""
    unit.on_gpu = True
    if directive.construct == "host_data":
        _host_data(unit, stack, directive)
        return
    parts = clauses_of(unit, directive)
    if not parts:
        return
    name, condition_name = unit.new_name("data"), unit.new_name("asked")
    tail = f"{queue_of(directive)}, {where(directive)});"
    call = f"(&{name}, {len(parts)}, {name}__list, {tail}"
    of_rows = rows.of(unit, directive, KINDS)
    when = condition(directive) or "1"
    unit.data_lists[directive.start] = f"{name}__list"
    stack.before.append(
        f"{{ static pwx_data_region {name}; const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"const int {condition_name} = ({when}) != 0; "
        f"{' '.join([*waits(directive), *(row.filled for row in of_rows)])} "
        + " ".join(
            [
                f"if ({condition_name}) {{ pwx_data_begin{call}",
                *(row_section.begin(tail) for row_section in of_rows),
                "}",
            ]
        )
    )
    ends = " ".join([*(row_section.end(tail) for row_section in of_rows), f"pwx_data_end{call}"])
    unit.edits.behind(stack.statement.end, f" if ({condition_name}) {{ {ends} }} }}")
    unit.explain(directive, f"acc data: {', '.join(_names(directive))}")


def zeros(unit: Unit, stack: Stack, directive: d.Acc) -> None:
    """The clauses with zero of a compute construct, as those of a data construct around it: also where no
    kernel begins, they have their effect.
    """
    named = [clause for clause in directive.clauses if clause.modifier == "zero"]
    if named:
        region(
            unit,
            stack,
            replace(directive, construct="data", clauses=named + directive.all("async", "if", "self")),
        )
        unit.data_lists.pop(directive.start)  # it has not all that the construct names


def on_gpu(unit: Unit, directive: d.Acc) -> str:
    """Whether the names in a host_data are the GPU's, as C text within its statement."""
    if not condition(directive):
        return "pwx_gpu()"
    return unit.conditions.setdefault(directive.start, unit.new_name("asked"))


def _host_data(unit: Unit, stack: Stack, directive: d.Acc) -> None:
    """Within the statement the names stand for the addresses on the GPU."""
    opened = []
    guard = on_gpu(unit, directive)
    inside = stack.statement
    regions = [
        other for region, other in unit.acc_regions
        if region.start <= inside.start and inside.end <= region.end and other is not directive
    ]  # fmt: skip
    for section in directive.named("use_device"):
        name = section.name.text
        variable = unit.syntax.variable(name, directive.file, directive.start)
        if variable is None:
            raise Refused(section.name.place, f"'{name}' is not declared")
        if not variable.sizes and variable.pointee is None:
            raise Refused(section.name.place, f"'{name}' is no array and no pointer, which use_device needs")
        known = unit.new_name("known")
        array = unit.scopes.of_variable(variable)
        if directive.all("if_present"):
            at = f"0, {array.address}" if array else f"(const void *){name}, 0"
            text = f"pwx_device_or_host({at}, {quoted(name)}, {where(directive)})"
        elif array:
            text = f"pwx_device_array(&{known}, {array.address}, {where(directive)})"
        elif part := around(unit, variable, regions):  # what lies before the section need not be present
            text = f"pwx_device(&{known}, {part}.address, {quoted(name)}, {where(directive)})"
            text = f"((char *){text} - ((char *){part}.address - (char *){name}))"
        else:
            text = f"pwx_device(&{known}, (const void *){name}, {quoted(name)}, {where(directive)})"
        kind = f"__typeof__(&{name}[0])"
        opened.append(
            f"static __attribute__((unused)) pwx_known {known}; "
            f"{kind} {known}__at = {guard} ? ({kind}){text} : &{name}[0]; "
            f"{{ __attribute__((unused)) {kind} {name} = {known}__at;"
        )
    test, begin = condition(directive), "{ "
    if test:
        begin += f"const int {guard} = pwx_gpu() && {test}; "
    stack.before.append(begin + " ".join(opened))
    unit.edits.behind(stack.statement.end, " }" * (len(opened) + 1))
    unit.explain(directive, f"acc host_data: {', '.join(_names(directive))}")
