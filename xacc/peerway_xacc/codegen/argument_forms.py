"""Writes the arguments of a kernel: arrays with their shapes, values, and memory of each thread."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.codegen import own_variables
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend.clauses import Section
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import memory


@dataclass
class Argument:
    """A parameter of the kernel, and the C lines that compute the value passed for it."""

    parameter: str
    value: str
    lines: list[str] = field(default_factory=list)
    opened: str = ""  # the kernel's first statements for this argument
    # an array that is not distributed, or that the kernel may write: no kernel overlaps a reflect of it
    apart: bool = False
    is_part: bool = False  # a pointer to an array of which only a part may be present


def type(variable: Variable) -> str:
    if "long double" in variable.element:
        raise Unsupported(f"{variable.name} is a long double")
    return variable.spelling


def declared(variable: Variable, section: Section | None = None) -> str:
    """The declaration of a variable in a kernel; with a section, also that of the memory behind a pointer."""
    name = variable.name
    if section is not None and own_variables.whole_elements(section, variable):
        count = own_variables.known_elements(section, variable)
        if count is None:
            raise Unsupported(f"the length of the private section of {name} is not known when it is compiled")
        inner = _inner_sizes(variable)
        return f"{type(variable)} {name}__own[{count}]{inner}; auto *{name} = {name}__own;"
    if variable.pointee is not None:
        return f"{type(variable)} *{name};"
    if None in variable.sizes:
        raise Unsupported(f"the size of the private {name} is not known when it is compiled")
    return f"{type(variable)} {name}{''.join(f'[{size}]' for size in variable.sizes)};"


def _inner_sizes(variable: Variable) -> str:
    """The sizes, in brackets, of one element behind a pointer."""
    sizes = variable.pointee if variable.pointee is not None else variable.sizes[1:]
    if None in sizes:
        raise Unsupported(f"the size of the rows of {variable.name} is not known when it is compiled")
    return "".join(f"[{size}]" for size in sizes)


# bytes of a thread's stack for a copy; a GPU reserves them for all threads that it can run
_MOST_OF_STACK = 16384


def own_memory(variable: Variable, section: Section, copied: bool) -> list[Argument]:
    """Give each thread memory for what a pointer points to: on its stack, or, if large, in GPU memory."""
    name = variable.name
    kind = f"{type(variable)}{_inner_sizes(variable)}"
    known = own_variables.known_elements(section, variable)
    count = str(known) if known is not None else f"({own_variables.whole_elements(section, variable)})"
    arguments = []
    if known is not None and known * max(1, variable.element_bytes) <= _MOST_OF_STACK:
        opened = f"{type(variable)} {name}__own[{known}]{_inner_sizes(variable)}; auto *{name} = {name}__own;"
    else:
        lines = [
            f"const unsigned long {name}__n = ({count} * sizeof(*{name}) + 15) / 16 * 16;",
            f"void *{name}__w = 0;",  # set when the number of threads is known
        ]
        arguments.append(Argument(f"const unsigned long {name}__n", f"&{name}__n", lines))
        opened = f"auto *{name} = &((pwx_value<{kind}> *)((char *){name}__w + pwx_thread() * {name}__n))->of;"
        arguments.append(Argument(f"void *{name}__w", f"&{name}__w", [], opened))
        opened = ""
    if copied:
        begin = memory.address_of(section) if section.parts else name
        first = section.parts[0].first.text if section.parts and section.parts[0].first else "0"
        lines = [
            f"static pwx_known {name}__k;",
            f"const void *{name}__d = pwx_device(&{name}__k, {begin}, {quoted(name)}, PWX_THERE);",
            f"const long {name}__b = {first}, {name}__e = {count};",
        ]
        element = f"sizeof({name}[0])"
        copying = (
            f"{opened} for (long q__ = {name}__b; q__ < {name}__e; q__++) memcpy(&{name}[q__], "
            f"(const char *){name}__f + (q__ - {name}__b) * {element}, {element});"
        )
        arguments.append(Argument(f"const void *{name}__f", f"&{name}__d", lines))
        arguments.append(Argument(f"const long {name}__b", f"&{name}__b"))
        arguments.append(Argument(f"const long {name}__e", f"&{name}__e", [], copying))
    elif opened:
        arguments.append(Argument("", "", [], opened))
    return arguments


def _of_shape(
    name: str, kind: str, extents: list[int | None], sizes: list[str], lines: list[str]
) -> Argument:
    """A pointer through which subscripts reach an array. `extents` are its dimensions after the first, and
    `sizes` what they are where they are not known when the kernel is compiled.
    """
    device = f"{name}__d"
    unknown = max((place + 1 for place, extent in enumerate(extents) if extent is None), default=0)
    rest = "".join(f"[{extent}]" for extent in extents[unknown:])
    if unknown == 0:
        parameter = f"{kind} (*__restrict__ {name}){rest}" if rest else f"{kind} *__restrict__ {name}"
        return Argument(parameter, f"&{device}", lines)
    # The rows behind the last unknown size are arrays, whose subscripts need no multiplication at run time.
    rows = f"pwx_rows<{kind}{rest}, {unknown + 1}>"
    shape_lines = [
        *lines,
        f"const struct {{ void *at; long ld[{unknown}]; }} {name}__r = "
        f"{{{device}, {{{', '.join(sizes[:unknown])}}}}};",
    ]
    return Argument(f"const {rows} {name}", f"&{name}__r", shape_lines)


def distributed(array: DistributedArray, changed: bool) -> Argument:
    assert array.variable is not None
    name = array.symbol
    rank = len(array.variable.sizes)
    kind = f"{'' if changed else 'const '}{type(array.variable)}"
    extents = [array.extent(dimension) for dimension in range(1, rank)]
    lines = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device_array(&{name}__k, {array.address}, PWX_THERE);",
    ]
    sizes = [f"{array.descriptor}.ld[{dimension}]" for dimension in range(1, rank)]
    argument = _of_shape(name, kind, extents, sizes, lines)
    argument.opened = f"PWX_ALIGNED({name});" if None not in extents else f"PWX_ALIGNED({name}.at);"
    argument.apart = changed
    return argument


def cycles_of(array: DistributedArray) -> list[tuple[str, str]]:
    """The parts that a node owns of an array's cyclic dimensions: names, and their declarations."""
    cycles = []
    for dimension, aligned in enumerate(array.dimensions):
        if aligned is not None and array.kind_of(dimension) == "cyclic":
            name = f"{array.symbol}__c{dimension}"
            offset = f"{array.descriptor}.dim[{dimension}].offset"
            value = f"pwx_cycle_of({array.descriptor}.on, {aligned[0]}, {offset})"
            cycles.append((name, f"const pwx_cycle {name} = {value};"))
    return cycles


_MOST_COPIED = 2048  # bytes; all arguments of a kernel together have at most 4,096


def copied(variable: Variable) -> Argument:
    """An array that each thread gets a copy of, passed by value."""
    name = variable.name
    if not 0 <= variable.bytes <= _MOST_COPIED:
        size = f"{variable.bytes} bytes" if variable.bytes >= 0 else "of a size known at run time alone"
        raise Unsupported(f"the firstprivate {name} is {size}; a kernel gets {_MOST_COPIED} by value at most")
    kind = type(variable)
    whole = f"{kind}{''.join(f'[{size}]' for size in variable.sizes)}"
    opened = f"pwx_value<{whole}> {name}__o = {name}__v; auto& {name} = {name}__o.of;"
    return Argument(f"const pwx_value<{whole}> {name}__v", f"&{name}", [], opened)


def plain(
    variable: Variable, changed: bool, on_device: bool, section: Section | None, part: str, aligned: bool
) -> Argument:
    """A pointer to undistributed memory, or from Fortran to an `aligned` distributed array.

    The memory before a section, or a `part` of it, need not be present.
    """
    name = variable.name
    kind = f"{'' if changed else 'const '}{type(variable)}"
    extents = list(variable.pointee if variable.pointee is not None else variable.sizes[1:])
    lines = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device{'_aligned' if aligned else ''}(&{name}__k, (const void *){name}, "
        f"{quoted(name)}, PWX_THERE);",
    ]
    if section:
        section = memory.table_of(section, variable)
    begin = f"{part}.address" if part else ""
    if section and any(bounds.first is not None and bounds.first.value != 0 for bounds in section.parts):
        begin = memory.address_of(section)
    if begin:
        lines[1] = (
            f"void *{name}__d = (char *)pwx_device(&{name}__k, {begin}, {quoted(name)}, PWX_THERE) - "
            f"((const char *){begin} - (const char *){name});"
        )
    if on_device:
        lines = [f"void *{name}__d = (void *){name};"]
    element = f"{name}[0]"
    sizes = []
    for _ in extents:
        sizes.append(f"(long)(sizeof({element}) / sizeof({element}[0]))")
        element += "[0]"
    argument = _of_shape(name, kind, extents, sizes, lines)
    argument.apart, argument.is_part = True, bool(begin)
    if aligned and not begin and not on_device:
        argument.opened = f"PWX_ALIGNED({name});"
    return argument


def present(variable: Variable, changed: bool) -> Argument:
    """A scalar whose value is in the GPU's memory; a thread reads it once, unless the kernel changes it."""
    name = variable.name
    lines = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device(&{name}__k, &{name}, {quoted(name)}, PWX_THERE);",
    ]
    kind = type(variable)
    if not changed:
        opened = f"const {kind} {name} = *{name}__p;"
        return Argument(f"const {kind} *{name}__p", f"&{name}__d", lines, opened)
    return Argument(f"{kind} *{name}__p", f"&{name}__d", lines, f"{kind} &{name} = *{name}__p;")
