"""Describes operands of data clauses to the run-time library: arrays, variables, and sections.

A data clause needs contiguous memory. An update may name less: then it goes row by row, and covers the part
of a distributed array that is in this node's memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.source import Variable
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit

_TABLES = dict.fromkeys(
    ("COPY", "COPYIN", "COPYOUT", "COPYOUT_ZERO", "CREATE_ZERO"), "CREATE"
)  # the GPU's table of pointers is never copied


def described(unit: Unit, directive: d.Acc, section: clauses.Section, kind: str) -> str:
    """The initialiser of a section's pwx_data."""
    name = section.name.text
    variable, array = _resolved(unit, directive, section)
    if array:
        return f"{{PWX_DATA_{kind}, {quoted(name)}, {array.address}, 0, 0}}"
    if rows := row_parts(unit, directive, section):
        table = "DELETE" if directive.construct == "exit data" else _TABLES.get(kind, kind)
        return f"{{PWX_DATA_{table}, {quoted(name)}, 0, {rows[0]}, {rows[1]} * sizeof({name}[0])}}"
    if not section.parts:
        address = name if variable.sizes or variable.pointee is not None else f"&{name}"
        return f"{{PWX_DATA_{kind}, {quoted(name)}, 0, (void *){address}, {_bytes_of(variable, name)}}}"
    parts = list(section.parts)
    while len(parts) > 1 and _is_whole(parts[-1], _size(variable, len(parts) - 1)):
        parts.pop()
    checks = ""
    if any(not _is_one(part) for part in parts[:-1]):  # whole rows of the first dimension
        for dimension in range(1, len(parts)):
            checks += f" * {_whole(directive, section, variable, dimension, parts[dimension])}"
        parts = parts[:1]
    subscripts = "".join(f"[{_first(part)}]" for part in parts)
    element = f"sizeof({name}{'[0]' * len(parts)})"
    count = _length(section, variable, len(parts) - 1, parts[-1])
    bytes_ = f"{count} * {element}{checks}"
    return f"{{PWX_DATA_{kind}, {quoted(name)}, 0, (void *)&{name}{subscripts}, {bytes_}}}"


def row_parts(unit: Unit, directive: d.Acc, section: clauses.Section) -> tuple[str, str, str, str] | None:
    """A section through pointers to pointers, as C text; None if it is none.

    Returns the address of the pointers, their number, and the offset and the bytes of the part of each row.
    """
    variable, array = _resolved(unit, directive, section)
    name, rank = section.name.text, _rank(variable, array)
    if len(section.parts) <= rank:
        return None
    first, row = section.parts
    count = _length(section, variable, 0, first)
    if row.length is None and not row.index:
        raise Refused(
            section.name.place, f"the length of the rows of '{name}' is not known; write [0:length]"
        )
    element = f"sizeof({name}[0][0])"
    length = "1" if row.length is None else f"({row.length.text})"
    return f"(void *)&{name}[{_first(first)}]", count, f"({_first(row)}) * {element}", f"{length} * {element}"


def has_rows(section: clauses.Section, variable: Variable) -> bool:
    """Is it a section through pointers to pointers?"""
    return len(section.parts) > _rank(variable, None)


def table_of(section: clauses.Section, variable: Variable) -> clauses.Section:
    """The section of the table of pointers alone, without the rows that these point to."""
    return replace(section, parts=section.parts[: _rank(variable, None)])


def again(name: str, part: str, kind: str) -> str:
    """The initialiser of a pwx_data with the same section as another one."""
    return f"{{PWX_DATA_{kind}, {quoted(name)}, 0, {part}.address, {part}.bytes}}"


def part(unit: Unit, directive: d.Acc, section: clauses.Section) -> str:
    """The pwx_section that an update copies, as C text; empty if it is all of a variable."""
    variable, array = _resolved(unit, directive, section)
    if variable.has_pointers:
        message = (
            f"an update of the pointers of '{section.name.text}' would mix those of the host and of the GPU; "
            f"name what they lead to, as in {section.name.text}[0:n][0:m]"
        )
        raise Refused(section.name.place, message)
    if all(_is_whole(bounds, _size(variable, n)) for n, bounds in enumerate(section.parts)):
        return ""
    name = section.name.text
    rank = _rank(variable, array)
    sizes = [
        f"{array.descriptor}.dim[{n}].size" if array else _extent(variable, name, n) for n in range(rank)
    ]
    dims = []
    for dimension in range(rank):
        bounds = section.parts[dimension] if dimension < len(section.parts) else clauses.Part()
        size = sizes[dimension]
        length = (
            "1" if bounds.index else bounds.length.text if bounds.length else f"({size}) - ({_first(bounds)})"
        )
        if not size:  # memory behind a pointer
            length = _length(section, variable, dimension, bounds)
            sizes[dimension] = f"({_first(bounds)}) + {length}"
        dims.append(f"{{{_first(bounds)}, {length}, 1, 0}}")
    where_ = f".array = {array.address}" if array else f".base = (void *){name}"
    size = (
        "" if array else f".element_bytes = sizeof({name}{'[0]' * rank}), .extent = {{{', '.join(sizes)}}}, "
    )
    return f"&(const pwx_section){{{where_}, {size}.ndims = {rank}, .dim = {{{', '.join(dims)}}}}}"


def sections_of(directives: list[d.Acc], kinds: Iterable[str]) -> dict[str, clauses.Section]:
    """The sections in clauses of these kinds, by name. The first directive, the innermost one, wins."""
    sections: dict[str, clauses.Section] = {}
    for directive in directives:
        for section in directive.named(*kinds):
            sections.setdefault(section.name.text, section)
    return sections


def address_of(section: clauses.Section) -> str:
    """The address at which a section begins, as C text."""
    return f"&{section.name.text}{''.join(f'[{_first(bounds)}]' for bounds in section.parts)}"


def _resolved(
    unit: Unit, directive: d.Acc, section: clauses.Section
) -> tuple[Variable, DistributedArray | None]:
    name = section.name
    variable = unit.syntax.variable(name.text, directive.file, directive.start)
    if variable is None:
        raise Refused(name.place, f"'{name.text}' is not declared")
    array = unit.scopes.of_variable(variable)
    if section.member and array is None:
        whole = name.text.partition(".")[0]
        raise Refused(
            name.place,
            f"a member of '{whole}' in a data clause is not supported yet; give it a pointer of its own, and "
            "name that in the clause and in the loop",
        )
    rank = _rank(variable, array)
    is_rows = rank == 1 and len(section.parts) == 2 and variable.has_pointers and array is None
    if len(section.parts) > rank and not is_rows:
        raise Refused(
            name.place,
            f"'{name.text}' has {counted(rank, 'dimension')}, "
            f"and {counted(len(section.parts), 'subscript')} here",
        )
    return variable, array


def _rank(variable: Variable, array: DistributedArray | None) -> int:
    if array:
        return len(array.dimensions)
    return len(variable.sizes) if variable.pointee is None else 1 + len(variable.pointee)


def _bytes_of(variable: Variable, name: str) -> str:
    """The size of a variable in bytes, as C text; 0 if only the run-time library can know it."""
    if variable.pointee is not None:
        return "0"
    if not variable.parameter or not variable.sizes:
        return f"sizeof({name})"
    if variable.sizes[0] is None:
        return "0"
    return f"{variable.sizes[0]} * sizeof({name}[0])"


def _size(variable: Variable, dimension: int) -> int | None:
    if variable.pointee is None:
        return variable.sizes[dimension]
    return variable.pointee[dimension - 1] if dimension else None


def _extent(variable: Variable, name: str, dimension: int) -> str:
    """The size of a dimension as C text; empty for the first dimension behind a pointer."""
    if dimension == 0:
        return str(variable.sizes[0]) if variable.sizes and variable.sizes[0] is not None else ""
    element = f"{name}{'[0]' * dimension}"
    return f"(long)(sizeof({element}) / sizeof({element}[0]))"


def _first(bounds: clauses.Part) -> str:
    return bounds.first.text if bounds.first else "0"


def _length(section: clauses.Section, variable: Variable, dimension: int, bounds: clauses.Part) -> str:
    """The length of one part of a section, as C text in brackets."""
    if bounds.index:
        return "(1)"
    if bounds.length is not None:
        return f"({bounds.length.text})"
    size = _size(variable, dimension)
    if size is not None:
        return f"({size} - ({_first(bounds)}))"
    if dimension:
        return f"({_extent(variable, section.name.text, dimension)} - ({_first(bounds)}))"
    name = section.name
    raise Refused(
        name.place,
        f"the length of this section of '{name.text}' is not known; write [{_first(bounds)}:length]",
    )


def length_of(section: clauses.Section, variable: Variable) -> str:
    """The length of a section in the first dimension, as C text in brackets."""
    return _length(section, variable, 0, section.parts[0])


def _is_one(bounds: clauses.Part) -> bool:
    return bounds.index or (bounds.length is not None and bounds.length.value == 1)


def _is_whole(bounds: clauses.Part, size: int | None) -> bool:
    """Is this part known to be all of a dimension?"""
    from_0 = not bounds.index and (bounds.first is None or bounds.first.value == 0)
    return from_0 and (bounds.length is None or (size is not None and bounds.length.value == size))


def _whole(
    directive: d.Acc, section: clauses.Section, variable: Variable, dimension: int, bounds: clauses.Part
) -> str:
    """The factor 1 as C text.

    Unless constants prove that the part is a whole dimension, evaluating the text checks it.
    """
    name, size = section.name, _size(variable, dimension)
    first = 0 if bounds.first is None else bounds.first.value
    length = 1 if bounds.index else bounds.length.value if bounds.length else None
    if (first or 0) != 0 or (size is not None and length is not None and length != size):
        raise Refused(
            name.place,
            f"this section of '{name.text}' is not contiguous, which a data clause needs; name whole rows",
        )
    if _is_whole(bounds, size):
        return "1"
    text = _length(section, variable, dimension, bounds)
    extent = _extent(variable, name.text, dimension)
    return f"pwx_whole({_first(bounds)}, {text}, {extent}, {quoted(name.text)}, {where(directive)})"
