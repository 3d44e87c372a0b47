"""Makes a member `s.a` of a struct a variable of its own, where a directive distributes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clang import cindex

from peerway_xacc.frontend.libclang import range_of, spelling
from peerway_xacc.frontend.source import Function, Range, Use, Variable
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.frontend.uses import context

_Kind = cindex.CursorKind


class Structs:
    """The variables of a file that are structs, and the uses of their members.

    `declare` makes a Variable from a cursor, given whether it has file scope and where its visibility ends.
    """

    def __init__(self, declare: Callable[[Any, bool, int], Variable]) -> None:
        self._declare = declare
        self._cursors: dict[int, tuple[Variable, Any]] = {}  # by the variable's id
        self._members: dict[tuple[int, str], Variable] = {}
        # uses of `s.a`, each with the use of s
        self._uses_by_member: dict[tuple[int, str], list[tuple[Use, Use]]] = {}
        # by field: uses through something other than a variable
        self._indirect_uses: dict[int, list[tuple[Function, Range]]] = {}

    def declared(self, variable: Variable, cursor: Any) -> None:
        """Remember the libclang cursor of a variable."""
        self._cursors[id(variable)] = variable, cursor

    def member(self, variable: Variable, name: str) -> Variable | None:
        """A member of a struct variable, as a variable of its own; None if the struct has no such member."""
        key = id(variable), name
        if key not in self._members:
            record = self._cursors[id(variable)][1].type.get_canonical().get_declaration()
            field = next((child for child in record.get_children() if spelling(child) == name), None)
            if field is None or field.kind != _Kind.FIELD_DECL:
                return None
            declared_member = self._declare(field, variable.file_scope, variable.visible_until)
            declared_member.name = f"{variable.name}.{name}"
            declared_member.base, declared_member.static, declared_member.external = (
                variable,
                variable.static,
                variable.external,
            )
            declared_member.initialised = variable.initialised
            self._members[key] = declared_member
        return self._members[key]

    def of_tag(self, name: str) -> list[Variable]:
        """The variables that are structs with this tag or type name."""
        variables = []
        for variable, cursor in self._cursors.values():
            record = cursor.type.get_canonical()
            if cursor.kind == _Kind.FIELD_DECL or record.kind != cindex.TypeKind.RECORD:
                continue
            if name in (spelling(record.get_declaration()), spelling(cursor.type)):
                variables.append(variable)
        return variables

    def used(self, whole: Use, parents: list[Any], text: str) -> None:
        """Record a use of `s.a`: a directive may say later that it is a distributed array."""
        reference = parents[-1]
        name = spelling(reference)
        member = self.member(whole.variable, name)
        if member is None:
            return
        start = whole.range.start  # the place in the text, also in an argument of a macro
        spans = scan(text, start, min(len(text), start + 200))[:3]
        written = [span.text for span in spans] == [whole.variable.name, ".", name]
        extent = Range(start, spans[2].end) if written else whole.range
        macro = whole.macro or not written
        use = Use(member, whole.function, extent, macro, expanded_at=whole.expanded_at)
        context(reference, use, parents[:-1])
        self._uses_by_member.setdefault((id(whole.variable), name), []).append((use, whole))

    def reached(self, reference: Any, function: Function) -> None:
        """Record a use of a member through something other than a variable, such as `p->a`."""
        inner = next(reference.get_children(), None)
        if reference.referenced is not None and inner is not None and inner.kind != _Kind.DECL_REF_EXPR:
            self._indirect_uses.setdefault(reference.referenced.hash, []).append(
                (function, range_of(reference))
            )

    def claim(self, member: Variable) -> list[tuple[Function, Range]]:
        """Treat `s.a` as a variable of its own from now on, so that its uses no longer count as uses of s.

        Returns where the same member is used through something other than a variable.
        """
        assert member.base is not None
        name = member.name.split(".")[1]
        for use, whole in self._uses_by_member.pop((id(member.base), name), []):
            uses = whole.function.uses
            uses[next(n for n, known_use in enumerate(uses) if known_use is whole)] = use
            whole.variable.uses = [known_use for known_use in whole.variable.uses if known_use is not whole]
            member.uses.append(use)
            use.function.used.setdefault(member.name, member)
        return self._indirect_uses.get(self._cursors[id(member)][1].hash, [])
