"""The parts of directives: names, expressions, references and clauses, as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.tokens import Token, joined


@dataclass(frozen=True)
class Expr:
    """An expression of C in a directive, its macros expanded."""

    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        """The expression as C text."""
        return joined([token.text for token in self.tokens])

    @property
    def value(self) -> int | None:
        """Its value, if it is a constant that needs no names."""
        return value_of([token.text for token in self.tokens])

    @property
    def place(self) -> Place:
        """Where it is written."""
        first, last = self.tokens[0].place, self.tokens[-1].place
        if last.line != first.line or last.column < first.column:
            return first
        return Place(first.file, first.line, first.column, last.column + last.length - first.column)

    def behind(self, count: int) -> Expr:
        """The expression without its first tokens."""
        return Expr(self.tokens[count:])

    def names(self) -> set[str]:
        """The identifiers in it."""
        return {token.text for token in self.tokens if token.kind == "name"}


@dataclass(frozen=True)
class Name:
    """An identifier and its place."""

    text: str
    place: Place


@dataclass(frozen=True)
class Subscript:
    """One dimension of a reference: a single index, `*`, or first:last:step (None: as far as it goes).

    Both of Fortran's triplet and C's [first:length:step] are kept as first and last.
    """

    place: Place
    index: Expr | None = None
    star: bool = False
    first: Expr | None = None
    last: str | None = None
    step: Expr | None = None

    @property
    def whole(self) -> bool:
        """Is this a plain `:`?"""
        return self.index is None and not self.star and self.first is None and self.last is None


@dataclass(frozen=True)
class Ref:
    """`p(…)` or `t[…]`: dimensions in Fortran's order, whichever brackets were used; `square` says which."""

    name: Name
    subscripts: tuple[Subscript, ...] | None
    square: bool = False


@dataclass(frozen=True)
class Bounds:
    """First and last index of a dimension of a template, as C text and, if constant, as numbers."""

    first: str
    last: str
    first_value: int | None
    last_value: int | None


@dataclass(frozen=True)
class Format:
    """How a dimension of a template is distributed: kind is `*`, block, cyclic or gblock."""

    kind: str
    place: Place
    argument: Expr | None = None
    later: bool = False  # gblock(*): template_fix gives the sizes


@dataclass(frozen=True)
class AlignTo:
    """A dimension of the template in an align: an index of the array and what is added to it, or `*`."""

    place: Place
    index: str | None
    offset: str = "0"


@dataclass(frozen=True)
class Width:
    """Layers below and above a dimension of an array; `full` is a shadow of `*`."""

    place: Place
    lower: Expr | None = None
    upper: Expr | None = None
    full: bool = False
    periodic: bool = False
    unbound: bool = False


@dataclass(frozen=True)
class Reduced:
    """A variable of a reduction, and those that tell where an extreme value was."""

    operator: str
    name: Name
    locations: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Widening:
    """The clauses expand and margin, and peel_and_wait with its number; in the order of the on clause."""

    kind: str
    place: Place
    widths: tuple[Width, ...]
    number: Expr | None = None


@dataclass(frozen=True)
class Part:
    """One dimension of a section: `[first:length]`, None for what is left out; or one index."""

    first: Expr | None = None
    length: Expr | None = None
    index: bool = False


@dataclass(frozen=True)
class Section:
    """`a[first:length][i]` of a data clause; `member` says that it is a member of a struct."""

    name: Name
    parts: tuple[Part, ...] = ()
    member: bool = False


@dataclass(frozen=True)
class Clause:
    """A clause of acc: its name, a reduction's operator, the sections of variables that it names, its one
    expression, or the arguments that it may have. `modifier` is the word before the variables, or default's.
    """

    name: str
    place: Place
    operator: str = ""
    sections: tuple[Section, ...] = ()
    expression: Expr | None = None
    arguments: tuple[Expr, ...] = ()
    modifier: str = ""

    @property
    def variables(self) -> tuple[Name, ...]:
        """The names of the variables."""
        return tuple(section.name for section in self.sections)
