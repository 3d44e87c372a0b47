"""lock and unlock: of an element of a coarray of locks, at an image."""

from __future__ import annotations

from peerway_xacc.analysis.unit import Unit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.shapes import sizes_of


def lock(unit: Unit, made: d.Lock) -> None:
    """One of both directives."""
    assert made.name is not None
    name = made.name.text
    variable = unit.syntax.variable(name, made.file, made.start)
    descriptor = unit.coarrays.get(id(variable))
    if variable is None or descriptor is None or variable.element.split()[-1] != "xmp_lock_t":
        raise Refused(
            made.name.place, f"'{name}' is no coarray of xmp_lock_t; declare 'xmp_lock_t {name}:[*];'"
        )
    if len(made.subscripts) != len(variable.sizes):
        raise Refused(
            made.name.place,
            f"'{name}' has {counted(len(variable.sizes), 'dimension')}, "
            f"and {counted(len(made.subscripts), 'subscript')} here",
        )
    element = "0"
    for size, subscript in zip(
        sizes_of(unit, variable) if variable.sizes else [], made.subscripts, strict=True
    ):
        element = f"({element}) * ({size}) + ({subscript.text})"
    image = made.image.text if made.image else "xmpc_this_image()"
    which = f"&{descriptor}, {element}, {image}"
    status = f"{made.status.text} = " if made.status else ""
    fails = int(made.status is not None)
    if made.kind == "unlock":
        call = f"{status}pwx_unlock({which}, {fails}, {where(made)});"
    else:
        acquired = f"&({made.acquired.text})" if made.acquired else "0"
        call = f"{status}pwx_lock({which}, {acquired}, {fails}, {where(made)});"
    unit.put(made, [call])
    unit.explain(made, f"{made.kind} {name} at {f'image {image}' if made.image else 'this image'}")
