"""Lowers OpenACC's data directives: each variable of a clause is a pwx_data, each directive a call.

If a process computes on its CPUs, host and device memory are the same, and the calls return at once.
"""

from __future__ import annotations

from collections.abc import Callable

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import memory, rows
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.data_clauses import (
    KINDS,
    clauses_of,
    condition,
    list_of,
    names,
    queue_of,
    waits,
)
from peerway_xacc.lowering.unit import Unit

_UPDATES = {"host": "host", "self": "host", "device": "device"}


def executable(unit: Unit, directive: d.Acc) -> None:
    """Lower a directive without a statement.

    These are enter data, exit data, update, wait, declare, set, init and shutdown.
    """
    unit.output.on_gpu = True
    lowering = _LOWERED.get(directive.construct)
    lines = lowering(unit, directive) if lowering else []
    if lines:
        before = waits(directive) if directive.construct != "wait" else []
        test = condition(directive)
        guard = f"if ({test}) " if test else ""
        unit.put(directive, [f"{guard}{{ {' '.join([*before, *lines])} }}"])
        unit.explain(directive, f"acc {directive.construct}: {', '.join(names(directive)) or 'all queues'}")


def _tail(directive: d.Acc) -> str:
    """The last arguments of a call: queue and place."""
    return f"{queue_of(directive)}, {where(directive)});"


def _enter(unit: Unit, directive: d.Acc) -> list[str]:
    parts = clauses_of(unit, directive)
    if not parts:
        return []
    tail, all_rows = _tail(directive), rows.of(unit, directive, KINDS)
    return [
        *(row.filled for row in all_rows),
        f"pwx_enter_data({list_of(parts)}, {tail}",
        *(row.call("pwx_enter_data", tail) for row in all_rows),
        *(row.attached for row in all_rows),
    ]


def _exit(unit: Unit, directive: d.Acc) -> list[str]:
    parts = clauses_of(unit, directive)
    if not parts:
        return []
    tail = f"{int(bool(directive.all('finalize')))}, {_tail(directive)}"
    all_rows = rows.of(unit, directive, KINDS)
    return [
        *(row.filled for row in all_rows),
        *(row.call("pwx_exit_data", tail) for row in all_rows),
        f"pwx_exit_data({list_of(parts)}, {tail}",
    ]


def _update(unit: Unit, directive: d.Acc) -> list[str]:
    lines: list[str] = []
    tail = f"{int(bool(directive.all('if_present')))}, {_tail(directive)}"
    for clause in directive.clauses:
        if clause.name not in _UPDATES:
            continue
        to = _UPDATES[clause.name]
        for row in rows.of(unit, directive, {clause.name: "PRESENT"}):
            lines += [row.filled, row.call(f"pwx_update_{to}", tail)]
        parts = {
            section: memory.part(unit, directive, section)
            for section in clause.sections
            if memory.row_parts(unit, directive, section) is None
        }
        whole = [
            memory.described(unit, directive, section, "PRESENT") for section in parts if not parts[section]
        ]
        if whole:
            lines.append(f"pwx_update_{to}({list_of(whole)}, {tail}")
        for section, part in parts.items():
            if part:
                name = quoted(section.name.text)
                lines.append(f"pwx_update_part({int(to == 'device')}, {part}, {name}, {tail}")
    return lines


def _wait(_unit: Unit, directive: d.Acc) -> list[str]:
    numbers = [argument.text for clause in directive.all("queues") for argument in clause.arguments]
    queues = f"{len(numbers)}, (const long[]){{{', '.join(numbers)}}}" if numbers else "0, 0"
    return [f"pwx_acc_wait({queues}, {_tail(directive)}"]


def _init_or_shutdown(unit: Unit, directive: d.Acc) -> list[str]:
    device_type(directive)
    unit.explain(directive, f"acc {directive.construct}: nothing to do; the first use opens the device")
    return []


_DEVICES = {"*": 1, "default": 1, "host": 2, "multicore": 2, "not_host": 4, "nvidia": 5}


def device_type(directive: d.Acc) -> int:
    """The acc_device_t for the clause device_type, or for the default device."""
    for clause in directive.all("device_type", "dtype"):
        if clause.modifier.lower() not in _DEVICES:
            known = ", ".join(_DEVICES)
            raise Refused(clause.place, f"unknown device type '{clause.modifier}'; there are {known}")
        return _DEVICES[clause.modifier.lower()]
    return 1


def _set(_unit: Unit, directive: d.Acc) -> list[str]:
    def pointer(kind: str, name: str) -> str:
        text = [clause.expression.text for clause in directive.all(name) if clause.expression]
        return f"&(const {kind}){{{text[0]}}}" if text else "0"

    number, queue = pointer("int", "device_num"), pointer("long", "default_async")
    return [f"pwx_acc_set({device_type(directive)}, {number}, {queue}, {where(directive)});"]


def _declare(unit: Unit, directive: d.Acc) -> list[str]:
    parts = clauses_of(unit, directive)
    if not parts:
        return []
    tail = f"PWX_QUEUE_SYNC, {where(directive)});"
    of_rows = rows.of(unit, directive, KINDS)
    if unit.function_of(directive) is None:
        if of_rows:
            raise Refused(
                directive.place,
                "acc declare outside functions names rows, whose pointers are not set before main; name them "
                "in enter data, behind what sets them",
            )
        unit.output.setup_last.append(f"pwx_enter_data({list_of(parts)}, {tail}")
        return []
    # In a function, the data stays until the enclosing block ends, however it is left.
    name = unit.output.new_name("declared")
    unit.put(directive, [
        f"const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"__attribute__((cleanup(pwx_declared_end))) pwx_declared {name} = "
        f"{{{len(parts)}, {name}__list, {where(directive)}}}; "
        f"pwx_enter_data({len(parts)}, {name}__list, {tail}",
        *(f"{row.filled} {row.declared(where(directive))} {row.call('pwx_enter_data', tail)} {row.attached}"
          for row in of_rows),
    ])  # fmt: skip
    unit.explain(directive, f"acc declare: {', '.join(names(directive))}, until this block ends")
    return []


_LOWERED: dict[str, Callable[[Unit, d.Acc], list[str]]] = {
    "enter data": _enter,
    "exit data": _exit,
    "update": _update,
    "wait": _wait,
    "declare": _declare,
    "set": _set,
    "init": _init_or_shutdown,
    "shutdown": _init_or_shutdown,
}
