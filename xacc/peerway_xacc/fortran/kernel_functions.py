"""Functions and subroutines of the program that kernels call, as functions of C before the kernel.

A scalar that a procedure changes is passed by its address, and has its own copy inside: Fortran lets nobody
else use it meanwhile. An array is passed by the address of its first element.
"""

from __future__ import annotations

from peerway_xacc.fortran.blocks import CallOf
from peerway_xacc.fortran.c_names import c_name
from peerway_xacc.fortran.intrinsic_types import Type
from peerway_xacc.fortran.kernel_names import KernelNames
from peerway_xacc.fortran.procedure_names import ProcedureNames
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.values import Value, converted
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused, counted

_DEEPEST = 20


class Procedures:
    """The procedures of a file, as a kernel's statements call them."""

    def __init__(self, unit: FortranUnit) -> None:
        self._unit = unit
        self._depth = 0

    def value(self, names: KernelNames, word: Word, parts: list[list[Word]]) -> Value:
        """A call of a function. Raises Refused where a kernel cannot have it."""
        procedure = self._read(names, word, "function", parts)
        kind = procedure.result_type(word)
        return Value(self._call(names, procedure, word, parts, kind), kind)

    def statement(self, names: KernelNames, node: CallOf) -> str:
        """A call of a subroutine, as a statement of C."""
        procedure = self._read(names, node.name, "subroutine", node.arguments)
        return f"{self._call(names, procedure, node.name, node.arguments, None)};"

    def changed(self, names: KernelNames, node: CallOf) -> list[Word]:
        """The variables and arrays of the caller that a call changes."""
        procedure = self._read(names, node.name, "subroutine", node.arguments)
        arguments = zip(procedure.scope.dummies, node.arguments, strict=True)
        return [part[0] for dummy, part in arguments if procedure.changes(dummy)]

    def _read(self, names: KernelNames, word: Word, kind: str, parts: list[list[Word]]) -> ProcedureNames:
        scope = _procedure(self._unit, names.scope, word.text, kind)
        if scope is None:
            message = f"the {kind} '{word.text}' is not in this file, so a kernel cannot call it"
            raise Refused(word.place, message)
        if self._depth > _DEEPEST:
            raise Refused(word.place, f"'{word.text}' calls itself, which kernels do not have")
        if len(parts) != len(scope.dummies):
            message = f"'{word.text}' has {counted(len(scope.dummies), 'argument')}, and {len(parts)} here"
            raise Refused(word.place, message)
        procedure = ProcedureNames(
            names.unit, scope, names.types, functions=names.functions, procedures=names.procedures
        )
        self._depth += 1
        procedure.read()
        self._depth -= 1
        return procedure

    def _call(
        self,
        names: KernelNames,
        procedure: ProcedureNames,
        word: Word,
        parts: list[list[Word]],
        kind: Type | None,
    ) -> str:
        scope = procedure.scope
        name = f"pwf_of_{scope.name}_{scope.number}"
        arguments = zip(scope.dummies, parts, strict=True)
        texts = [_argument(names, procedure, dummy, part) for dummy, part in arguments]
        if name not in names.functions:
            self._depth += 1
            text = procedure.text(name, kind, word)
            self._depth -= 1
            names.functions[name] = text
        return f"{name}({', '.join(texts)})"


def _procedure(unit: FortranUnit, scope: Scope, name: str, kind: str) -> Scope | None:
    """The procedure that a name means: of the program units around, of the modules that they use, or, of
    subroutines, of the file.
    """
    outside: list[Scope | None] = [None] if kind == "subroutine" else []
    for around in scope.chain():
        places = [around, *(unit.fortran.module(module) for module, _ in around.modules)]
        for place in [*(place for place in places if place), *(outside if around.parent is None else [])]:
            for other in unit.structure.scopes:
                if other.kind == kind and other.name == name and other.parent is place:
                    return None if other.foreign else other
    return None


def _argument(names: KernelNames, procedure: ProcedureNames, dummy: Word, part: list[Word]) -> str:
    """An argument as C text."""
    wanted = procedure.type_of(dummy)
    if procedure.is_array(dummy):
        return _address(names, dummy, part, wanted, procedure.scope.name)
    value = names.expressions.read(part)
    if not procedure.changes(dummy):
        return converted(value, wanted, part[0])
    is_variable = value.text == c_name(part[0].text) or _is_part(names, part)
    if not is_variable or value.type != wanted:
        message = f"'{procedure.scope.name}' changes its argument '{dummy.text}', so a variable of "
        raise Refused(part[0].place, f"{message}{wanted.fortran} must be here")
    return f"&{value.text}"


def _is_part(names: KernelNames, part: list[Word]) -> bool:
    """Are these words an element of an array or a component?"""
    at = 1
    while at < len(part) and (part[at].text == "(" or part[at].kind == "component"):
        at = closing(part, at) + 1
    if part[0].kind != "name" or at < len(part) or len(part) == 1:
        return False
    return part[1].kind == "component" or names.is_array(part[0])


def _component(names: KernelNames, part: list[Word]) -> bool:
    """Is a component the last of these words, or the last before subscripts?"""
    return _is_part(names, part) and any(word.kind == "component" for word in _outside(part))


def _outside(part: list[Word]) -> list[Word]:
    """The words that are in no parentheses."""
    outside, at = [], 0
    while at < len(part):
        outside.append(part[at])
        at = closing(part, at) + 1
    return outside


def _address(names: KernelNames, dummy: Word, part: list[Word], wanted: Type, procedure: str) -> str:
    word = part[0]
    if _component(names, part):
        value = names.expressions.array_of(part)
        if value.type != wanted:
            message = f"argument '{dummy.text}' of '{procedure}' is of {wanted.fortran}, and this of "
            raise Refused(word.place, message + value.type.fortran)
        return f"&{value.text}" if part[-1].text == ")" else value.text
    if not names.is_array(word):
        raise Refused(word.place, f"argument '{dummy.text}' of '{procedure}' is an array")
    kind = names.type_of(word)
    if kind != wanted:
        message = f"argument '{dummy.text}' of '{procedure}' is of {wanted.fortran}, and '{word.text}' of "
        raise Refused(word.place, message + kind.fortran)
    if len(part) > 1:
        element = f"&{names.expressions.read(part).text}"
        return f"({kind.c_text}*)pwf_at_16({element})" if _is_at_16(names, word, part, kind) else element
    distributed = names.unit.array_at(word.text, names.scope)
    if distributed and word.text not in names.own_arrays:
        message = f"'{word.text}' is a distributed array; pass the element where the argument begins, as in "
        raise Refused(word.place, f"{message}{word.text}(1, j)")
    names.array(word)
    return c_name(word.text)


def _is_at_16(names: KernelNames, word: Word, part: list[Word], kind: Type) -> bool:
    """Is an element of a distributed array at a multiple of 16 bytes, wherever it is but in its first
    dimension?
    """
    if names.unit.array_at(word.text, names.scope) is None or word.text in names.own_arrays:
        return False
    if kind.base == "type":  # C knows its size
        return False
    array = names.array(word)
    numbers = [array.extents[0].rstrip("L"), array.lower[0].strip("()").rstrip("L")]
    first = split(part[2:-1], ",")[0]
    subscript = names.types.integer(names.scope, " ".join(other.text for other in first))
    if subscript is None or not all(number.lstrip("-").isdigit() for number in numbers):
        return False
    extent, lower = (int(number) for number in numbers)
    return extent * kind.bytes % 16 == 0 and (subscript - lower) * kind.bytes % 16 == 0
