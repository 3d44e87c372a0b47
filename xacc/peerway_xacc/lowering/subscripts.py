"""Turns global subscripts into those of a node's memory, so that no pointer leaves its object.

The memory of a block begins with element `base`; in a cyclic dimension a function computes where an element
is.
"""

from __future__ import annotations

from peerway_xacc.analysis import mistakes
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Range, Use
from peerway_xacc.frontend.tokens import quoted, scan, spans
from peerway_xacc.lowering.checks import Checks
from peerway_xacc.lowering.unit import Unit


def is_shifted(array: DistributedArray, dimension: int) -> bool:
    """Can a node's memory begin with another element than 0 in this dimension?"""
    lower = array.shadow_values(dimension)[0]
    if array.kind_of(dimension) == "cyclic" or lower == -1:
        return False
    return array.kind_of(dimension) != "*" or lower != 0


def base(array: DistributedArray, dimension: int) -> str:
    """The variable that holds the subscript of the first element in memory."""
    return f"{array.symbol}__b{dimension}"


def bases_of(array: DistributedArray) -> list[tuple[str, str]]:
    """The base variables of an array and their declarations, but for bases that are constant."""
    return [
        (base(array, d), f"const long {base(array, d)} = {array.descriptor}.dim[{d}].base;")
        for d in range(len(array.dimensions))
        if is_shifted(array, d) and _fixed_base(array, d) is None
    ]


def _fixed_base(array: DistributedArray, dimension: int) -> int | None:
    """The base, if it is the same constant on all nodes."""
    lower = array.shadow_values(dimension)[0]
    return -lower if array.kind_of(dimension) == "*" and lower is not None else None


def base_text(array: DistributedArray, dimension: int, declared: bool) -> str:
    """The base as C text. `declared` means that a variable holds it.

    Without one, a pointer for xmp_malloc reads its descriptor: the base changes with its memory.
    """
    fixed = _fixed_base(array, dimension)
    if fixed is not None:
        return str(fixed)
    assert array.variable is not None
    if declared or array.variable.pointee is None:
        return base(array, dimension)
    return f"{array.descriptor}.dim[{dimension}].base"


def around(
    array: DistributedArray, dimension: int, declared: bool = False, simple: bool = False
) -> tuple[str, str]:
    """The text before and after a global subscript that turns it into one of the memory.

    `declared`: the array's bases and cycles are in variables, as in kernels. `simple`: the subscript needs no
    brackets.
    """
    if array.kind_of(dimension) == "cyclic":
        if declared:
            return f"pwx_local({array.symbol}__c{dimension}, ", ")"
        return f"pwx_cyclic_local({array.address}, {dimension}, ", ")"
    if not is_shifted(array, dimension):
        return "", ""
    fixed = _fixed_base(array, dimension)
    shift = f" + {-fixed}" if fixed is not None else f" - {base_text(array, dimension, declared)}"
    return ("", shift) if simple else ("(", f"){shift}")


def translate(
    unit: Unit,
    edits: Edits,
    array: DistributedArray,
    use: Use,
    seen: set[int],
    declared: bool = False,
    checks: Checks | None = None,
    held: dict[str, str] | None = None,
) -> None:
    """Edit the subscripts of a use.

    `seen` are the offsets of subscripts edited before: a macro may use its argument several times. If
    `checks` say that a subscript needs a check, the program ends with an error when the element is not in
    this node's memory. A kernel's checks need the extents of the memory: `held` receives their names and
    their values on the host.
    """
    written = subscripts_in_text(unit, use)[: len(array.dimensions)]
    for dimension, inside in enumerate(written):
        text = unit.text.text[inside.start : inside.end].strip()
        simple = text.isdigit() or (text.isidentifier() and text not in unit.texts.defines)
        before, behind = around(array, dimension, declared, simple)
        distributed = array.kind_of(dimension) != "*"
        if distributed and checks and checks.needs(array, dimension, use, inside):
            if held is None:
                mistakes.plain_loop(unit, array, use, dimension, inside, unit.loops.localised)
                if checks.crossed(array, dimension, use, inside):
                    mistakes.other_dimension(unit, array, dimension, inside)
            if held is None:
                before, behind = _check(array, dimension, use), ")"
            else:
                before, behind = _check_in_kernel(unit, array, dimension, inside, held)
        if behind and inside.start not in seen:
            seen.add(inside.start)
            edits.before(inside.start, before)
            edits.behind(inside.end, behind)
    count = len(written)
    if count and any(is_shifted(array, d) for d in range(count, len(array.dimensions))):
        _row(unit, edits, array, use, written, seen, declared)


def _check(array: DistributedArray, dimension: int, use: Use) -> str:
    """The text before a checked subscript."""
    end = "_OR_END" if use.address_of else ""
    check = "PWX_IN_CYCLE" if array.kind_of(dimension) == "cyclic" else f"PWX_IN{end}"
    return f"{check}({array.symbol}, {dimension}, "


def _check_in_kernel(
    unit: Unit, array: DistributedArray, dimension: int, inside: Range, held: dict[str, str]
) -> tuple[str, str]:
    """The text before and after a checked subscript in a kernel; the error shows the text, not the value."""
    extent = f"{array.symbol}__e{dimension}"
    cyclic = array.kind_of(dimension) == "cyclic"
    held[extent] = f"{array.descriptor}.dim[{dimension}].{'size' if cyclic else 'held'}"
    text = " ".join(unit.text.text[inside.start : inside.end].split())
    message = quoted(f"[{text}] in dimension {dimension} of {array.name} is in this node's memory")
    place = f"{message}, {quoted(unit.file)}, {unit.text.place(inside.start).line}"
    if cyclic:
        return f"pwx_in_cycle({array.symbol}__c{dimension}, (", f"), {extent}, {place})"
    first = base_text(array, dimension, declared=True) if is_shifted(array, dimension) else "0"
    return "pwx_in_memory((", f"), {first}, {extent}, {place})"


def _row(
    unit: Unit,
    edits: Edits,
    array: DistributedArray,
    use: Use,
    written: list[Range],
    seen: set[int],
    declared: bool,
) -> None:
    """Lower the use of a row: it has the address of its element 0, with the shadow before it."""
    if use.range.start in seen:
        return
    seen.add(use.range.start)
    firsts = []
    for dimension in range(len(written), len(array.dimensions)):
        text = base_text(array, dimension, declared)
        firsts.append(f"[-({text})]" if is_shifted(array, dimension) else "[0]")
    of_type = f"{array.symbol}{'[0]' * (len(written) + 1)}"
    end = unit.text.text.index("]", written[-1].end) + 1
    edits.before(use.range.start, f"((__typeof__(&{of_type}))&")
    edits.behind(end, f"{''.join(firsts)})")


def in_macro(unit: Unit, use: Use) -> bool:
    """Is this use in the text of a macro, where an edit would change all uses of the macro?"""
    if not use.macro:
        return False
    spans = scan(unit.text.text, use.range.start, use.range.end)
    return "".join(span.text for span in spans) != use.variable.name


def hidden(unit: Unit, array: DistributedArray, use: Use) -> bool:
    """Is a part that must be edited, the name or a subscript, in the text of a macro?"""
    if not use.macro or use.function.file != unit.file:
        return False
    if in_macro(unit, use):
        return True
    count = min(len(use.subscripts), len(array.dimensions))
    behind = range(len(subscripts_in_text(unit, use)), count)
    return any(is_shifted(array, d) or array.kind_of(d) == "cyclic" for d in behind)


def subscripts_in_text(unit: Unit, use: Use) -> list[Range]:
    """The ranges of a use's subscripts after the name, without those in the text of a macro."""
    if in_macro(unit, use):
        return []
    count = len([subscript for subscript in use.subscripts if subscript.start >= 0])
    ranges: list[Range] = []
    depth = start = 0
    for span in spans(unit.text.text, use.range.end, use.function.body.end):
        if depth == 0 and (span.text != "[" or len(ranges) == count):
            break
        if span.text == "[" and depth == 0:
            start = span.end
        depth += (span.text == "[") - (span.text == "]")
        if depth == 0:
            ranges.append(Range(start, span.start))
    if ranges or use.macro:
        return ranges
    return [subscript for subscript in use.subscripts if subscript.start >= 0]  # `(a)[i]`
