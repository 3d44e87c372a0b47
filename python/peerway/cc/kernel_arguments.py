"""What a kernel uses from outside of its loops: its arguments, and the private variables of its threads."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway.cc.device_code import Unsupported
from peerway.cc.generated import quoted
from peerway.cc.mapping import DistributedArray
from peerway.cc.source import Range, Variable, used_in
from peerway.cc.unit import Stack, Unit


@dataclass
class Argument:
    """A parameter of the kernel, and the lines of C that make the value which is passed for it."""

    parameter: str
    value: str
    made: list[str] = field(default_factory=list)
    opened: str = ""  # what the kernel does with it first


def arguments_of(
    unit: Unit, stack: Stack, inside: Range, skipped: set[str], private: set[str], on_device: set[str]
) -> tuple[list[Argument], list[str]]:
    """What the body uses from outside: arguments, and declarations of private variables."""
    arguments: list[Argument] = []
    locals_: list[str] = []
    seen: dict[str, tuple[Variable, bool]] = {}
    for use in used_in(stack.function.uses, inside):
        variable = use.variable
        outside = variable.file_scope or not inside.start <= variable.declarator.start < inside.end
        if not outside or variable.name in skipped:
            continue
        changed = use.written or use.argument is not None
        seen[variable.name] = (variable, changed or seen.get(variable.name, (variable, False))[1])
    for name, (variable, changed) in seen.items():
        if name in private:
            locals_.append(_declared(variable))
            continue
        array = unit.scopes.of_variable(variable)
        if array:
            arguments.append(_distributed(array, changed))
            arguments += [
                Argument(f"const pwx_cycle {one}", f"&{one}", [made]) for one, made in cycles_of(array)
            ]
        elif variable.sizes or variable.pointee is not None:
            arguments.append(_plain(variable, changed))
        elif name in on_device:
            arguments.append(_present(variable))
        else:
            arguments.append(Argument(f"{_type(variable)} {name}", f"&{name}"))
    return arguments, locals_


def _type(variable: Variable) -> str:
    if "long double" in variable.element:
        raise Unsupported(f"{variable.name} is a long double")
    return variable.spelling


def _declared(variable: Variable) -> str:
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
    name = array.name
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
            name = f"{array.name}__c{dimension}"
            offset = f"{array.descriptor}.dim[{dimension}].offset"
            made = f"const pwx_cycle {name} = pwx_cycle_of({array.descriptor}.on, {aligned[0]}, {offset});"
            found.append((name, made))
    return found


def _plain(variable: Variable, changed: bool) -> Argument:
    name = variable.name
    kind = f"{'' if changed else 'const '}{_type(variable)}"
    extents = list(variable.pointee if variable.pointee is not None else variable.sizes[1:])
    found = [
        f"static pwx_known {name}__k;",
        f"void *{name}__d = pwx_device(&{name}__k, (const void *){name}, {quoted(name)}, PWX_THERE);",
    ]
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
