"""The classes of parsed directives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from peerway_xacc.frontend.clauses import (
    AlignTo,
    Bounds,
    Clause,
    Expr,
    Format,
    Name,
    Reduced,
    Ref,
    Section,
    Widening,
    Width,
)
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.tokens import Token


@dataclass
class Directive:
    """Where a directive begins, the text it occupies, and its spelling: `xmp reflect`, `acc enter data`.

    The spelling is the key of the directive's entry in the table of directives. The class variables are what
    analysis/flow.py asks of every directive; a class states what differs.
    """

    place: Place
    start: int = 0
    end: int = 0
    file: str = ""
    spelling: str = field(default="", kw_only=True)

    executed_by_all: ClassVar[bool] = False  # the language has every executing node do it
    reflects: ClassVar[bool] = False  # its call brings halos up to date
    writes_arrays: ClassVar[bool] = False  # its call at run time writes elements of distributed arrays


@dataclass
class Nodes(Directive):
    """`nodes p(4, *) = q(1:8)`: sizes in Fortran's order, None for `*`; `of` is a reference, "*" or None."""

    names: list[Name] = field(default_factory=list)
    sizes: list[list[Expr | None]] = field(default_factory=list)
    of: list[Ref | str | None] = field(default_factory=list)
    square: list[bool] = field(default_factory=list)


@dataclass
class Template(Directive):
    """`template t(0:N-1, :)`: the bounds of each dimension in Fortran's order, None for `:`."""

    names: list[Name] = field(default_factory=list)
    bounds: list[list[Bounds | None]] = field(default_factory=list)


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


@dataclass
class Align(Directive):
    """`align a[i][*] with t(*, i+1)`: the array's indices in C's order, the template's in Fortran's."""

    arrays: list[Name] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    template: Name | None = None
    targets: list[AlignTo] = field(default_factory=list)


@dataclass
class Shadow(Directive):
    """`shadow a[1:1][0]`."""

    arrays: list[Name] = field(default_factory=list)
    widths: list[Width] = field(default_factory=list)


@dataclass
class StaticDesc(Directive):
    """`static_desc :: a, b`: it has no effect, since every descriptor is static here."""

    arrays: list[Name] = field(default_factory=list)


def declared_names(directive: Directive) -> list[Name]:
    """The names that a mapping directive declares or describes further."""
    match directive:
        case Nodes() | Template() | Coarray():
            return directive.names
        case Distribute():
            return directive.templates
        case TemplateFix():
            return [directive.template] if directive.template else []
        case Align() | Shadow() | StaticDesc():
            return directive.arrays
    return []


@dataclass
class Loop(Directive):
    """`loop (i, j) on t(j, i) reduction(+:s)`; `indices` is empty when the directive has none."""

    executed_by_all: ClassVar[bool] = True

    indices: list[Name] = field(default_factory=list)
    on: Ref | None = None
    reduced: list[Reduced] = field(default_factory=list)
    widening: Widening | None = None


@dataclass
class Communication(Directive):
    """The clauses that several communication directives share."""

    on: Ref | None = None
    asynchronous: Expr | None = None
    accelerator: bool = False


@dataclass
class Reflect(Communication):
    """`reflect (a) width(1, /periodic/1:0)` and its kin.

    `kind` is reflect, reflect_init, reflect_do, reflect_wait or reduce_shadow.
    """

    executed_by_all: ClassVar[bool] = True
    reflects: ClassVar[bool] = True

    kind: str = "reflect"
    arrays: list[Name] = field(default_factory=list)
    widths: list[Width] | None = None
    orthogonal: bool = False
    nowait: bool = False


@dataclass
class Reduction(Communication):
    """`reduction (+:a) on p(:,*)`."""

    executed_by_all: ClassVar[bool] = True
    writes_arrays: ClassVar[bool] = True

    reduced: list[Reduced] = field(default_factory=list)


@dataclass
class Bcast(Communication):
    """`bcast (a) from p(1) on p(:,*)`."""

    executed_by_all: ClassVar[bool] = True

    names: list[Name] = field(default_factory=list)
    source: Ref | None = None


@dataclass
class Barrier(Communication):
    """`barrier on p(1:2)`."""

    executed_by_all: ClassVar[bool] = True


@dataclass
class WaitAsync(Communication):
    """`wait_async (1, 2)`."""

    reflects: ClassVar[bool] = True

    ids: list[Expr] = field(default_factory=list)


@dataclass
class Gmove(Communication):
    """`gmove in acc(a)` before an assignment; `mode` is collective, in or out.

    The clause acc without names applies to all arrays of the assignment.
    """

    executed_by_all: ClassVar[bool] = True
    writes_arrays: ClassVar[bool] = True

    mode: str = "collective"
    on_device: list[Name] = field(default_factory=list)


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
class Lock(Directive):
    """`lock (l[1]:[2]) acquired_lock(ok) stat(s)` or `unlock (l:[2])`, as `kind` says."""

    kind: str = "lock"
    name: Name | None = None
    subscripts: list[Expr] = field(default_factory=list)
    image: Expr | None = None
    acquired: Expr | None = None
    status: Expr | None = None


@dataclass
class Coarray(Directive):
    """`coarray x, y:[2][*]`: `images` are the sizes of the dimensions of images, without the `*`."""

    names: list[Name] = field(default_factory=list)
    images: list[Expr] = field(default_factory=list)


@dataclass
class ArrayOn(Directive):
    """`array on t(:)` before an array assignment."""

    executed_by_all: ClassVar[bool] = True
    writes_arrays: ClassVar[bool] = True

    on: Ref | None = None


@dataclass
class Task(Directive):
    """`task on p(1) nocomm`."""

    executed_by_all: ClassVar[bool] = True

    on: Ref | None = None
    nocomm: bool = False


@dataclass
class Tasks(Directive):
    """`tasks`: the block of tasks that follows may run at the same time."""

    executed_by_all: ClassVar[bool] = True


@dataclass
class Acc(Directive):
    """`acc parallel loop collapse(2)`: the tokens, and the clauses among them."""

    tokens: tuple[Token, ...] = ()
    clauses: list[Clause] = field(default_factory=list)

    @property
    def construct(self) -> str:
        """The words of the construct, separated by one blank: `parallel loop`."""
        return self.spelling.removeprefix("acc ")

    def all(self, *names: str) -> list[Clause]:
        """The clauses with these names."""
        return [clause for clause in self.clauses if clause.name in names]

    def named(self, *names: str) -> list[Section]:
        """The sections in all clauses with these names."""
        return [section for clause in self.all(*names) for section in clause.sections]

    def named_variables(self, *names: str) -> list[Name]:
        """The variables in all clauses with these names."""
        return [section.name for section in self.named(*names)]


@dataclass
class Omp(Directive):
    """An OpenMP directive, which stays as it is; it shares its statement with the directives around it."""

    text: str = ""
