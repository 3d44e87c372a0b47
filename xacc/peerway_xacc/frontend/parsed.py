"""Holds the result of the front end: a `Parsed` is a file with its directives and its syntax."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend import grammar_acc, grammar_xmp
from peerway_xacc.frontend.diagnostics import Diagnostics
from peerway_xacc.frontend.preprocess import Pragma, Texts
from peerway_xacc.frontend.source import Function, Range
from peerway_xacc.frontend.syntax import Syntax
from peerway_xacc.frontend.tokens import Text, joined


def read_directives(pragmas: Iterable[Pragma], diagnostics: Diagnostics) -> tuple[d.Directive, ...]:
    """Parse all pragmas. One that cannot be parsed is recorded as an error, and the next one is parsed."""
    directives: list[d.Directive] = []
    for pragma in pragmas:
        with diagnostics.collecting():
            if pragma.model == "omp":
                text = f"#pragma omp {joined([token.text for token in pragma.tokens])}"
                directives.append(d.Omp(pragma.place, pragma.start, pragma.end, pragma.file, text))
            else:
                directives.append((grammar_xmp if pragma.model == "xmp" else grammar_acc).parse(pragma))
    return tuple(directives)


@dataclass(frozen=True, eq=False)
class Parsed:
    """A parsed source file."""

    file: str
    texts: Texts
    text: Text
    syntax: Syntax
    directives: tuple[d.Directive, ...]
    diagnostics: Diagnostics
    foreign_acc: bool  # another compiler translates the OpenACC directives

    def directives_in(self, inside: Range | None = None, file: str = "") -> list[d.Directive]:
        """The directives of a file (by default this one), or only those that begin in a range of it."""
        file = file or self.file
        return [
            directive for directive in self.directives
            if directive.file == file and (inside is None or inside.start <= directive.start < inside.end)
        ]  # fmt: skip

    def function_of(self, directive: d.Directive) -> Function | None:
        """The function that contains a directive, or None."""
        return self.syntax.function_at(directive.file, directive.start)

    def scope(self, directive: d.Directive) -> tuple[Function | None, Range]:
        """The function of a directive, and the range in which the names that it declares are visible."""
        function = self.function_of(directive)
        if function is None:
            return None, Range(0, 0)
        block = self.syntax.enclosing_block(directive.file, directive.start)
        return function, Range(directive.start, block.end if block else function.body.end)
