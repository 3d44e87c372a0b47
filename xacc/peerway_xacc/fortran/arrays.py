"""Distributed arrays: each is a Fortran pointer into the run time's memory, with the bounds of a node's part.

So a subscript stays global, and the program's text with it. The pointer is set where the scope that declares
the array begins to execute, where the program allocates it, or where its template is fixed.
"""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran import components
from peerway_xacc.fortran.coarray_memory import coarray_call
from peerway_xacc.fortran.declarations import Dimension, Entity, Mention
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import Alias, FortranUnit
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import at, numbers

_DROPPED = {
    "dimension",
    "allocatable",
    "pointer",
    "target",
    "codimension",
    "contiguous",
    "intent",
    "optional",
}
_IMPOSSIBLE = {
    "common": "is in a COMMON block",
    "equivalence": "shares memory by EQUIVALENCE",
    "parameter": "is a constant",
    "codimension": "is a coarray",
    "value": "is passed by value",
}
_MOST_DIMENSIONS = 7


def declared_in(array: DistributedArray) -> tuple[Scope, Entity]:
    """The scope and the declaration of a distributed array."""
    scope = array.function
    assert isinstance(scope, Scope)
    return scope, scope.entities[array.name]


def check(array: DistributedArray) -> None:
    """Raises Refused for an array that cannot be distributed."""
    if not isinstance(array.function, Scope) or array.name not in array.function.entities:
        raise Refused(array.place, f"'{array.name}' is declared in another scope; align it there")
    scope, entity = declared_in(array)
    note = (entity.word.place, f"'{array.name}' is declared here")
    for attribute, text in _IMPOSSIBLE.items():
        if attribute in entity.attributes or (attribute == "codimension" and entity.images is not None):
            advice = "; move it to a module" if attribute == "common" else ""
            message = f"'{array.name}' {text}, so it cannot be distributed{advice}"
            raise Refused(array.place, message, note)
    shaped = [dimension for dimension in entity.dimensions or [] if dimension.upper is None]
    if shaped and not entity.deferred and not is_dummy(scope, array.name):
        raise Refused(array.place, f"'{array.name}' has no bounds; give them, as in {array.name}(n)", note)
    if scope.parent is None and not entity.deferred and any(not dimension.assumed for dimension in shaped):
        message = (
            f"'{array.name}' is an assumed-shape array; a procedure outside of modules and programs can have "
            f"aligned ones only with bounds, as in {array.name}(n)"
        )
        raise Refused(array.place, message, note)
    if array.name == scope.result_name and scope.kind == "function":
        raise Refused(
            array.place, f"'{array.name}' is the value of a function and cannot be distributed", note
        )


def is_dummy(scope: Scope, name: str) -> bool:
    """Is a name a dummy argument of a procedure?"""
    return any(dummy.text == name for dummy in scope.dummies)


def redeclare(unit: FortranUnit, array: DistributedArray) -> None:
    """Declare an array as a pointer, in the place of its declaration."""
    scope, entity = declared_in(array)
    rank = len(entity.dimensions or ())
    if entity.component:
        components.redeclare(unit, scope, entity, rank)
        return
    kept = sorted(
        attribute
        for attribute in entity.attributes - _DROPPED
        if attribute in ("public", "private", "save", "protected")
    )
    attributes = "".join(f", {attribute}" for attribute in kept)
    lives_on = scope.kind in ("module", "program") or "save" in entity.attributes
    start = " => null()" if lives_on else ""
    declared = f"{type_of(entity)}, pointer, contiguous{attributes} :: {array.name}({_colons(rank)}){start}"
    lines = [declared]
    if is_dummy(scope, array.name):
        replace_dummy(unit, scope, entity, [*lines, f"{type_of(entity)} :: {argument_of(array.name)}(*)"])
    else:
        replace_declaration(unit, entity, lines)


def replace_dummy(unit: FortranUnit, scope: Scope, entity: Entity, lines: list[str]) -> None:
    """Declare a dummy argument otherwise; in the header it has the name of `argument_of`."""
    word = next(dummy for dummy in scope.dummies if dummy.text == entity.name)
    unit.generated.edit(scope.header, word.start, word.end, argument_of(entity.name))
    replace_declaration(unit, entity, lines)


def replace_declaration(unit: FortranUnit, entity: Entity, lines: list[str]) -> None:
    """Take a variable's declarations out, and put these lines in their place."""
    mentions = [entity.typed] if entity.typed else []
    others = [mention for mention in entity.others if _drops(mention)]
    last = (mentions + others)[-1] if entity.typed is None else entity.typed
    assert last is not None
    unit.generated.behind(last.logical.number, *lines)
    for mention in [*mentions, *others]:
        _take_out(unit, mention)


def argument_of(name: str) -> str:
    """What the dummy argument is called whose name is a pointer's."""
    return f"pwx_{name}"


def _colons(rank: int) -> str:
    return ",".join(":" * rank)


def _drops(mention: Mention) -> bool:
    first = mention.logical.text.split("(")[0].split()[0].lower().rstrip(":")
    return first in _DROPPED


def type_of(entity: Entity) -> str:
    """The type of a name as text; without a declaration that of its first letter."""
    if entity.type_text:
        return entity.type_text
    return "integer" if entity.name[0] in "ijklmn" else "real"


def _take_out(unit: FortranUnit, mention: Mention) -> None:
    """Take a name out of the list of a declaration; a list of which nothing stays goes as a whole."""
    logical = mention.logical
    number = logical.number
    gone = unit.taken_out.setdefault(number, set())
    gone.add(mention.number)
    if len(gone) == len(mention.items):
        unit.generated.remove(number)
        return
    unit.generated.drop_items(number, mention.items, gone)


# ---- descriptors ----


def _bounds(dimensions: list[Dimension], arguments: Arguments) -> tuple[list[str], list[str]]:
    """Lower bounds and sizes in C's order, as C text."""
    lower, sizes = [], []
    for dimension in dimensions[::-1]:
        first = dimension.lower or "1"
        low = first if first.lstrip("-").isdigit() else arguments.c_text(first)
        if dimension.upper is None:  # of a dummy argument, which has the size of its actual one
            lower.append(low)
            sizes.append("0")
            continue
        up = dimension.upper if dimension.upper.isdigit() else arguments.c_text(dimension.upper)
        lower.append(low)
        sizes.append(f"{up} - ({low}) + 1")
    return lower, sizes


def make(array: DistributedArray, dimensions: list[Dimension], arguments: Arguments, how: str) -> list[str]:
    """C that fills an array's descriptor; `how` is init, enter, bind for a dummy argument, or point."""
    assert array.template is not None
    rank = len(dimensions)
    lower, sizes = _bounds(dimensions, arguments)
    name = argument_of(array.name) if how == "bind" else array.name
    element = arguments.c_text(f"storage_size({name})/8")
    low = f"{array.symbol}__lb"
    aligned = [-1 if match is None else match[0] for match in array.dimensions]
    offsets = [
        "0" if match is None else f"({match[1]}) + {low}[{d}]" for d, match in enumerate(array.dimensions)
    ]
    shadows = [array.shadow(dimension) for dimension in range(rank)]
    is_bound = how in ("bind", "point")
    call = f"pwx_bind({array.address}, c0, " if is_bound else f"pwx_array_{how}({array.address}, "
    return [
        *(f"{low}[{d}] = {text};" for d, text in enumerate(lower)),
        f"{array.descriptor}.lower = {low};",
        f"{call}{quoted(array.name)}, (size_t)({element}), {rank}, {numbers(sizes)}, "
        f"{array.template.address}, {numbers([str(dimension) for dimension in aligned], 'int')}, "
        f"{numbers(offsets)}, {numbers([text for text, _ in shadows])}, "
        f"{numbers([text for _, text in shadows])}, "
        f"{at(array.place)});",
    ]


def attach(unit: FortranUnit, scope: Scope, array: DistributedArray) -> list[str]:
    """Statements that let an array's pointer lead to its memory."""
    rank = len(array.dimensions)
    call = Call(
        unit.name("at"), [f"return pwx_f_memory({array.address}, {array.symbol}__lb, c0, c1);"],
        others=[("numbers", "pwx_e"), ("numbers", "pwx_l")], pointer=True,
    )  # fmt: skip
    unit.needs_pointers.add(scope.number)
    text = unit.generated.call(scope, call)
    bounds = ", ".join(f"pwx_l({number}):" for number in range(1, rank + 1))
    return [
        f"pwx_p = {text}",
        f"call pwx_c_f_pointer(pwx_p, {array.name}, pwx_e(1:{rank}))",
        f"{array.name}({bounds}) => {array.name}",
        *(line for alias in unit.aliases.get(id(array), []) for line in _alias(unit, scope, array, alias)),
    ]


def _alias(unit: FortranUnit, scope: Scope, array: DistributedArray, alias: Alias) -> list[str]:
    """Statements that let a local alias lead to an array's part, and set it up as a coarray."""
    entity = alias.entity
    lowers = [dimension.lower or "1" for dimension in entity.dimensions or ()]
    lines = [f"{entity.name}({', '.join(f'{lower}:' for lower in lowers)}) => {array.name}"]
    if entity.images is not None:
        call = coarray_call(unit, alias.scope, entity, lowers, array.place, "alias")
        lines.append(unit.generated.call(scope, call))
    return lines


def declare_pointers(unit: FortranUnit) -> None:
    """What scopes need that let pointers lead to memory."""
    for scope in unit.structure.scopes:
        if scope.number in unit.needs_pointers:
            unit.generated.declare(scope, "type(pwx_c_ptr) :: pwx_p", "integer(8) :: pwx_e(7), pwx_l(7)")


POINTERS = "use, intrinsic :: iso_c_binding, only: pwx_c_ptr => c_ptr, pwx_c_f_pointer => c_f_pointer"
