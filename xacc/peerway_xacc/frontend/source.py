"""Variables and their uses, functions, statements and types of a program, as plain objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


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
    dimensions_of_type: int = 0  # of `sizes` those that its type by name has
    bytes: int = -1  # -1: not known when it is compiled
    element_bytes: int = 0
    uses: list[Use] = field(default_factory=list)
    base: Variable | None = None  # of a member `s.a`: the struct s
    column_major: bool = False  # an array of Fortran, whose dimensions people count from 1, the first inmost

    @property
    def symbol(self) -> str:
        """The name as an identifier of C: that of a member has no dot."""
        return self.name.replace(".", "__")

    @property
    def has_pointers(self) -> bool:
        """Are its elements, or what it leads to, pointers?"""
        return self.element.endswith("*") and (self.pointee is not None or bool(self.sizes))

    @property
    def of_array_type(self) -> bool:
        """Has its type, by name, dimensions?"""
        return self.dimensions_of_type > 0

    @property
    def pointer(self) -> bool:
        """Is it one, as C has it? A parameter with brackets is, too."""
        return self.pointee is not None or (self.parameter and bool(self.sizes))


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
    `address`: not the value is used, but where it lies, `address_of` where the program writes &; `handed` is
    the call that this is an argument of.
    `aliased`: what is used is a pointer or an array as such, not an element; it may be written through that.
    `expanded_at` is where the outermost macro is used that it comes out of.
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
    address_of: bool = False
    aliased: bool = False
    handed: Handed | None = None
    expanded_at: int = -1


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
    suffix: str = ""  # of its descriptors, where those of all functions are in one scope of the output


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


def used_in(uses: list[Use], inside: Range) -> Iterator[Use]:
    """The uses within a range."""
    return (use for use in uses if inside.start <= use.range.start < inside.end)
