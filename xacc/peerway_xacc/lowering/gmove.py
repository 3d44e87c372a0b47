"""Lowers gmove and array assignment: one assignment between sections of arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peerway_xacc.analysis.blocks import statement_behind
from peerway_xacc.analysis.explained_paths import Transfer
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import Span, quoted
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.communication import through_host
from peerway_xacc.lowering.sections import (
    Section,
    assignment,
    named,
    remaining,
    run_time_section,
    section,
    sizes_for,
    variable_of,
)
from peerway_xacc.lowering.shapes import access, element
from peerway_xacc.lowering.subscripts import around
from peerway_xacc.lowering.table import Lowering, StandsAlone
from peerway_xacc.lowering.unit import Unit

_MODES = {"collective": "PWX_COLLECTIVE", "in": "PWX_IN", "out": "PWX_OUT"}
_GPU_MODES = {"in": "PWX_IN_FROM_GPUS", "out": "PWX_OUT_TO_GPUS"}
_FLAGS = ("PWX_LEFT_ON_GPU", "PWX_RIGHT_ON_GPU")
_TRANSFERS = {
    "collective": Transfer("messages", "put"),
    "in": Transfer("gets", "get"),
    "out": Transfer("puts", "put"),
}
_EXPLAINED = {
    "collective": "all nodes of both sides send and receive",
    "in": "executing nodes get their elements of the left side from the owners, which need not execute it",
    "out": "executing nodes put their elements of the right side to the owners, which need not execute it",
}


@dataclass(frozen=True)
class Side:
    """One side of the assignment: its variable, "" for a value, and the array if that is distributed."""

    name: str
    array: DistributedArray | None


def gmove(unit: Unit, directive: d.Gmove) -> None:
    """Lower `gmove`: copy between arrays, whichever nodes own the elements."""
    if directive.on:
        raise Refused(directive.on.name.place, "gmove has no clause on")
    statement = statement_behind(unit.text, directive.end)
    left_side, right_side = assignment(unit.text, statement)
    lhs, left_variable, left_array = _whole(unit, left_side)
    _check_fixed(unit, directive, lhs, left_array)
    target = run_time_section(unit, lhs, left_variable, left_array)
    right_array, right_name = None, ""
    scalar = _scalar(unit, right_side)
    if scalar is not None:
        if directive.mode == "in":
            place = unit.text.place(right_side[0].start, right_side[-1].end)
            raise Refused(place, "expected an array on the right of gmove in")
        kind = element(left_array) if left_array else lhs.name + "[0]" * len(left_variable.sizes)
        name = unit.output.new_name("value")
        opened = f"{{ __typeof__({kind}) {name} = {scalar}; "
        source = f"&(const pwx_section){{.base = &{name}, .element_bytes = sizeof({name}), .ndims = 0}}"
    else:
        opened = "{ "
        right, right_variable, right_array = _whole(unit, right_side)
        _check_fixed(unit, directive, right, right_array)
        _same_rank(unit, lhs, left_variable, right, right_variable)
        source = run_time_section(unit, right, right_variable, right_array)
        right_name = right.name
    sides = [Side(lhs.name, left_array), Side(right_name, right_array)]
    call = opened + gmove_call(unit, directive, sides, target, source) + " }"
    if "\n" in call:  # an OpenACC compiler's directives
        call += f"\n#line {unit.text.place(statement.start).line} {quoted(unit.file)}\n"
    newlines = unit.text.text.count("\n", statement.start, statement.end)
    unit.output.edits.replace(statement.start, statement.end, call + "\n" * newlines)
    unit.explain(
        directive, f"gmove: {unit.text.text[statement.start : statement.end]} {_EXPLAINED[directive.mode]}"
    )
    unit.communicates(directive, f"gmove {directive.mode}", transfer_of(directive, sides))


def gmove_call(unit: Unit, directive: d.Gmove, sides: list[Side], target: str, source: str) -> str:
    """The statement that calls the run-time library, as C text; `target` and `source` are pwx_sections."""
    if directive.accelerator and directive.mode == "collective" and not unit.foreign_acc:
        unit.output.on_gpu = True
        on_gpu = _sides_on_gpu(directive, sides)
        flags = " | ".join(flag for side, flag in zip(sides, _FLAGS, strict=True) if side in on_gpu) or "0"
        plans = unit.output.new_name("gmove")
        call = f"pwx_gmove_device(&{plans}, {flags}, {target}, {source}, {where(directive)});"
        return f"{{ static pwx_gmove_plans {plans}; {call} }}"
    left, right = (side.array for side in sides)
    moved = _arrays_on_gpu(unit, directive, [left, right]) if directive.accelerator else []
    mode = _mode_of(unit, directive, left if directive.mode == "out" else right, moved)
    call = f"pwx_gmove({mode}, {target}, {source}, {where(directive)});"
    return through_host(unit, directive, moved, call) if moved else call


def transfer_of(directive: d.Gmove, sides: list[Side]) -> Transfer:
    """What --explain says of the messages."""
    if not directive.accelerator:
        return _TRANSFERS[directive.mode]
    on_gpu = _sides_on_gpu(directive, sides)
    if directive.mode == "collective" and len(on_gpu) == len(sides):
        return Transfer("messages", "send", on_gpu=True)
    far = sides[0 if directive.mode == "out" else 1]
    return replace(_TRANSFERS[directive.mode], on_gpu=directive.mode != "collective" and far in on_gpu)


def _sides_on_gpu(directive: d.Gmove, sides: list[Side]) -> list[Side]:
    """The sides whose copy on the GPU takes part: those that the clause acc names, or else all arrays."""
    for name in directive.on_device:
        if name.text not in [side.name for side in sides]:
            raise Refused(name.place, f"'{name.text}' is on neither side of this gmove")
    names = {name.text for name in directive.on_device}
    return [side for side in sides if side.name and (not names or side.name in names)]


def _mode_of(
    unit: Unit, directive: d.Gmove, far: DistributedArray | None, on_device: list[DistributedArray]
) -> str:
    """The mode of a gmove, as C text. `far` is the array whose owners may not execute the directive."""
    if directive.mode == "collective":
        return _MODES[directive.mode]
    unit.output.one_sided = True
    if far not in on_device:
        return _MODES[directive.mode]
    if unit.foreign_acc:
        name = far.name if far else ""
        message = (
            f"gmove {directive.mode} with acc of '{name}' is not supported with another OpenACC compiler; "
            f"update '{name}' on the host, and move that"
        )
        raise Refused(directive.place, message)
    return _GPU_MODES[directive.mode]


def _arrays_on_gpu(
    unit: Unit, directive: d.Gmove, sides: list[DistributedArray | None]
) -> list[DistributedArray]:
    """The distributed arrays whose copy on the GPU takes part."""
    arrays = [array for array in sides if array]
    for name in directive.on_device:
        if unit.array(name, directive) not in arrays:
            raise Refused(name.place, f"'{name.text}' is on neither side of this gmove")
    names = {name.text for name in directive.on_device}
    return [array for array in arrays if not names or array.name in names]


def _check_fixed(
    unit: Unit, directive: d.Gmove, array_section: Section, array: DistributedArray | None
) -> None:
    if array:
        unit.check_fixed(
            array.template, directive, unit.text.place(array_section.range.start, array_section.range.end)
        )


def _whole(unit: Unit, spans: list[Span]) -> tuple[Section, Variable, DistributedArray | None]:
    place = unit.text.place(spans[0].start, spans[-1].end)
    if spans[0].kind != "name":
        raise Refused(place, "expected an array or a section of one")
    target, end = section(unit.text, spans)
    if end != len(spans):
        raise Refused(place, "expected an array or a section of one, without arithmetic and without members")
    variable = variable_of(unit, target.name, target.range)
    return target, variable, unit.scopes.of_variable(variable)


def _scalar(unit: Unit, spans: list[Span]) -> str | None:
    """The text of a right side that contains no distributed array and no section; else None."""
    text = unit.text.text[spans[0].start : spans[-1].end]
    for number, span in enumerate(spans):
        name = named(spans, number)[0]
        variable = unit.syntax.variable(name, unit.file, span.start) if span.kind == "name" else None
        if variable and unit.scopes.of_variable(variable):
            return None
    if spans[0].kind == "name":
        source, end = section(unit.text, spans)
        variable = unit.syntax.variable(source.name, unit.file, spans[0].start)
        if end == len(spans) and variable and (source.rank or (variable.sizes and not source.dimensions)):
            return None
    return text


def _rank(array_section: Section, variable: Variable) -> int:
    return array_section.rank if array_section.dimensions else len(variable.sizes)


def _same_rank(
    unit: Unit, lhs: Section, left_variable: Variable, right: Section, right_variable: Variable
) -> None:
    rank, other = _rank(lhs, left_variable), _rank(right, right_variable)
    if other not in (0, rank):
        place = unit.text.place(right.range.start, right.range.end)
        raise Refused(place, f"{counted(other, 'dimension')} assigned to {rank}")


def array_on(unit: Unit, directive: d.ArrayOn) -> None:
    """Lower `array on`: the owners of the elements assign them, in loops over the left side's sections."""
    assert directive.on is not None
    statement = statement_behind(unit.text, directive.end)
    left_side, right_side = assignment(unit.text, statement)
    lhs, variable, array = _whole(unit, left_side)
    place = unit.text.place(lhs.range.start, lhs.range.end)
    if array is None or array.template is None:
        raise Refused(place, f"'{lhs.name}' is not a distributed array")
    if directive.on.name.text != array.template.name:
        template, named = array.template.name, directive.on.name.text
        message = f"'{lhs.name}' is aligned with template '{template}', not with '{named}'"
        raise Refused(directive.on.name.place, message, (array.place, "it is aligned here"))
    if any(array.kind_of(number) == "cyclic" for number in range(len(variable.sizes))):
        raise Refused(place, "array assignment to a cyclic array is not supported yet")
    loops, subscripts = _loops(unit, lhs, variable, array)
    counters = [name for name, _text in loops]
    target = f"{access(array)}{_in_memory(array, subscripts)}"
    value = _elementwise(unit, right_side, counters, lhs)
    text = f"pwx_written({array.address}); "
    text += "".join(header for _name, header in loops) + f"{target} = {value};"
    newlines = unit.text.text.count("\n", statement.start, statement.end)
    unit.output.edits.replace(statement.start, statement.end, f"{{ {text} }}" + "\n" * newlines)
    unit.subscripts.needed.append((array, directive.start))
    unit.explain(directive, f"array: {len(loops)} loops over what a node owns of {lhs.name}")


def _loops(
    unit: Unit, lhs: Section, variable: Variable, array: DistributedArray
) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the header of a loop for each section of the left side, and the left side's subscripts."""
    loops = []
    subscripts = []
    sizes = sizes_for(unit, variable, array)
    dimensions = lhs.dimensions
    if len(dimensions) != len(sizes):
        place = unit.text.place(lhs.range.start, lhs.range.end)
        raise Refused(
            place,
            f"'{lhs.name}' has {counted(len(sizes), 'dimension')}, "
            f"and {counted(len(dimensions), 'subscript')} here",
        )
    for number, (dimension, size) in enumerate(zip(dimensions, sizes, strict=True)):
        owned = f"(pwx_span){{{array.descriptor}.dim[{number}].first, {array.descriptor}.dim[{number}].last}}"
        if dimension.index is not None:
            subscripts.append(dimension.index)
            if array.kind_of(number) != "*":
                loops.append(("", f"if (pwx_is_in({owned}, {dimension.index})) "))
            continue
        counter = unit.output.new_name("k")
        first = dimension.first or "0"
        step = f"({dimension.step})"
        count = dimension.length or remaining(dimension, size)
        subscript = f"({first}) + {counter} * {step}"
        loops.append((
            counter,
            f"for (long {counter} = 0; {counter} < ({count}); {counter}++) "
            f"if (pwx_is_in({owned}, {subscript})) ",
        ))  # fmt: skip
        subscripts.append(subscript)
    return loops, subscripts


def _elementwise(unit: Unit, spans: list[Span], counters: list[str], lhs: Section) -> str:
    """The right side, with its sections replaced by elements at the counters."""
    counters = [counter for counter in counters if counter]
    out = ""
    at = 0
    end_before = spans[0].start
    text = unit.text.text
    while at < len(spans):
        span = spans[at]
        out += text[end_before : span.start]
        name = named(spans, at)[0]
        variable = unit.syntax.variable(name, unit.file, span.start) if span.kind == "name" else None
        if variable is None or not variable.sizes:
            out += span.text
            end_before = span.end
            at += 1
            continue
        operand, at = section(unit.text, spans, at)
        if operand.name == lhs.name and operand.dimensions != lhs.dimensions:
            place = unit.text.place(operand.range.start, operand.range.end)
            raise Refused(
                place,
                f"'{lhs.name}' on the right with other subscripts than on the left is not supported yet",
            )
        out += _element(unit, operand, variable, counters, lhs)
        end_before = operand.range.end
    return out


def _element(unit: Unit, operand: Section, variable: Variable, counters: list[str], lhs: Section) -> str:
    place = unit.text.place(operand.range.start, operand.range.end)
    if operand.rank not in (0, len(counters)) or len(operand.dimensions) != len(variable.sizes):
        raise Refused(place, f"{operand.rank} sections are assigned to {len(counters)}")
    array = unit.scopes.of_variable(variable)
    if array:
        unit.subscripts.needed.append((array, operand.range.start))
    rest = iter(counters)
    lengths = iter(dimension.length for dimension in lhs.dimensions if dimension.index is None)
    subscripts = []
    for dimension in operand.dimensions:
        if dimension.index is not None:
            subscripts.append(dimension.index)
        else:
            here, there = dimension.length, next(lengths)
            if here and there and here.isdigit() and there.isdigit() and int(here) != int(there):
                raise Refused(place, f"{here} elements are assigned to {there}; they must be as many")
            subscripts.append(f"({dimension.first or '0'}) + {next(rest)} * ({dimension.step})")
    if array:
        return f"{access(array)}{_in_memory(array, subscripts)}"
    return operand.name + "".join(f"[{subscript}]" for subscript in subscripts)


def _in_memory(array: DistributedArray, subscripts: list[str]) -> str:
    """The brackets with global subscripts turned into those of a node's memory."""
    parts = [around(array, dimension) for dimension in range(len(subscripts))]
    return "".join(
        f"[{before}{part}{behind}]" for (before, behind), part in zip(parts, subscripts, strict=True)
    )


LOWERINGS: dict[str, Lowering] = {
    "xmp gmove": StandsAlone(gmove),
    "xmp array": StandsAlone(array_on),
}
