"""Holds what analysis works on: `Mapped`, a parsed file with what its declarations distribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from peerway_xacc.analysis.mapping import Declared, DistributedArray, Scopes, TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.source import Function, Statement

_Kind = TypeVar("_Kind", bound=Declared)


@dataclass
class AnnotatedStatement:
    """A statement with the directives before it, in order, and the lines that are written in their place.

    These are the lines of `before`, then OpenMP directives of the program, then the lines of `last`.
    """

    statement: Statement
    function: Function
    directives: list[d.Directive] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Mapped(Parsed):
    """A parsed file with its nodes, templates and distributed arrays, which only declarations extend."""

    scopes: Scopes = field(default_factory=Scopes)
    fixes: dict[int, d.TemplateFix] = field(default_factory=dict)  # by the id() of the template

    def get(self, kind: type[_Kind], name: clauses.Name, directive: d.Directive) -> _Kind:
        """The declaration that a name in a directive refers to. Raises Refused."""
        return self.scopes.get(kind, name, self.function_of(directive), directive.start)

    def array(self, name: clauses.Name, directive: d.Directive) -> DistributedArray:
        """The distributed array that a name in a directive refers to. Raises Refused."""
        variable = self.syntax.variable(name.text, directive.file, directive.start)
        array = self.scopes.of_variable(variable) if variable else None
        if array is None:
            if variable is None:
                raise Refused(name.place, f"'{name.text}' is not declared")
            raise Refused(name.place, f"'{name.text}' is not aligned with a template")
        return array

    def check_fixed(self, template: TemplateOf | None, directive: d.Directive, place: Place) -> None:
        """Refuse a directive that uses a template before it is fixed, if both are in one function."""
        fix = self.fixes.get(id(template))
        if (
            fix
            and template
            and directive.start < fix.start
            and self.function_of(fix) is self.function_of(directive)
        ):
            note = (fix.place, "it is fixed here")
            raise Refused(place, f"template '{template.name}' is used before it is fixed", note)

    def is_cyclic(self, directive: d.Loop) -> bool:
        """Is any dimension of the loop's template cyclic?"""
        if not directive.on:
            return False
        mapping = self.scopes.find(directive.on.name.text, self.function_of(directive), directive.start)
        formats = mapping.formats if isinstance(mapping, TemplateOf) else None
        return any(fmt.kind == "cyclic" for fmt in formats or ())
