"""Communication of values: reduction and bcast, whose variables come to C with their type and size."""

from __future__ import annotations

from peerway_xacc.analysis.paths import Transfer
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Name
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import reflects
from peerway_xacc.lowering.c_text import reference, where
from peerway_xacc.lowering.loops import text_of
from peerway_xacc.lowering.types import OPERATORS


def reduction(unit: FortranUnit, directive: d.Reduction) -> None:
    """Values of all nodes become one, everywhere."""
    _check_acc(unit, directive)
    on = reference(unit, directive.on, directive)
    scope = unit.scope_of(directive)
    for operand in directive.reduced:
        name = operand.name.text
        operator = OPERATORS[operand.operator]
        array = unit.array_at(name, scope)
        if array:
            _not_with_acc(directive)
            kind = f"pwx_f_type(c0, {operator}, {quoted(name)}, {where(directive)})"
            line = f"pwx_reduce_array({on}, {operator}, {kind}, {array.address}, {where(directive)});"
        else:
            line = f"pwx_f_reduce({on}, {operator}, c0, {quoted(name)}, {where(directive)});"
            kind = f"pwx_f_type(c0, {operator}, {quoted(name)}, {where(directive)})"
            device = f"pwx_reduce_device({on}, {operator}, {kind}, at, pwx_f_count(c0), {where(directive)});"
            line = _on_device(directive, line, device) if directive.accelerator else line
        _value(unit, directive, "reduce", line, operand.name)
        unit.communicates(directive, f"reduction of {name}", Transfer("messages", "put"))
    names = ", ".join(operand.name.text for operand in directive.reduced)
    unit.explain(directive, f"reduction of {names} over {text_of(directive.on)}")


def bcast(unit: FortranUnit, directive: d.Bcast) -> None:
    """The values of one node go to all."""
    _check_acc(unit, directive)
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
            _on_device(directive, line, device) if directive.accelerator else line,
            name,
        )
        unit.communicates(directive, f"bcast of {name.text}", Transfer("messages", "put"))


def reflect(unit: FortranUnit, directive: d.Reflect) -> None:
    """reflect, reflect_init, reflect_do; reduce_shadow, whose arrays bring their types."""
    _check_acc(unit, directive)
    if directive.kind != "reduce_shadow":
        reflects.reflect(unit, directive)
        return
    _not_with_acc(directive)
    if directive.orthogonal or directive.asynchronous:
        message = "the clauses orthogonal and async of reduce_shadow are not supported yet"
        raise Refused(directive.place, message)
    widths = reflects.widths_of(directive)
    for name, array in zip(directive.arrays, reflects.reflected(unit, directive), strict=True):
        kind = f"pwx_f_type(c0, PWX_SUM, {quoted(name.text)}, {where(directive)})"
        line = f"pwx_reduce_shadow({array.address}, {kind}, {widths}, {where(directive)});"
        _value(unit, directive, "reduce_shadow", line, name)
    unit.explain(directive, f"reduce_shadow {', '.join(name.text for name in directive.arrays)}")


def _value(unit: FortranUnit, directive: d.Directive, kind: str, line: str, name: Name) -> None:
    arguments = unit.reads[id(directive)].arguments
    call = call_of(unit, kind, [line], arguments, directive)
    call.others.insert(0, ("any", name.text))
    unit.generated.before(unit.number_of(directive), unit.generated.call(unit.scope_of(directive), call))


def _on_device(directive: d.Directive, host: str, device: str) -> str:
    """A call about the copy that another OpenACC compiler has on a GPU; where that has none, the host's."""
    wait = f"pwx_acc_wait(0, 0, PWX_QUEUE_SYNC, {where(directive)});"
    return (
        f"{{ void* const at = (acc_wait_all(), acc_deviceptr(c0->base_addr)); "
        f"if (at == c0->base_addr || at == NULL) {host} else {{ {device} {wait} }} }}"
    )


def _check_acc(unit: FortranUnit, directive: d.Communication) -> None:
    if directive.accelerator and not unit.foreign_acc:
        message = "the clause acc needs the compiler of the acc directives, as in --openacc-backend=gfortran"
        raise Refused(directive.place, message)


def _not_with_acc(directive: d.Communication) -> None:
    if directive.accelerator:
        raise Refused(
            directive.place, "the clause acc is not supported in Fortran yet; copy to the host first"
        )
