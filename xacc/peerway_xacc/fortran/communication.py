"""Communication of values: reduction and bcast, whose variables come to C with their type and size."""

from __future__ import annotations

from peerway_xacc.analysis.explained_paths import Transfer
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Name
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import reflects
from peerway_xacc.lowering.c_text import reference, where
from peerway_xacc.lowering.communication import through_host
from peerway_xacc.lowering.loops import text_of
from peerway_xacc.lowering.types import OPERATORS


def reduction(unit: FortranUnit, directive: d.Reduction) -> None:
    """Values of all nodes become one, everywhere."""
    on = reference(unit, directive.on, directive)
    scope = unit.scope_of(directive)
    for operand in directive.reduced:
        name = operand.name.text
        operator = OPERATORS[operand.operator]
        array = unit.array_at(name, scope)
        if array:
            kind = f"pwx_f_type(c0, {operator}, {quoted(name)}, {where(directive)})"
            line = f"pwx_reduce_array({on}, {operator}, {kind}, {array.address}, {where(directive)});"
            line = _through_host(unit, directive, array, line)
        else:
            line = f"pwx_f_reduce({on}, {operator}, c0, {quoted(name)}, {where(directive)});"
            kind = f"pwx_f_type(c0, {operator}, {quoted(name)}, {where(directive)})"
            device = f"pwx_reduce_device({on}, {operator}, {kind}, at, pwx_f_count(c0), {where(directive)});"
            line = _on_device(unit, directive, line, device, name) if directive.accelerator else line
        _value(unit, directive, "reduce", line, operand.name)
        unit.communicates(directive, f"reduction of {name}", Transfer("messages", "put"))
    names = ", ".join(operand.name.text for operand in directive.reduced)
    unit.explain(directive, f"reduction of {names} over {text_of(directive.on)}")


def bcast(unit: FortranUnit, directive: d.Bcast) -> None:
    """The values of one node go to all."""
    on, source = reference(unit, directive.on, directive), reference(unit, directive.source, directive)
    for name in directive.names:
        if unit.array_at(name.text, unit.scope_of(directive)):
            raise Refused(
                name.place, f"'{name.text}' is a distributed array; bcast of it is not supported yet"
            )
        line = f"pwx_f_bcast({on}, {source}, c0, {where(directive)});"
        bytes_ = "pwx_f_count(c0) * c0->elem_len"
        device = f"pwx_bcast_device({on}, {source}, at, {bytes_}, {where(directive)});"
        _value(
            unit,
            directive,
            "bcast",
            _on_device(unit, directive, line, device, name.text) if directive.accelerator else line,
            name,
        )
        unit.communicates(directive, f"bcast of {name.text}", Transfer("messages", "put"))


def reflect(unit: FortranUnit, directive: d.Reflect) -> None:
    """reflect, reflect_init, reflect_do; reduce_shadow, whose arrays bring their types."""
    if directive.kind != "reduce_shadow":
        reflects.reflect(unit, directive)
        return
    widths = reflects.widths_of(directive)
    for name, array in zip(directive.arrays, reflects.reflected(unit, directive), strict=True):
        kind = f"pwx_f_type(c0, PWX_SUM, {quoted(name.text)}, {where(directive)})"
        line = reflects.reduce_shadow_call(directive, array, kind, widths)
        _value(unit, directive, "reduce_shadow", _through_host(unit, directive, array, line), name)
    unit.explain(directive, f"reduce_shadow {', '.join(name.text for name in directive.arrays)}")


def _value(unit: FortranUnit, directive: d.Directive, kind: str, line: str, name: Name) -> None:
    arguments = unit.reads[id(directive)].arguments
    call = call_of(unit, kind, [line], arguments, directive)
    call.others.insert(0, ("any", name.text))
    unit.generated.before(unit.number_of(directive), unit.generated.call(unit.scope_of(directive), call))


def _through_host(unit: FortranUnit, directive: d.Communication, array: DistributedArray, line: str) -> str:
    """A call about a distributed array; with acc its copy on a GPU comes to the host and goes back."""
    if not directive.accelerator:
        return line
    if unit.foreign_acc:
        message = (
            "the clause acc for a distributed array here is not supported with another OpenACC compiler; "
            "update the host's copy, and write the directive without acc"
        )
        raise Refused(directive.place, message)
    return through_host(unit, directive, [array], line)


def _on_device(unit: FortranUnit, directive: d.Directive, host: str, device: str, name: str) -> str:
    """A call about the copy of a variable on a GPU; where it has none there, the host's."""
    if unit.foreign_acc:
        known = "(acc_wait_all(), acc_deviceptr(c0->base_addr))"
    else:
        known = f"pwx_device_or_host(c0->base_addr, 0, {quoted(name)}, {where(directive)})"
        known = f"(pwx_gpu() ? {known} : c0->base_addr)"
    wait = f" pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)});" if unit.foreign_acc else ""
    return (
        f"{{ void* const at = {known}; "
        f"if (at == c0->base_addr || at == NULL) {host} else {{ {device}{wait} }} }}"
    )
