"""Lowers OpenACC's data directives: each variable of a clause is a pwx_data, each directive a call.

If a process computes on its CPUs, host and device memory are the same. The calls then count what is present
if a file has clauses with zero, and otherwise return at once.
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
from peerway_xacc.lowering.table import Lowering, StandsAlone
from peerway_xacc.lowering.unit import Unit

_UPDATES = {"host": "host", "self": "host", "device": "device"}


def _calls(lines_of: Callable[[Unit, d.Acc], list[str]]) -> StandsAlone:
    """The entry of a directive that becomes the calls in these lines, behind its clauses if and wait."""

    def lower(unit: Unit, directive: d.Acc) -> None:
        unit.output.on_gpu = True
        lines = lines_of(unit, directive)
        if not lines:
            return
        before = waits(directive)
        test = condition(directive)
        guard = f"if ({test}) " if test else ""
        unit.put(directive, [f"{guard}{{ {' '.join([*before, *lines])} }}"])
        unit.explain(directive, f"{directive.spelling}: {', '.join(names(directive)) or 'all queues'}")

    return StandsAlone(lower)


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


def init_or_shutdown(unit: Unit, directive: d.Acc) -> None:
    """Lower `acc init` or `acc shutdown`, which only have their clauses checked."""
    unit.output.on_gpu = True
    device_type(directive)
    unit.explain(directive, f"acc {directive.construct}: nothing to do; the first use opens the device")


def nothing(unit: Unit, _directive: d.Acc) -> None:
    """Lower `acc routine` or `acc cache`, from which no call follows."""
    unit.output.on_gpu = True


_DEVICES = {"*": 1, "default": 1, "host": 2, "multicore": 2, "not_host": 4, "nvidia": 5, "radeon": 8}


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
        values = [clause.expression.text for clause in directive.all(name) if clause.expression]
        return f"&(const {kind}){{{values[0]}}}" if values else "0"

    number, queue = pointer("int", "device_num"), pointer("long", "default_async")
    return [f"pwx_acc_set({device_type(directive)}, {number}, {queue}, {where(directive)});"]


def declare(unit: Unit, directive: d.Acc) -> None:
    """Lower `acc declare`."""
    unit.output.on_gpu = True
    parts = clauses_of(unit, directive)
    if not parts:
        return
    tail = f"PWX_QUEUE_SYNC, {where(directive)});"
    all_rows = rows.of(unit, directive, KINDS)
    if unit.function_of(directive) is None:
        if all_rows:
            raise Refused(
                directive.place,
                "acc declare outside functions names rows, whose pointers are not set before main; name them "
                "in enter data, behind what sets them",
            )
        unit.output.setup_last.append(f"pwx_enter_data({list_of(parts)}, {tail}")
        return
    # In a function, the data stays until the enclosing block ends, however it is left.
    name = unit.output.new_name("declared")
    unit.put(directive, [
        f"const pwx_data {name}__list[] = {{{', '.join(parts)}}}; "
        f"__attribute__((cleanup(pwx_declared_end))) pwx_declared {name} = "
        f"{{{len(parts)}, {name}__list, {where(directive)}}}; "
        f"pwx_enter_data({len(parts)}, {name}__list, {tail}",
        *(f"{row.filled} {row.declared(where(directive))} {row.call('pwx_enter_data', tail)} {row.attached}"
          for row in all_rows),
    ])  # fmt: skip
    unit.explain(directive, f"acc declare: {', '.join(names(directive))}, until this block ends")


LOWERINGS: dict[str, Lowering] = {
    "acc enter data": _calls(_enter),
    "acc exit data": _calls(_exit),
    "acc update": _calls(_update),
    "acc wait": _calls(_wait),
    "acc set": _calls(_set),
    "acc init": StandsAlone(init_or_shutdown),
    "acc shutdown": StandsAlone(init_or_shutdown),
    "acc declare": StandsAlone(declare, host=False),
    "acc routine": StandsAlone(nothing, host=False),
    "acc cache": StandsAlone(nothing, host=False),
}
