"""Types, scopes and statements of a translation unit, read from libclang once and kept as plain objects."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from clang import cindex

from peerway.cc.diagnostics import Diagnostics, Place
from peerway.cc.preprocess import Texts
from peerway.cc.tokens import scan

_Kind = cindex.CursorKind
_TRANSPARENT = (_Kind.UNEXPOSED_EXPR, _Kind.PAREN_EXPR)
_TYPES = (_Kind.TYPEDEF_DECL, _Kind.STRUCT_DECL, _Kind.UNION_DECL, _Kind.ENUM_DECL)
_MARKS = {
    _Kind.CALL_EXPR: "call", _Kind.BREAK_STMT: "break", _Kind.CONTINUE_STMT: "continue",
    _Kind.RETURN_STMT: "return", _Kind.GOTO_STMT: "goto", _Kind.INDIRECT_GOTO_STMT: "goto",
}  # fmt: skip
# libclang's numbers of operators, whose names its Python package does not have.
_INCREMENTS, _ADDRESS_OF, _ASSIGN = (1, 2, 3, 4), 5, 22
_ARRAYS = (cindex.TypeKind.CONSTANTARRAY, cindex.TypeKind.VARIABLEARRAY, cindex.TypeKind.INCOMPLETEARRAY)


@dataclass(frozen=True)
class Range:
    """Offsets in a file: from the first character to behind the last."""

    start: int
    end: int


@dataclass
class Variable:
    """A declared variable or parameter; `sizes` are its dimensions, None where they are no constants.

    `declarator` reaches from the name to behind the brackets. Of a pointer `pointee` are the dimensions of
    what it points to.
    """

    name: str
    file: str
    declarator: Range
    element: str
    sizes: tuple[int | None, ...]
    parameter: bool
    file_scope: bool
    static: bool
    external: bool
    initialised: bool
    constant: bool
    visible_until: int
    scalar: bool
    spelling: str = ""  # of its elements' type, as written
    pointee: tuple[int | None, ...] | None = None
    uses: list[Use] = field(default_factory=list)


@dataclass(frozen=True)
class Handed:
    """An address as an argument: of which function, which one, and whether the function may write there."""

    callee: str
    position: int
    reads: bool


@dataclass
class Use:
    """A place where a variable is named in a function's body.

    `subscripts` are the ranges of the expressions in the brackets behind it; `argument` is the range of
    the argument of a call that it is, `callee` the name of that function and `position` which argument.
    `address`: not the value is used, but where it lies; `handed` is the call that this is an argument of.
    """

    variable: Variable
    function: Function
    range: Range
    macro: bool
    subscripts: list[Range] = field(default_factory=list)
    argument: Range | None = None
    callee: str = ""
    position: int = 0
    written: bool = False
    in_sizeof: bool = False
    address: bool = False
    handed: Handed | None = None


@dataclass(frozen=True)
class Mark:
    """A call, or a jump (break, continue, return, goto), and where it begins; `name` is the function's."""

    kind: str
    name: str
    start: int


@dataclass
class Function:
    """A function's definition: offsets of all of it and of its body's braces, its calls and jumps."""

    name: str
    file: str
    whole: Range
    body: Range
    parameters: list[Variable]
    uses: list[Use] = field(default_factory=list)
    used: dict[str, Variable] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class TypeText:
    """A declaration of a type outside functions: what it names, and where its text is."""

    names: frozenset[str]
    file: str
    range: Range


@dataclass(frozen=True)
class Statement:
    """A statement in a function's body."""

    kind: str
    start: int
    end: int
    depth: int


class Syntax:
    """What libclang says of a file. Errors of the program are the C compiler's to report, not ours."""

    def __init__(self, file: str, text: str, arguments: list[str], texts: Texts) -> None:
        index = cindex.Index.create()
        self.file = file
        self._unit = index.parse(file, args=arguments, unsaved_files=[(file, text)])
        self._text = text
        self.functions: list[Function] = []
        self.globals: dict[str, list[Variable]] = {}
        self.locals: list[tuple[Variable, Function]] = []
        self.functions_known: dict[str, list[str]] = {}
        self.constants: dict[str, int] = {}
        self.types: list[TypeText] = []
        self._statements: dict[str, list[Statement]] = {}
        self._variables: dict[int, list[tuple[Any, Variable]]] = {}
        self._first: dict[str, int] = {}
        for cursor in self._unit.cursor.get_children():
            if not cursor.location.is_in_system_header and cursor.location.file:
                source = str(cursor.location.file)
                self._first.setdefault(source, _range(cursor).start)
                self._text = text if source == file else texts.of(source).text
                self._top(cursor)
        for statements in self._statements.values():
            statements.sort(key=lambda statement: (statement.start, -statement.end, statement.depth))

    def errors(self, found: Diagnostics) -> None:
        """Keep what libclang found wrong with the program."""
        for diagnostic in self._unit.diagnostics:
            if diagnostic.severity >= cindex.Diagnostic.Error:
                at = diagnostic.location
                if at.file and at.is_in_system_header:
                    continue
                file = str(at.file) if at.file else self.file
                found.error(Place(file, at.line, at.column), diagnostic.spelling)

    def statement_after(self, file: str, offset: int, function: Function) -> Statement | None:
        """The statement that begins next behind an offset of a function's body; the outermost of those."""
        statements = self._statements.get(file, [])
        at = bisect_left(statements, offset, key=lambda statement: statement.start)
        if at == len(statements) or statements[at].start >= function.body.end:
            return None
        return statements[at]

    def enclosing_block(self, file: str, offset: int) -> Statement | None:
        """The innermost block in braces around an offset."""
        blocks = [
            statement
            for statement in self._statements.get(file, [])
            if statement.kind == "block" and statement.start < offset < statement.end
        ]
        return max(blocks, key=lambda statement: statement.start, default=None)

    def around(self, file: str, offset: int) -> list[Statement]:
        """The statements that an offset is in, the outermost first."""
        return [one for one in self._statements.get(file, []) if one.start <= offset < one.end]

    def loops_in(self, file: str, statement: Statement) -> list[Statement]:
        """The `for` statements in a statement, itself included, outer ones first."""
        return [
            other
            for other in self._statements.get(file, [])
            if other.kind == "for" and statement.start <= other.start and other.end <= statement.end
        ]

    def children(self, file: str, inside: Range) -> list[Statement]:
        """The outermost statements in a range."""
        found: list[Statement] = []
        for statement in self._statements.get(file, []):
            if statement.start < inside.start or statement.end > inside.end:
                continue
            if not found or statement.start >= found[-1].end:
                found.append(statement)
        return found

    def function_at(self, file: str, offset: int) -> Function | None:
        """The function whose body an offset is in."""
        for function in self.functions:
            if function.file == file and function.body.start < offset < function.body.end:
                return function
        return None

    def first_declaration(self, file: str) -> int:
        """The offset at which a file's first declaration begins; that of its end, if it has none."""
        return self._first.get(file, len(self._text))

    def variable(self, name: str, file: str, offset: int) -> Variable | None:
        """The variable that a name means at an offset."""
        function = self.function_at(file, offset)
        if function:
            seen = [
                variable
                for variable, of in self.locals
                if of is function and variable.name == name
                and variable.declarator.start < offset < variable.visible_until
            ]  # fmt: skip
            if seen:
                return max(seen, key=lambda variable: variable.declarator.start)
        found = self.globals.get(name, [])
        defined = [variable for variable in found if not variable.external] or found
        return defined[0] if defined else None

    # ---- reading

    def _top(self, cursor: Any) -> None:
        if cursor.kind in _TYPES:
            self._type(cursor)
        if cursor.kind == _Kind.ENUM_DECL:
            for constant in cursor.get_children():
                self.constants[constant.spelling] = constant.enum_value
        elif cursor.kind == _Kind.VAR_DECL:
            variable = self._declared(cursor, True, len(self._text) + 1)
            self.globals.setdefault(variable.name, []).append(variable)
        elif cursor.kind == _Kind.FUNCTION_DECL:
            self._function(cursor)

    def _type(self, cursor: Any) -> None:
        names = {cursor.spelling, *(child.spelling for child in cursor.get_children())}
        if cursor.kind in (_Kind.STRUCT_DECL, _Kind.UNION_DECL):
            names = {cursor.spelling}
        made = TypeText(frozenset(names), str(cursor.location.file), _range(cursor))
        if self.types:  # `typedef struct S { … } T;` is told twice: of the struct, then of the whole
            last = self.types[-1]
            if last.file == made.file and made.range.start <= last.range.start < made.range.end:
                self.types.pop()
                made = TypeText(last.names | made.names, made.file, made.range)
        self.types.append(made)

    def _function(self, cursor: Any) -> None:
        body = next((child for child in cursor.get_children() if child.kind == _Kind.COMPOUND_STMT), None)
        parameters = [child for child in cursor.get_children() if child.kind == _Kind.PARM_DECL]
        if body is None:
            self.functions_known.setdefault(cursor.spelling, [])
            return
        whole, inner = _range(cursor), _range(body)
        function = Function(cursor.spelling, str(body.location.file), whole, inner, [])
        for parameter in parameters:
            if parameter.spelling:
                variable = self._declared(parameter, False, inner.end)
                function.parameters.append(variable)
                self.locals.append((variable, function))
        self.functions_known[function.name] = [variable.name for variable in function.parameters]
        self.functions.append(function)
        self._walk(body, function, [cursor], inner.end, 0)

    def _declared(self, cursor: Any, file_scope: bool, until: int) -> Variable:
        sizes, kind = _dimensions(cursor.type)
        scalar = not sizes and kind.get_canonical().kind != cindex.TypeKind.RECORD
        pointee = None
        if not sizes and kind.kind == cindex.TypeKind.POINTER:
            pointee, kind = _dimensions(kind.get_pointee())
        extent = _range(cursor)
        start = cursor.location.offset
        canonical = kind.get_canonical()
        initialised = cursor.kind == _Kind.VAR_DECL and self._has_initialiser(start, extent.end)
        variable = Variable(
            name=cursor.spelling,
            file=str(cursor.location.file),
            declarator=Range(start, extent.end),
            element=canonical.spelling.replace("const ", "").strip(),
            sizes=sizes,
            parameter=cursor.kind == _Kind.PARM_DECL,
            file_scope=file_scope,
            static=cursor.storage_class == cindex.StorageClass.STATIC,
            external=cursor.storage_class == cindex.StorageClass.EXTERN,
            initialised=initialised,
            constant=kind.is_const_qualified(),
            visible_until=until,
            scalar=scalar,
            spelling=" ".join(word for word in kind.spelling.split() if word not in ("const", "volatile")),
            pointee=pointee,
        )
        self._variables.setdefault(cursor.hash, []).append((cursor, variable))
        return variable

    def _has_initialiser(self, start: int, end: int) -> bool:
        depth = 0
        for letter in self._text[start:end]:
            depth += (letter in "([{") - (letter in ")]}")
            if letter == "=" and depth == 0:
                return True
        return False

    def _known(self, cursor: Any) -> Variable | None:
        canonical = cursor
        for kept, variable in self._variables.get(canonical.hash, []):
            if kept == canonical:
                return variable
        return None

    def _walk(self, cursor: Any, function: Function, parents: list[Any], until: int, depth: int) -> None:
        kind = cursor.kind
        if kind in _MARKS and not _of_system(cursor):
            function.marks.append(Mark(_MARKS[kind], cursor.spelling, _range(cursor).start))
        if kind.is_statement():
            extent = _range(cursor)
            self._note(kind, extent, function, depth)
            if kind in (_Kind.COMPOUND_STMT, _Kind.FOR_STMT):
                until = extent.end
        elif kind == _Kind.VAR_DECL:
            self.locals.append((self._declared(cursor, False, until), function))
        elif kind == _Kind.DECL_REF_EXPR:
            self._use(cursor, function, parents)
            return
        elif kind == _Kind.ENUM_DECL:
            self._top(cursor)
        parents.append(cursor)
        block = kind in (_Kind.COMPOUND_STMT, _Kind.FOR_STMT, _Kind.IF_STMT, _Kind.WHILE_STMT, _Kind.DO_STMT)
        for child in cursor.get_children():
            if block and child.kind.is_expression():  # an expression as a statement, or in a header
                self._note(child.kind, _range(child), function, depth + 1)
            self._walk(child, function, parents, until, depth + 1)
        parents.pop()

    def _note(self, kind: Any, extent: Range, function: Function, depth: int) -> None:
        names = {_Kind.COMPOUND_STMT: "block", _Kind.FOR_STMT: "for", _Kind.DECL_STMT: "declaration"}
        name = names.get(kind, "statement")
        end = extent.end
        if name != "block":
            following = next(iter(scan(self._text, end, min(len(self._text), end + 200))), None)
            if following and following.text == ";" and self._text[end - 1] != ";":
                end = following.end  # libclang's statements end before it
        self._statements.setdefault(function.file, []).append(Statement(name, extent.start, end, depth))

    def _use(self, cursor: Any, function: Function, parents: list[Any]) -> None:
        target = cursor.referenced
        variable = self._known(target) if target is not None else None
        if variable is None:
            return
        extent = _range(cursor)
        macro = self._text[extent.start : extent.start + len(variable.name)] != variable.name
        if macro:
            extent = _spelled(cursor, len(variable.name))
        use = Use(variable, function, extent, macro)
        self._context(cursor, use, parents)
        variable.uses.append(use)
        function.uses.append(use)
        function.used.setdefault(variable.name, variable)

    def _context(self, cursor: Any, use: Use, parents: list[Any]) -> None:
        """What is done with a variable: walk outwards over its subscripts to what uses the element."""
        inner = element = cursor
        for at in range(len(parents) - 1, -1, -1):
            outer = parents[at]
            kind = outer.kind
            if kind == _Kind.ARRAY_SUBSCRIPT_EXPR:
                first, second = list(outer.get_children())
                if _range(first) != _range(inner):
                    break
                use.subscripts.append(_range(second))
            elif kind == _Kind.MEMBER_REF_EXPR:
                use.subscripts.append(Range(-1, -1))  # what follows are the member's own subscripts
            elif kind == _Kind.CALL_EXPR:
                self._argument(use, outer, inner)
                break
            elif kind in (_Kind.BINARY_OPERATOR, _Kind.COMPOUND_ASSIGNMENT_OPERATOR):
                first = next(iter(outer.get_children()))
                use.written = _range(first) == _range(inner) and (
                    kind == _Kind.COMPOUND_ASSIGNMENT_OPERATOR
                    or cindex.conf.lib.clang_getCursorBinaryOperatorKind(outer) == _ASSIGN
                )
                break
            elif kind == _Kind.UNARY_OPERATOR:
                operator = cindex.conf.lib.clang_getCursorUnaryOperatorKind(outer)
                use.address = operator == _ADDRESS_OF
                use.written = use.address or operator in _INCREMENTS
                if use.address and at:
                    self._handed(use, parents[:at], outer)
                break
            elif kind == _Kind.CXX_UNARY_EXPR:
                use.in_sizeof = True
                return
            elif kind not in _TRANSPARENT:
                break
            inner = outer
            if kind not in _TRANSPARENT:
                element = outer
        if element.type.kind in _ARRAYS:  # it becomes a pointer to its first element
            use.address = True
            if use.argument is not None:
                self._handed(use, parents[: at + 1], inner)

    def _argument(self, use: Use, call: Any, inner: Any) -> None:
        arguments = [_range(argument) for argument in call.get_arguments()]
        if _range(inner) in arguments:  # cursors of one thing differ by how one came to them
            use.argument = _range(inner)
            use.callee = call.spelling
            use.position = arguments.index(_range(inner))

    def _handed(self, use: Use, parents: list[Any], address: Any) -> None:
        """Keep which function gets an address, if it is an argument."""
        call = next((one for one in reversed(parents) if one.kind not in _TRANSPARENT), None)
        if call is None or call.kind != _Kind.CALL_EXPR:
            return
        arguments = [_range(argument) for argument in call.get_arguments()]
        if _range(address) not in arguments:
            return
        position = arguments.index(_range(address))
        types = list(call.referenced.type.argument_types()) if _is_function(call.referenced) else []
        reads = position < len(types) and _constant_behind(types[position])
        use.handed = Handed(call.spelling, position, reads)


def _of_system(cursor: Any) -> bool:
    """Is this the call of a function that a header of the system declares?"""
    called: Any = cursor.referenced if cursor.kind == _Kind.CALL_EXPR else None
    return _is_function(called) and bool(called.location.is_in_system_header)


def _is_function(cursor: Any) -> bool:
    if cursor is None or cursor.kind != _Kind.FUNCTION_DECL:
        return False
    return bool(cursor.type.kind == cindex.TypeKind.FUNCTIONPROTO)


def _constant_behind(kind: Any) -> bool:
    """Is what a pointer leads to constant?"""
    kind = kind.get_canonical().get_pointee()
    while kind.kind in _ARRAYS:
        kind = kind.element_type
    return bool(kind.is_const_qualified())


def used_in(uses: list[Use], inside: Range) -> Iterator[Use]:
    """The uses within a range."""
    return (use for use in uses if inside.start <= use.range.start < inside.end)


def _dimensions(kind: Any) -> tuple[tuple[int | None, ...], Any]:
    """The sizes of an array's type, and its elements' type."""
    sizes: list[int | None] = []
    while kind.kind in _ARRAYS:
        sizes.append(kind.element_count if kind.kind == cindex.TypeKind.CONSTANTARRAY else None)
        kind = kind.element_type
    return tuple(sizes), kind


def _range(cursor: Any) -> Range:
    extent = cursor.extent
    return Range(extent.start.offset, extent.end.offset)


def _spelled(cursor: Any, length: int) -> Range:
    """Where a name that came out of a macro is written: in its argument, else where the macro is used."""
    offset = ctypes.c_uint()
    file, line, column = cindex.c_object_p(), ctypes.c_uint(), ctypes.c_uint()
    cindex.conf.lib.clang_getFileLocation(
        cursor.location, ctypes.byref(file), ctypes.byref(line), ctypes.byref(column), ctypes.byref(offset)
    )
    return Range(offset.value, offset.value + length)
