"""Reads a translation unit of libclang once, and turns it into plain objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clang import cindex

from peerway_xacc.frontend.libclang import file_of, parsed, range_of, spelling
from peerway_xacc.frontend.preprocess import Texts
from peerway_xacc.frontend.source import Function, Mark, Range, Statement, TypeText, Use, Variable
from peerway_xacc.frontend.structs import Structs
from peerway_xacc.frontend.tokens import scan, spans
from peerway_xacc.frontend.uses import (
    TRANSPARENT,
    context,
    dimensions,
    of_system,
    spelled,
    written_dimensions,
)

_Kind = cindex.CursorKind
_TYPES = (_Kind.TYPEDEF_DECL, _Kind.STRUCT_DECL, _Kind.UNION_DECL, _Kind.ENUM_DECL)
_MARKS = {
    _Kind.CALL_EXPR: "call", _Kind.BREAK_STMT: "break", _Kind.CONTINUE_STMT: "continue",
    _Kind.RETURN_STMT: "return", _Kind.GOTO_STMT: "goto", _Kind.INDIRECT_GOTO_STMT: "goto",
}  # fmt: skip
_BLOCKS = (_Kind.COMPOUND_STMT, _Kind.FOR_STMT, _Kind.IF_STMT, _Kind.WHILE_STMT, _Kind.DO_STMT)


class SyntaxReader:
    """The declarations, statements and uses of a file, in the order of its text."""

    def __init__(
        self, file: str, text: str, arguments: list[str], texts: Texts, sized: frozenset[int] = frozenset()
    ) -> None:
        self.file = file
        self._texts = texts
        self._unit = parsed(file, text, arguments)
        self._text = text
        self._sized = sized  # offsets of arrays whose sizes are known only at run time
        self._included: list[tuple[str, Range]] = []  # files included by the body that is being read
        self.functions: list[Function] = []
        self.globals: dict[str, list[Variable]] = {}
        self.locals: list[tuple[Variable, Function]] = []
        self.functions_known: dict[str, list[str]] = {}
        self.constants: dict[str, int] = {}
        self.types: list[TypeText] = []
        self.structs = Structs(self._declared)
        self.statements: dict[str, list[Statement]] = {}
        self._variables: dict[int, list[tuple[Any, Variable]]] = {}
        self._first: dict[str, int] = {}
        for cursor in self._unit.cursor.get_children():
            if file_of(cursor) and not cursor.location.is_in_system_header:
                source = self._file(cursor)
                self._first.setdefault(source, range_of(cursor).start)
                self._text = text if source == file else texts.of(source).text
                self._top(cursor)
        for declared in self.globals.values():
            self._unite_declarations(declared)
        for statements in self.statements.values():
            statements.sort(key=lambda statement: (statement.start, -statement.end, statement.depth))

    @staticmethod
    def defined(declared: list[Variable]) -> Variable:
        """The definition among the declarations of a file-scope variable, or else the first declaration."""
        return next((variable for variable in declared if not variable.external), declared[0])

    def _unite_declarations(self, declared: list[Variable]) -> None:
        """Attribute all uses to the definition: libclang may give any of the declarations."""
        defined = self.defined(declared)
        for other in declared:
            if other is not defined:
                for use in other.uses:
                    use.variable = use.function.used[defined.name] = defined
                defined.uses += other.uses
                other.uses = []

    def _file(self, cursor: Any) -> str:
        return self._texts.file(file_of(cursor))

    def _top(self, cursor: Any) -> None:
        if cursor.kind in _TYPES:
            self._type(cursor)
        if cursor.kind == _Kind.ENUM_DECL:
            for constant in cursor.get_children():
                self.constants[spelling(constant)] = constant.enum_value
        elif cursor.kind == _Kind.VAR_DECL:
            variable = self._declared(cursor, True, len(self._text) + 1)
            self.globals.setdefault(variable.name, []).append(variable)
        elif cursor.kind == _Kind.FUNCTION_DECL:
            self._function(cursor)

    def _type(self, cursor: Any) -> None:
        names = {spelling(cursor), *(spelling(child) for child in cursor.get_children())}
        if cursor.kind in (_Kind.STRUCT_DECL, _Kind.UNION_DECL):
            names = {spelling(cursor)}
        type_text = TypeText(frozenset(names), self._file(cursor), range_of(cursor))
        if self.types:  # libclang reports `typedef struct S { … } T;` twice: the struct, then all of it
            last = self.types[-1]
            if (
                last.file == type_text.file
                and type_text.range.start <= last.range.start < type_text.range.end
            ):
                self.types.pop()
                type_text = TypeText(last.names | type_text.names, type_text.file, type_text.range)
        self.types.append(type_text)

    def _function(self, cursor: Any) -> None:
        body = next((child for child in cursor.get_children() if child.kind == _Kind.COMPOUND_STMT), None)
        parameters = [child for child in cursor.get_children() if child.kind == _Kind.PARM_DECL]
        if body is None:
            self.functions_known.setdefault(spelling(cursor), [])
            return
        whole, inner = range_of(cursor), range_of(body)
        function = Function(spelling(cursor), self._file(body), whole, inner, [])
        for parameter in parameters:
            if parameter.spelling:
                variable = self._declared(parameter, False, inner.end)
                function.parameters.append(variable)
                self.locals.append((variable, function))
        self._included = self._included_in(function)
        self.functions_known[function.name] = [variable.name for variable in function.parameters]
        self.functions.append(function)
        self._walk(body, function, [cursor], inner.end)

    def _included_in(self, function: Function) -> list[tuple[str, Range]]:
        """The files that a function's body includes, and where."""
        included = []
        for include in self._unit.get_includes():
            inside = function.body.start < include.location.offset < function.body.end
            if inside and self._texts.file(str(include.location.file)) == function.file:
                at = include.location.offset
                included.append((self._texts.file(str(include.include)), Range(at, at)))
        return included

    def _place(self, cursor: Any, function: Function) -> Range | None:
        """The place of the #include, in a function's body, of the file that a cursor is in; else None."""
        if not self._included:
            return None
        file = self._texts.file(str(cursor.extent.start.file))
        at = next((place for name, place in self._included if name == file), self._included[0][1])
        return None if file == function.file else at

    def _declared(self, cursor: Any, file_scope: bool, until: int) -> Variable:
        sizes, kind = dimensions(cursor.type)
        scalar = not sizes and kind.get_canonical().kind != cindex.TypeKind.RECORD
        pointee = None
        if not sizes and kind.kind == cindex.TypeKind.POINTER:
            pointee, kind = dimensions(kind.get_pointee())
        extent = range_of(cursor)
        start = cursor.location.offset
        if cursor.location.offset in self._sized and file_scope:
            sizes = (None,) * len(sizes)
        canonical = kind.get_canonical()
        of_type = cursor.type.get_canonical()  # an array's canonical type has the const of its elements
        initialised = cursor.kind == _Kind.VAR_DECL and self._has_initialiser(start, extent.end)
        variable = Variable(
            name=spelling(cursor),
            file=self._file(cursor),
            declarator=Range(start, extent.end),
            element=spelling(canonical).replace("const ", "").strip(),
            sizes=sizes,
            parameter=cursor.kind == _Kind.PARM_DECL,
            file_scope=file_scope,
            static=cursor.storage_class == cindex.StorageClass.STATIC,
            external=cursor.storage_class == cindex.StorageClass.EXTERN,
            initialised=initialised,
            constant=kind.is_const_qualified() or bool(sizes and of_type.is_const_qualified()),
            visible_until=until,
            scalar=scalar,
            spelling=" ".join(word for word in spelling(kind).split() if word not in ("const", "volatile")),
            pointee=pointee,
            bytes=-1 if None in sizes else max(-1, cursor.type.get_size()),
            element_bytes=max(0, kind.get_size()),
            dimensions_of_type=len(sizes) - written_dimensions(cursor.type) if sizes else 0,
        )
        self._variables.setdefault(cursor.hash, []).append((cursor, variable))
        self.structs.declared(variable, cursor)
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

    def _walk(self, body: Any, function: Function, parents: list[Any], until: int) -> None:
        """Visit everything in a function's body. No recursion: a sum of n terms is n levels deep."""
        levels = [self._entered(body, function, parents, until, 0)]
        while levels:
            children, until, block = levels[-1]
            child = next(children, None)
            if child is None:
                levels.pop()
                parents.pop()
                continue
            depth = len(levels)
            if block and child.kind.is_expression() and not self._place(child, function):
                # an expression that is a statement, or part of a loop's or an if's header
                self._add_statement(child.kind, range_of(child), function, depth)
            if child.kind == _Kind.DECL_REF_EXPR:
                self._use(child, function, parents)
            else:
                levels.append(self._entered(child, function, parents, until, depth))

    def _entered(
        self, cursor: Any, function: Function, parents: list[Any], until: int, depth: int
    ) -> tuple[Iterator[Any], int, bool]:
        """Record a cursor.

        Returns its children, where its block ends, and whether the children may be statements.
        """
        kind = cursor.kind
        if kind == _Kind.MEMBER_REF_EXPR:
            self.structs.reached(cursor, function)
        if kind in _MARKS and not of_system(cursor):
            at = self._place(cursor, function) or range_of(cursor)
            function.marks.append(Mark(_MARKS[kind], spelling(cursor), at.start))
        if kind.is_statement() and not self._place(cursor, function):
            extent = range_of(cursor)
            self._add_statement(kind, extent, function, depth)
            if kind in (_Kind.COMPOUND_STMT, _Kind.FOR_STMT):
                until = extent.end
        elif kind == _Kind.VAR_DECL:
            variable = self._declared(cursor, False, until)
            variable.declarator = self._place(cursor, function) or variable.declarator
            self.locals.append((variable, function))
        elif kind == _Kind.ENUM_DECL:
            self._top(cursor)
        parents.append(cursor)
        return cursor.get_children(), until, kind in _BLOCKS

    def _add_statement(self, kind: Any, extent: Range, function: Function, depth: int) -> None:
        names = {_Kind.COMPOUND_STMT: "block", _Kind.FOR_STMT: "for", _Kind.DECL_STMT: "declaration"}
        name = names.get(kind, "statement")
        end = extent.end
        if name != "block":
            following = next(iter(scan(self._text, end, min(len(self._text), end + 200))), None)
            if following and following.text == ";" and self._text[end - 1] != ";":
                end = following.end  # libclang's statements end before the semicolon
        self.statements.setdefault(function.file, []).append(Statement(name, extent.start, end, depth))

    def _use(self, cursor: Any, function: Function, parents: list[Any]) -> None:
        target = cursor.referenced
        variable = self._known(target) if target is not None else None
        if variable is None:
            return
        place = self._place(cursor, function)
        extent = place or range_of(cursor)
        start = extent.start
        written = next(spans(self._text, start), None)  # a name may have escapes such as `gr\u00fc`
        macro = written is None or written.text != variable.name
        if macro and not place:
            extent = spelled(cursor, len(variable.name))
        use = Use(variable, function, extent, macro, expanded_at=start)
        context(cursor, use, parents)
        variable.uses.append(use)
        function.uses.append(use)
        function.used.setdefault(variable.name, variable)
        outer = len(parents)  # `(s).a` is the member, too
        while outer > 1 and parents[outer - 1].kind in TRANSPARENT:
            outer -= 1
        if parents[outer - 1].kind == _Kind.MEMBER_REF_EXPR:
            self.structs.used(use, parents[:outer], self._text)
