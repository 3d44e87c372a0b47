"""The parts of directives: names, expressions, references and clauses, as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.frontend.constant import value_of
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.tokens import Token, joined


@dataclass(frozen=True)
class Expr:
    """A C expression in a directive, with macros expanded."""

    tokens: tuple[Token, ...]

    @property
    def text(self) -> str:
        """The expression as C text."""
        return joined([token.text for token in self.tokens])

    @property
    def value(self) -> int | None:
        """The value, if it is a constant expression without names; else None."""
        return value_of([token.text for token in self.tokens])

    @property
    def place(self) -> Place:
        """The place where the expression is written; its first token if it takes several lines."""
        first, last = self.tokens[0].place, self.tokens[-1].place
        if last.line != first.line or last.column < first.column:
            return first
        return Place(first.file, first.line, first.column, last.column + last.length - first.column)

    def behind(self, count: int) -> Expr:
        """The expression without its first tokens."""
        return Expr(self.tokens[count:])

    def names(self) -> set[str]:
        """The identifiers in the expression."""
        return {token.text for token in self.tokens if token.kind == "name"}


@dataclass(frozen=True)
class Name:
    """An identifier and its place."""

    text: str
    place: Place


@dataclass(frozen=True)
class Subscript:
    """One dimension of a reference: a single index, `*`, or first:last:step (None: a bound left out).

    Fortran's first:last:step and C's [first:length:step] are both stored as first and last.
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
    """`p(…)` or `t[…]`. The dimensions are in Fortran's order with either bracket, as `square` says."""

    name: Name
    subscripts: tuple[Subscript, ...] | None
    square: bool = False


@dataclass(frozen=True)
class Bounds:
    """The first and last index of a template's dimension, as C text, and as numbers if constant."""

    first: str
    last: str
    first_value: int | None
    last_value: int | None


@dataclass(frozen=True)
class Format:
    """How a dimension of a template is distributed. `kind` is `*`, block, cyclic or gblock."""

    kind: str
    place: Place
    argument: Expr | None = None
    later: bool = False  # gblock(*): a template_fix directive gives the sizes


@dataclass(frozen=True)
class AlignTo:
    """A dimension of the template in an align: an array index and the offset added to it, or None for `*`."""

    place: Place
    index: str | None
    offset: str = "0"


@dataclass(frozen=True)
class Width:
    """The shadow layers below and above one dimension of an array; `full` is a shadow of `*`."""

    place: Place
    lower: Expr | None = None
    upper: Expr | None = None
    full: bool = False
    periodic: bool = False
    unbound: bool = False


@dataclass(frozen=True)
class Reduced:
    """A variable of a reduction, and the variables that receive the location of the extreme value."""

    operator: str
    name: Name
    locations: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Widening:
    """A clause expand, margin or peel_and_wait (with its number).

    `widths` follow the order of the on clause.
    """

    kind: str
    place: Place
    widths: tuple[Width, ...]
    number: Expr | None = None


@dataclass(frozen=True)
class Part:
    """One dimension of a section: `[first:length]`, with None for an omitted bound, or a single index."""

    first: Expr | None = None
    length: Expr | None = None
    index: bool = False


@dataclass(frozen=True)
class Section:
    """`a[first:length][i]` in a data clause; `member` is true for a member of a struct."""

    name: Name
    parts: tuple[Part, ...] = ()
    member: bool = False


@dataclass(frozen=True)
class Clause:
    """A clause of an acc directive.

    Depending on the clause it has the operator of a reduction, sections of variables, one expression, or
    optional arguments. `modifier` is the word before the variables (`readonly:`), or the argument of
    `default`.
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
        """The names of the variables in the clause."""
        return tuple(section.name for section in self.sections)
