"""Plain objects for the variables of a program and their uses, its functions, statements and types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Range:
    """Offsets in a file: `end` is just after the last character."""

    start: int
    end: int


@dataclass
class Variable:
    """A declared variable or parameter.

    `sizes` are its dimensions, with None for those that are not constant. `declarator` extends from the name
    to the end of the brackets. For a pointer, `pointee` are the dimensions of what it points to.
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
    spelling: str = ""  # the element type as the program writes it
    pointee: tuple[int | None, ...] | None = None
    dimensions_of_type: int = 0  # how many of `sizes` come from a typedef
    bytes: int = -1  # -1: not known at compile time
    element_bytes: int = 0
    uses: list[Use] = field(default_factory=list)
    base: Variable | None = None  # for a member `s.a`: the struct s
    column_major: bool = False  # an array of Fortran, whose dimensions people count from 1, the first inmost

    @property
    def symbol(self) -> str:
        """The name as an identifier of C: a member's dot is replaced."""
        return self.name.replace(".", "__")

    @property
    def has_pointers(self) -> bool:
        """Are the elements, or the elements that it points to, pointers?"""
        return self.element.endswith("*") and (self.pointee is not None or bool(self.sizes))

    @property
    def of_array_type(self) -> bool:
        """Does its named type (a typedef) have dimensions?"""
        return self.dimensions_of_type > 0

    @property
    def pointer(self) -> bool:
        """Is it a pointer in C's sense? A parameter with brackets is one, too."""
        return self.pointee is not None or (self.parameter and bool(self.sizes))


@dataclass(frozen=True)
class Handed:
    """An address passed as argument `position` to `callee`.

    `reads`: the parameter is const, so it only reads.
    """

    callee: str
    position: int
    reads: bool


@dataclass
class Use:
    """A place in a function's body where a variable is named.

    `subscripts` are the ranges of the expressions in the brackets after it. If the use is an argument of a
    call, `argument` is the range of that argument, `callee` the function and `position` the argument's
    number. `address`: the use takes the address, not the value; `address_of`: the program does so with &;
    `handed` is then the call that the address is passed to. `aliased`: the use is a pointer or an array, not
    an element, so later writes may go through it. `expanded_at` is the offset where the outermost macro is
    used from which this use is expanded.
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
    """A call or a jump (break, continue, return, goto), and where it begins.

    `name` is the called function's.
    """

    kind: str
    name: str
    start: int


@dataclass
class Function:
    """A function's definition: its range and that of its body in braces, its variables, calls and jumps."""

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
    """A type declared outside functions: the names that it defines, and the range of its text."""

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
    """The uses that begin within a range."""
    return (use for use in uses if inside.start <= use.range.start < inside.end)
