"""What a kernel uses from outside of its loops: its arguments, and the private variables of its threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from peerway.cc import directives as d
from peerway.cc import memory, phrases
from peerway.cc.device_code import Unsupported
from peerway.cc.mapping import DistributedArray
from peerway.cc.source import Function, Range, Use, Variable, used_in
from peerway.cc.tokens import quoted
from peerway.cc.unit import Stack, Unit


@dataclass
class Argument:
    """A parameter of the kernel, and the lines of C that make the value which is passed for it."""

    parameter: str
    value: str
    made: list[str] = field(default_factory=list)
    opened: str = ""  # what the kernel does with it first


@dataclass(frozen=True)
class Clauses:
    """What the clauses of a construct and of those around say of the variables that its kernel uses."""

    private: set[str]
    copied: set[str]  # firstprivate
    on_device: set[str]  # scalars that lie on the GPU
    device_pointers: list[Variable]
    sections: dict[str, phrases.Section]  # what data clauses of the construct name
    around: Callable[[Variable], str]  # the pwx_data of a data construct around, of less than all of it
    rows: set[str]  # pointers to pointers of which clauses name the rows, too


def device_pointers(unit: Unit, function: Function, directives: list[d.Acc]) -> list[Variable]:
    """The pointers that clauses deviceptr of these constructs name, or an acc declare of the function."""
    declared = [
        made
        for made in unit.directives
        if isinstance(made, d.Acc) and made.construct == "declare" and unit.function_of(made) is function
    ]
    found = []
    for made in (*directives, *declared):
        for name in made.named_variables("deviceptr"):
            variable = unit.syntax.variable(name.text, made.file, made.start)
            if variable is not None:
                found.append(variable)
    return found


def own_in_body(unit: Unit, use: Use) -> bool:
    """Is a use one of a variable that the body of a loop around it has of its own?"""
    return any(
        variable is use.variable and body.start <= use.range.start < body.end
        for body, variable in unit.own_in_bodies
    )


def arguments_of(
    unit: Unit, stack: Stack, inside: Range, skipped: set[str], clauses: Clauses
) -> tuple[list[Argument], list[str]]:
    """What the body uses from outside: arguments, and declarations of private variables."""
    arguments: list[Argument] = []
    locals_: list[str] = []
    seen: dict[str, tuple[Variable, bool]] = {}
    for use in used_in(stack.function.uses, inside):
        variable = use.variable
        outside = variable.file_scope or not inside.start <= variable.declarator.start < inside.end
        if not outside or variable.name in skipped or own_in_body(unit, use):
            continue
        if (
            _leads_to_host(use)
            and variable.name not in clauses.rows
            and not any(one is variable for one in clauses.device_pointers)
        ):
            place = unit.text.place(use.range.start, use.range.end)
            raise Unsupported(
                f"the pointers that {variable.name} has lead to memory of the host; use one block of memory, "
                f"or name the rows, as in {variable.name}[0:n][0:m]",
                place,
            )
        changed = use.written or use.argument is not None
        seen[variable.name] = (variable, changed or seen.get(variable.name, (variable, False))[1])
    for name, (variable, changed) in seen.items():
        if name in clauses.private:
            locals_.append(declared(variable))
            continue
        array = unit.scopes.of_variable(variable)
        if array:
            arguments.append(_distributed(array, changed))
            arguments += [
                Argument(f"const pwx_cycle {one}", f"&{one}", [made]) for one, made in cycles_of(array)
            ]
        elif name in clauses.copied and variable.sizes and not variable.pointer:
            arguments.append(_copied(variable))
        elif variable.sizes or variable.pointee is not None:
            is_device = any(one is variable for one in clauses.device_pointers)
            section = clauses.sections.get(name)
            part = "" if section else clauses.around(variable)
            arguments.append(_plain(variable, changed, is_device, section, part))
        elif name in clauses.on_device:
            arguments.append(_present(variable))
        else:
            arguments.append(Argument(f"{_type(variable)} {name}", f"&{name}"))
    return arguments, locals_


def _leads_to_host(use: Use) -> bool:
    """Does a use go on through a pointer that an array or a pointer has? Its copy leads to the host."""
    variable = use.variable
    rank = len(variable.sizes) if variable.pointee is None else 1 + len(variable.pointee)
    return variable.has_pointers and len(use.subscripts) > rank > 0


def _type(variable: Variable) -> str:
    if "long double" in variable.element:
        raise Unsupported(f"{variable.name} is a long double")
    return variable.spelling


def declared(variable: Variable) -> str:
    """The declaration of a variable in a kernel."""
    if variable.pointee is not None:
        return f"{_type(variable)} *{variable.name};"
    if None in variable.sizes:
        raise Unsupported(f"the size of the private {variable.name} is not known when it is compiled")
    return f"{_type(variable)} {variable.name}{''.join(f'[{size}]' for size in variable.sizes)};"


def _of_shape(
    name: str, kind: str, extents: list[int | None], sizes: list[str], found: list[str]
) -> Argument:
    """A pointer through which subscripts reach an array; `extents` are those behind the first dimension."""
    device = f"{name}__d"
    if None not in extents:
        rest = "".join(f"[{extent}]" for extent in extents)
        parameter = f"{kind} (*__restrict__ {name}){rest}" if rest else f"{kind} *__restrict__ {name}"
        return Argument(parameter, f"&{device}", found)
    rows = f"pwx_rows<{kind}, {len(extents) + 1}>"
    made = [
        *found,
        f"const struct {{ void *at; long ld[{len(extents)}]; }} {name}__r = "
        f"{{{device}, {{{', '.join(sizes)}}}}};",
    ]
    return Argument(f"const {rows} {name}", f"&{name}__r", made)


def _distributed(array: DistributedArray, changed: bool) -> Argument:
    assert array.variable is not None
    name = array.symbol
    rank = len(array.variable.sizes)
    kind = f"{'' if changed else 'const '}{_type(array.variable)}"
    extents = [array.extent(dimension) for dimension in range(1, rank)]
    found = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device_array(&{name}__k, {array.address}, PWX_THERE);",
    ]
    sizes = [f"{array.descriptor}.ld[{dimension}]" for dimension in range(1, rank)]
    made = _of_shape(name, kind, extents, sizes, found)
    if None not in extents:
        # Distances in distributed dimensions are what shifts the pointer away from the array's memory.
        inner = max(d for d, aligned in enumerate(array.dimensions) if aligned is not None or d == 0)
        made.opened = f"PWX_ALIGNED({name}, sizeof({name}{'[0]' * (inner + 1)}));"
    return made


def cycles_of(array: DistributedArray) -> list[tuple[str, str]]:
    """What a node owns of the cyclic dimensions of an array: names, and the declarations of these."""
    found = []
    for dimension, aligned in enumerate(array.dimensions):
        if aligned is not None and array.kind_of(dimension) == "cyclic":
            name = f"{array.symbol}__c{dimension}"
            offset = f"{array.descriptor}.dim[{dimension}].offset"
            made = f"const pwx_cycle {name} = pwx_cycle_of({array.descriptor}.on, {aligned[0]}, {offset});"
            found.append((name, made))
    return found


_MOST_COPIED = 2048  # bytes; all arguments of a kernel have 4,096 together


def _copied(variable: Variable) -> Argument:
    """An array of which each thread gets a copy, by value."""
    name = variable.name
    if not 0 <= variable.bytes <= _MOST_COPIED:
        size = f"{variable.bytes} bytes" if variable.bytes >= 0 else "of a size known at run time alone"
        raise Unsupported(f"the firstprivate {name} is {size}; a kernel gets {_MOST_COPIED} by value at most")
    kind = _type(variable)
    whole = f"{kind}{''.join(f'[{size}]' for size in variable.sizes)}"
    opened = f"pwx_value<{whole}> {name}__o = {name}__v; auto& {name} = {name}__o.of;"
    return Argument(f"const pwx_value<{whole}> {name}__v", f"&{name}", [], opened)


def _plain(
    variable: Variable, changed: bool, on_device: bool, section: phrases.Section | None, part: str
) -> Argument:
    """A pointer to plain memory. What lies before a section, or a `part` of it, need not be present."""
    name = variable.name
    kind = f"{'' if changed else 'const '}{_type(variable)}"
    extents = list(variable.pointee if variable.pointee is not None else variable.sizes[1:])
    found = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device(&{name}__k, (const void *){name}, {quoted(name)}, PWX_THERE);",
    ]
    if section:
        section = memory.table_of(section, variable)
    begin = f"{part}.address" if part else ""
    if section and any(one.first is not None and one.first.value != 0 for one in section.parts):
        begin = memory.address_of(section)
    if begin:
        found[1] = (
            f"void *{name}__d = (char *)pwx_device(&{name}__k, {begin}, {quoted(name)}, PWX_THERE) - "
            f"((const char *){begin} - (const char *){name});"
        )
    if on_device:
        found = [f"void *{name}__d = (void *){name};"]
    element = f"{name}[0]"
    sizes = []
    for _ in extents:
        sizes.append(f"(long)(sizeof({element}) / sizeof({element}[0]))")
        element += "[0]"
    return _of_shape(name, kind, extents, sizes, found)


def _present(variable: Variable) -> Argument:
    """A scalar that lies on the GPU."""
    name = variable.name
    made = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device(&{name}__k, &{name}, {quoted(name)}, PWX_THERE);",
    ]
    kind = _type(variable)
    return Argument(f"{kind} *{name}__p", f"&{name}__d", made, f"{kind} &{name} = *{name}__p;")
