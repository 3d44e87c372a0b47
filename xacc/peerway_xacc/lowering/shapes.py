"""Writes a distributed array's size, alignment and shadow as C text, and the pointer to it."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.lowering.c_text import numbers
from peerway_xacc.lowering.unit import Unit


def description(unit: Unit, array: DistributedArray) -> str:
    """The arguments that describe an array to the run-time library."""
    assert array.variable is not None
    assert array.template is not None
    rank = len(array.variable.sizes)
    sizes = "" if array.variable.pointee is not None else f"{numbers(sizes_of(unit, array.variable))}, "
    dims = numbers([str(aligned[0]) if aligned else "-1" for aligned in array.dimensions], "int")
    offsets = numbers([aligned[1] if aligned else "0" for aligned in array.dimensions])
    lower = numbers([array.shadow(dimension)[0] for dimension in range(rank)])
    upper = numbers([array.shadow(dimension)[1] for dimension in range(rank)])
    return (
        f'"{array.name}", sizeof({element(array)}), {rank}, '
        f"{sizes}{array.template.address}, {dims}, {offsets}, {lower}, {upper}"
    )


def sizes_of(unit: Unit, variable: Variable) -> list[str]:
    """The sizes of an array's dimensions as C text; 0 for a parameter's first dimension if it is unknown."""
    text = unit.texts.of(variable.file).text
    spans = scan(text, variable.declarator.start, variable.declarator.end)
    written: list[str] = []
    depth = 0
    for number, span in enumerate(spans):
        if span.text == "[" and depth == 0:
            start = number + 1
        depth += (span.text == "[") - (span.text == "]")
        if span.text == "]" and depth == 0:
            inner = [part for part in spans[start:number] if part.text not in ("restrict", "const", "static")]
            written.append(text[inner[0].start : inner[-1].end] if inner else "")
    if variable.parameter and (len(spans) < 2 or spans[1].text != "["):  # `*v` or `(*v)[3]`
        written.insert(0, "")
    sizes = []
    for dimension, size in enumerate(variable.sizes):
        text_of_size = written[dimension] if dimension < len(written) else ""
        if size is None and not text_of_size and variable.parameter and dimension == 0:
            text_of_size = "0"
        if size is None and not text_of_size:
            place = unit.texts.of(variable.file).place(variable.declarator.start, variable.declarator.end)
            raise Refused(place, f"the size of dimension {dimension} of '{variable.name}' must be written")
        sizes.append(str(size) if size is not None else text_of_size)
    return sizes


def shape(array: DistributedArray, name: str, qualifier: str) -> str:
    """The declaration, without initial value, of a pointer through which subscripts reach the array."""
    assert array.variable is not None
    rank = len(array.variable.sizes)
    if rank == 1:
        return f"*{qualifier}{name}"
    extents = []
    for dimension in range(1, rank):
        known = array.extent(dimension)
        extents.append(f"[{known}]" if known is not None else f"[{array.descriptor}.ld[{dimension}]]")
    return f"(*{qualifier}{name}){''.join(extents)}"


def access(array: DistributedArray) -> str:
    """The expression that the subscripts follow, as C text.

    A pointer for xmp_malloc has the strides of whole rows; if a node's memory has others, it is cast.
    """
    assert array.variable is not None
    if array.variable.pointee is None:
        return array.symbol
    if has_whole_rows(array):
        return array.name
    rows = "".join(f"[{array.descriptor}.ld[{d}]]" for d in range(1, len(array.dimensions)))
    return f"((__typeof__({element(array)}) (*){rows}){array.name})"


def has_whole_rows(array: DistributedArray) -> bool:
    """Does a node's memory have all dimensions after the first as the program declares them?"""
    return all(
        array.kind_of(dimension) == "*" and array.shadow_values(dimension) == (0, 0)
        for dimension in range(1, len(array.dimensions))
    )


def check_extents(array: DistributedArray, array_size: str) -> list[str]:
    """Calls that compare the extents written as numbers with those of the run-time library."""
    assert array.variable is not None
    lines = []
    for dimension in range(1, len(array.variable.sizes)):
        known = array.extent(dimension)
        if known is not None and array.kind_of(dimension) != "*":
            lines.append(f"pwx_array_expect({array.address}, {dimension}, {known}, {array_size});")
    return lines


def element(array: DistributedArray) -> str:
    """An expression for an element, as C text; only its type matters."""
    assert array.variable is not None
    if array.variable.parameter or array.variable.pointee is not None:
        return array.memory + "[0]" * len(array.variable.sizes)
    return f"*{array.memory}"
