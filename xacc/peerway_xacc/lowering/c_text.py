"""Writes small pieces of C: arrays of numbers, places of the source, references to nodes and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peerway_xacc.analysis.mapping import Declared, NodeArray, TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.tokens import quoted

if TYPE_CHECKING:
    from peerway_xacc.lowering.unit import Unit


def numbers(texts: list[str], kind: str = "long") -> str:
    """A compound literal: an array of these expressions."""
    return f"(const {kind}[]){{{', '.join(texts)}}}"


def where(directive: d.Directive) -> str:
    """The place of a directive as C text, for errors at run time."""
    return at(directive.place)


def at(place: Place) -> str:
    """A place as C text. The name of the source file is in a macro at the top of the generated text."""
    if not place.file.endswith(".c"):
        return f"&(const pwx_where){{{quoted(place.file)}, {place.line}}}"
    return f"PWX_HERE({place.line})"


def referred(unit: Unit, ref: clauses.Ref, directive: d.Directive) -> NodeArray | TemplateOf:
    """The nodes or the template that a reference names.

    Raises Refused unless the number of subscripts fits.
    """
    function = unit.function_of(directive)
    declared: Declared | None = unit.scopes.find(ref.name.text, function, directive.start)
    if not isinstance(declared, NodeArray | TemplateOf):
        raise Refused(ref.name.place, f"there are no nodes and no template '{ref.name.text}'")
    rank = len(declared.sizes if isinstance(declared, NodeArray) else declared.bounds)
    if ref.subscripts is not None and len(ref.subscripts) != rank:
        note = (declared.place, f"'{declared.name}' is declared here")
        raise Refused(
            ref.name.place,
            f"{counted(len(ref.subscripts), 'subscript')} for '{declared.name}', "
            f"which has {counted(rank, 'dimension')}",
            note,
        )
    if isinstance(declared, TemplateOf) and declared.formats is None:
        note = (declared.place, f"'{declared.name}' is declared here")
        raise Refused(ref.name.place, f"template '{declared.name}' is not distributed", note)
    if isinstance(declared, TemplateOf):
        unit.check_fixed(declared, directive, ref.name.place)
    else:
        _check_nodes(declared, ref)
    return declared


def _check_nodes(node_array: NodeArray, ref: clauses.Ref) -> None:
    """Refuse a subscript that is a constant outside the node array."""
    least = 0 if ref.square else 1
    for subscript, size in zip(ref.subscripts or (), node_array.sizes, strict=False):
        index = subscript.index
        if index is None or index.value is None:
            continue
        if index.value < least or (size is not None and index.value >= size + least):
            nodes = f"{least} to {size - 1 + least}" if size is not None else f"numbered from {least} on"
            message = (
                f"'{node_array.name}' has no node {index.value} in this dimension; its nodes are {nodes}"
            )
            raise Refused(index.place, message, (node_array.place, f"'{node_array.name}' is declared here"))


def reference(
    unit: Unit, ref: clauses.Ref | None, directive: d.Directive, replaced: dict[int, str] | None = None
) -> str:
    """The pwx_ref of a reference, as C text.

    `replaced` gives the text of some dimensions, by their number.
    """
    if ref is None:
        return "0"
    mapping = referred(unit, ref, directive)
    is_nodes = isinstance(mapping, NodeArray)
    rank = len(mapping.sizes if isinstance(mapping, NodeArray) else mapping.bounds)
    parts = []
    for dimension in range(rank):
        subscript = ref.subscripts[dimension] if ref.subscripts is not None else None
        if replaced and dimension in replaced:
            parts.append(replaced[dimension])
        else:
            parts.append(_part(mapping, dimension, subscript, is_nodes and ref.square))
    target = f"{mapping.address}, 0" if is_nodes else f"0, {mapping.address}"
    return f"&(const pwx_ref){{{target}, {{{', '.join(parts)}}}}}"


def _part(
    mapping: NodeArray | TemplateOf, dimension: int, subscript: clauses.Subscript | None, from_zero: bool
) -> str:
    plus = " + 1" if from_zero else ""
    if subscript is None or subscript.whole:
        return "{PWX_ALL, 0, 0, 1}"
    if subscript.star:
        return "{PWX_MINE, 0, 0, 1}"
    if subscript.index is not None:
        text = f"({subscript.index.text}){plus}" if plus else subscript.index.text
        return f"{{PWX_RANGE, {text}, {text}, 1}}"
    step = subscript.step.text if subscript.step else "1"
    if isinstance(mapping, NodeArray):
        lowest, highest = "1", f"{mapping.descriptor}.size[{dimension}]"
    else:
        lowest, highest = (f"{mapping.descriptor}.dim[{dimension}].{end}" for end in ("first", "last"))
    first = f"({subscript.first.text}){plus}" if subscript.first else lowest
    last = f"({subscript.last}){plus}" if subscript.last else highest
    return f"{{PWX_RANGE, {first}, {last}, {step}}}"
