"""Finds out what a use does with a variable: reads it, writes it, or takes its address."""

from __future__ import annotations

import ctypes
from typing import Any

from clang import cindex

from peerway_xacc.frontend.libclang import range_of, spelling
from peerway_xacc.frontend.source import Handed, Range, Use

_Kind = cindex.CursorKind
TRANSPARENT = (_Kind.UNEXPOSED_EXPR, _Kind.PAREN_EXPR)
# libclang's numbers of operators; its Python package has no names for them.
_INCREMENTS, _ADDRESS_OF, _DEREFERENCE, _ASSIGN = (1, 2, 3, 4), 5, 6, 22
_MOVES = (6, 7)  # plus and minus
ARRAYS = (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.VARIABLEARRAY, cindex.TypeKind.INCOMPLETEARRAY)


def dimensions(kind: Any) -> tuple[tuple[int | None, ...], Any]:
    """The sizes of an array type, and the type of its elements."""
    sizes: list[int | None] = []
    while (kind := _resolved_type(kind)).kind in ARRAYS:
        sizes.append(kind.element_count if kind.kind == cindex.TypeKind.CONSTANTARRAY else None)
        kind = kind.element_type
    return tuple(sizes), kind


def written_dimensions(kind: Any) -> int:
    """The number of an array's dimensions that are in its declarator, not in a named type."""
    count = 0
    while kind.kind in ARRAYS:
        kind, count = kind.element_type, count + 1
    return count


def _resolved_type(kind: Any) -> Any:
    """Resolve a named type of an array or a pointer; other types keep their names."""
    opened = (*ARRAYS, cindex.TypeKind.POINTER)
    canonical = kind.get_canonical()
    return canonical if kind.kind not in opened and canonical.kind in opened else kind


def spelled(cursor: Any, length: int) -> Range:
    """The range of a name that a macro produced: in the macro's argument, or else where the macro is used."""
    offset = ctypes.c_uint()
    file, line, column = cindex.c_object_p(), ctypes.c_uint(), ctypes.c_uint()
    cindex.conf.lib.clang_getFileLocation(
        cursor.location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset)
    )
    return Range(offset.value, offset.value + length)


def context(cursor: Any, use: Use, parents: list[Any]) -> None:  # noqa: C901
    """Find out what is done with a variable: walk outwards over its subscripts to what uses the element."""
    inner = element = cursor
    pointer = use.variable.pointee is not None
    for at in range(len(parents) - 1, -1, -1):
        outer = parents[at]
        kind = outer.kind
        if kind == _Kind.ARRAY_SUBSCRIPT_EXPR:
            first, second = list(outer.get_children())
            if range_of(first) != range_of(inner):
                break
            use.subscripts.append(range_of(second))
        elif kind == _Kind.MEMBER_REF_EXPR:
            use.subscripts.append(Range(-1, -1))  # marks that the subscripts after it belong to the member
        elif pointer and kind == _Kind.UNARY_OPERATOR and _operator_of(outer) == _DEREFERENCE:
            use.subscripts.append(Range(-1, -1))  # *a and *(a + i) are elements, too
        elif pointer and kind == _Kind.BINARY_OPERATOR and _is_moved(outer, inner):
            pass
        elif kind == _Kind.CALL_EXPR:
            _argument(use, outer, inner)
            break
        elif kind in (_Kind.BINARY_OPERATOR, _Kind.COMPOUND_ASSIGNMENT_OPERATOR):
            use.written = _is_assigned(outer, inner)
            break
        elif kind == _Kind.UNARY_OPERATOR:
            _unary(use, outer, parents[:at])
            break
        elif kind == _Kind.CXX_UNARY_EXPR:
            use.in_sizeof = True
            return
        elif kind not in TRANSPARENT:
            break
        inner = outer
        if kind not in TRANSPARENT:
            element = outer
    use.aliased = element.type.kind in (*ARRAYS, cindex.TypeKind.POINTER) and not use.in_sizeof
    if element.type.kind in ARRAYS:  # an array becomes a pointer to its first element
        use.address = True
        if use.argument is not None:
            _record_passed_address(use, parents[: at + 1], inner)


def _is_assigned(outer: Any, inner: Any) -> bool:
    """Is this the left side of an assignment?"""
    first = next(iter(outer.get_children()))
    return range_of(first) == range_of(inner) and (
        outer.kind == _Kind.COMPOUND_ASSIGNMENT_OPERATOR
        or cindex.conf.lib.clang_getCursorBinaryOperatorKind(outer) == _ASSIGN
    )


def _unary(use: Use, outer: Any, parents: list[Any]) -> None:
    """Record the effect of a unary operator on an element."""
    operator = _operator_of(outer)
    use.address = use.address_of = operator == _ADDRESS_OF
    use.written = use.address or operator in _INCREMENTS
    if use.address and parents:
        _record_passed_address(use, parents, outer)


def _operator_of(cursor: Any) -> int:
    return int(cindex.conf.lib.clang_getCursorUnaryOperatorKind(cursor))


def _is_moved(outer: Any, inner: Any) -> bool:
    """Is this a pointer, or an array, plus or minus a number?"""
    kinds = (*ARRAYS, cindex.TypeKind.POINTER)
    return (
        outer.type.kind == cindex.TypeKind.POINTER
        and inner.type.kind in kinds
        and cindex.conf.lib.clang_getCursorBinaryOperatorKind(outer) in _MOVES
    )


def _argument(use: Use, call: Any, inner: Any) -> None:
    arguments = [range_of(argument) for argument in call.get_arguments()]
    if range_of(inner) in arguments:  # compare ranges: cursors of one node differ by how they were reached
        use.argument = range_of(inner)
        use.callee = spelling(call)
        use.position = arguments.index(range_of(inner))


def _record_passed_address(use: Use, parents: list[Any], address: Any) -> None:
    """If an address is an argument of a call, record the function that gets it."""
    call = next((parent for parent in reversed(parents) if parent.kind not in TRANSPARENT), None)
    if call is None or call.kind != _Kind.CALL_EXPR:
        return
    arguments = [range_of(argument) for argument in call.get_arguments()]
    if range_of(address) not in arguments:
        return
    position = arguments.index(range_of(address))
    types = list(call.referenced.type.argument_types()) if _is_function(call.referenced) else []
    reads = position < len(types) and _constant_behind(types[position])
    use.handed = Handed(spelling(call), position, reads)


def of_system(cursor: Any) -> bool:
    """Is this a call of a function that a system header declares?"""
    called: Any = cursor.referenced if cursor.kind == _Kind.CALL_EXPR else None
    return _is_function(called) and bool(called.location.is_in_system_header)


def _is_function(cursor: Any) -> bool:
    if cursor is None or cursor.kind != _Kind.FUNCTION_DECL:
        return False
    return bool(cursor.type.kind == cindex.TypeKind.FUNCTIONPROTO)


def _constant_behind(kind: Any) -> bool:
    """Does a pointer type point to constants?"""
    kind = kind.get_canonical().get_pointee()
    while kind.kind in ARRAYS:
        kind = kind.element_type
    return bool(kind.is_const_qualified())
