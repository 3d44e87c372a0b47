"""What a directive says, after parsing: one class a directive, names and expressions as they were written."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway.cc.constant import value_of
from peerway.cc.diagnostics import Place
from peerway.cc.tokens import Token, joined


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


@dataclass
class Directive:
    """What all directives have: where they begin, and the text they occupy."""

    place: Place
    start: int = 0
    end: int = 0
    file: str = ""


@dataclass
class Nodes(Directive):
    """`nodes p(4, *) = q(1:8)`: sizes in Fortran's order, None for `*`; `of` is a reference, "*" or None."""

    names: list[Name] = field(default_factory=list)
    sizes: list[list[Expr | None]] = field(default_factory=list)
    of: list[Ref | str | None] = field(default_factory=list)
    square: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class Bounds:
    """First and last index of a dimension of a template, as C text and, if constant, as numbers."""

    first: str
    last: str
    first_value: int | None
    last_value: int | None


@dataclass
class Template(Directive):
    """`template t(0:N-1, :)`: the bounds of each dimension in Fortran's order, None for `:`."""

    names: list[Name] = field(default_factory=list)
    bounds: list[list[Bounds | None]] = field(default_factory=list)


@dataclass(frozen=True)
class Format:
    """How a dimension of a template is distributed: kind is `*`, block, cyclic or gblock."""

    kind: str
    place: Place
    argument: Expr | None = None
    later: bool = False  # gblock(*): template_fix gives the sizes


@dataclass
class Distribute(Directive):
    """`distribute t(block, *) onto p`."""

    templates: list[Name] = field(default_factory=list)
    formats: list[Format] = field(default_factory=list)
    onto: Name | None = None


@dataclass
class TemplateFix(Directive):
    """`template_fix (block) t(0:n-1)`."""

    template: Name | None = None
    formats: list[Format] | None = None
    bounds: list[Bounds | None] | None = None


@dataclass(frozen=True)
class AlignTo:
    """A dimension of the template in an align: an index of the array and what is added to it, or `*`."""

    place: Place
    index: str | None
    offset: str = "0"


@dataclass
class Align(Directive):
    """`align a[i][*] with t(*, i+1)`: the array's indices in C's, the template's in Fortran's order."""

    arrays: list[Name] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    template: Name | None = None
    targets: list[AlignTo] = field(default_factory=list)


@dataclass(frozen=True)
class Width:
    """Layers below and above a dimension of an array; `full` is a shadow of `*`."""

    place: Place
    lower: Expr | None = None
    upper: Expr | None = None
    full: bool = False
    periodic: bool = False
    unbound: bool = False


@dataclass
class Shadow(Directive):
    """`shadow a[1:1][0]`."""

    arrays: list[Name] = field(default_factory=list)
    widths: list[Width] = field(default_factory=list)


@dataclass
class StaticDesc(Directive):
    """`static_desc :: a, b`: every descriptor is static here, so this only names arrays."""

    arrays: list[Name] = field(default_factory=list)


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


@dataclass
class Loop(Directive):
    """`loop (i, j) on t(j, i) reduction(+:s)`; `indices` is empty when the directive has none."""

    indices: list[Name] = field(default_factory=list)
    on: Ref | None = None
    reduced: list[Reduced] = field(default_factory=list)
    widening: Widening | None = None


@dataclass
class Communication(Directive):
    """Clauses that several communications share."""

    on: Ref | None = None
    asynchronous: Expr | None = None
    accelerator: bool = False


@dataclass
class Reflect(Communication):
    """`reflect (a) width(1, /periodic/1:0)`; kind: reflect, reflect_init, reflect_do, reflect_wait,
    reduce_shadow.
    """

    kind: str = "reflect"
    arrays: list[Name] = field(default_factory=list)
    widths: list[Width] | None = None
    orthogonal: bool = False
    nowait: bool = False


@dataclass
class Reduction(Communication):
    """`reduction (+:a) on p(:,*)`."""

    reduced: list[Reduced] = field(default_factory=list)


@dataclass
class Bcast(Communication):
    """`bcast (a) from p(1) on p(:,*)`."""

    names: list[Name] = field(default_factory=list)
    source: Ref | None = None


@dataclass
class Barrier(Communication):
    """`barrier on p(1:2)`."""


@dataclass
class WaitAsync(Communication):
    """`wait_async (1, 2)`."""

    ids: list[Expr] = field(default_factory=list)


@dataclass
class Gmove(Communication):
    """`gmove in` before an assignment; mode is collective, in or out."""

    mode: str = "collective"


@dataclass
class Post(Directive):
    """`post (p(2), tag)`."""

    node: Ref | None = None
    tag: Expr | None = None


@dataclass
class Wait(Directive):
    """`wait`, `wait (p(1))`, `wait (p(1), tag)`."""

    node: Ref | None = None
    tag: Expr | None = None


@dataclass
class Coarray(Directive):
    """`coarray x, y:[*]`."""

    names: list[Name] = field(default_factory=list)


@dataclass
class ArrayOn(Directive):
    """`array on t(:)` before an array assignment."""

    on: Ref | None = None


@dataclass
class Task(Directive):
    """`task on p(1) nocomm`."""

    on: Ref | None = None
    nocomm: bool = False


@dataclass
class Tasks(Directive):
    """`tasks`: the block of tasks that follows may run at the same time."""


@dataclass(frozen=True)
class Section:
    """`a[first:length]` of a data clause: of the first dimension, None without brackets or without a bound.

    `member` says that it is a member of a struct.
    """

    name: Name
    first: Expr | None = None
    length: Expr | None = None
    member: bool = False


@dataclass(frozen=True)
class Clause:
    """A clause of acc: its name, a reduction's operator, the sections of variables that it names, its one
    expression, or the arguments that it may have.
    """

    name: str
    place: Place
    operator: str = ""
    sections: tuple[Section, ...] = ()
    expression: Expr | None = None
    arguments: tuple[Expr, ...] = ()

    @property
    def variables(self) -> tuple[Name, ...]:
        """The names of the variables."""
        return tuple(section.name for section in self.sections)


@dataclass
class Acc(Directive):
    """`acc parallel loop collapse(2)`: the construct's words with one blank between, and the clauses."""

    construct: str = ""
    tokens: tuple[Token, ...] = ()
    clauses: list[Clause] = field(default_factory=list)

    def all(self, *names: str) -> list[Clause]:
        """The clauses of these names."""
        return [clause for clause in self.clauses if clause.name in names]

    def named(self, *names: str) -> list[Section]:
        """The sections that the clauses of these names have."""
        return [section for clause in self.all(*names) for section in clause.sections]

    def named_variables(self, *names: str) -> list[Name]:
        """The variables that the clauses of these names have."""
        return [section.name for section in self.named(*names)]


@dataclass
class Omp(Directive):
    """A directive of OpenMP, which is left as it is; it belongs to the same statement as others around it."""
