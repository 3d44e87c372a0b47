"""Finds uses of names inside a host_data, where they are addresses on the GPU."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Use
from peerway_xacc.lowering.unit import Unit


def is_on_device(unit: Unit, use: Use) -> bool:
    """Is a use inside a host_data that names its variable?"""
    if use.function.file != unit.file:
        return False
    for directive in unit.directives_in(use.function.body):
        if not isinstance(directive, d.Acc) or directive.construct != "host_data":
            continue
        statement = unit.syntax.statement_after(directive.file, directive.end, use.function)
        inside = statement is not None and statement.start <= use.range.start < statement.end
        for name in directive.named_variables("use_device") if inside else ():
            if unit.syntax.variable(name.text, directive.file, directive.start) is use.variable:
                return True
    return False
