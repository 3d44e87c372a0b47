"""Lowers lock and unlock of an element of a coarray of locks at an image."""

from __future__ import annotations

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.shapes import sizes_of
from peerway_xacc.lowering.table import Lowering, StandsAlone
from peerway_xacc.lowering.unit import Unit


def lock(unit: Unit, directive: d.Lock) -> None:
    """Lower `lock` or `unlock`."""
    assert directive.name is not None
    name = directive.name.text
    variable = unit.syntax.variable(name, directive.file, directive.start)
    descriptor = unit.coarrays.names.get(id(variable))
    if variable is None or descriptor is None or variable.element.split()[-1] != "xmp_lock_t":
        raise Refused(
            directive.name.place, f"'{name}' is no coarray of xmp_lock_t; declare 'xmp_lock_t {name}:[*];'"
        )
    if len(directive.subscripts) != len(variable.sizes):
        raise Refused(
            directive.name.place,
            f"'{name}' has {counted(len(variable.sizes), 'dimension')}, "
            f"and {counted(len(directive.subscripts), 'subscript')} here",
        )
    element = "0"
    for size, subscript in zip(
        sizes_of(unit, variable) if variable.sizes else [], directive.subscripts, strict=True
    ):
        element = f"({element}) * ({size}) + ({subscript.text})"
    image = directive.image.text if directive.image else "xmpc_this_image()"
    which = f"&{descriptor}, {element}, {image}"
    status = f"{directive.status.text} = " if directive.status else ""
    fails = int(directive.status is not None)
    if directive.kind == "unlock":
        call = f"{status}pwx_unlock({which}, {fails}, {where(directive)});"
    else:
        acquired = f"&({directive.acquired.text})" if directive.acquired else "0"
        call = f"{status}pwx_lock({which}, {acquired}, {fails}, {where(directive)});"
    unit.put(directive, [call])
    unit.explain(
        directive, f"{directive.kind} {name} at {f'image {image}' if directive.image else 'this image'}"
    )


LOWERINGS: dict[str, Lowering] = {
    "xmp lock": StandsAlone(lock),
    "xmp unlock": StandsAlone(lock),
}
