"""The program's node arrays, templates and distributed arrays, and their names in the generated code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from peerway_xacc.frontend.clauses import Bounds, Expr, Format, Name, Width
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.source import Function, Range, Variable


@dataclass
class Declared:
    """A declared name, visible in the whole unit or in a block of a function."""

    name: str
    place: Place
    function: Function | None
    scope: Range

    @property
    def descriptor(self) -> str:
        """The name of its descriptor in the generated code."""
        return f"{self.symbol}__x"

    @property
    def symbol(self) -> str:
        """The name as an identifier of C: the mark before a struct's member is replaced."""
        return self.name.replace(".", "__").replace("%", "__") + (
            self.function.suffix if self.function else ""
        )

    @property
    def address(self) -> str:
        """A pointer to the descriptor, as C text."""
        return f"&{self.descriptor}"


@dataclass
class NodeArray(Declared):
    """A node array. Sizes are in Fortran's order, None where they are known only at run time."""

    sizes: list[int | None] = field(default_factory=list)


@dataclass
class TemplateOf(Declared):
    """A template. Bounds are in Fortran's order; `formats` and `onto` are set once it is distributed."""

    bounds: list[Bounds | None] = field(default_factory=list)
    formats: list[Format] | None = None
    onto: NodeArray | None = None
    fixed: bool = False

    @property
    def opened(self) -> bool:
        """Was it declared with `:`, or distributed as gblock(*)?"""
        return None in self.bounds or any(fmt.later for fmt in self.formats or ())

    def nodes_of(self, dimension: int) -> int | None:
        """The number of nodes along a dimension: 1 if it is not distributed, None if it is not known."""
        if self.formats is None or self.onto is None:
            return None
        if self.formats[dimension].kind == "*":
            return 1
        position = sum(fmt.kind != "*" for fmt in self.formats[:dimension])
        return self.onto.sizes[position]

    def range_of(self, dimension: int) -> tuple[int, int] | None:
        """The first and last index of a dimension, or None if not constant."""
        bound = self.bounds[dimension]
        if bound is None or bound.first_value is None or bound.last_value is None:
            return None
        return bound.first_value, bound.last_value

    def size_of(self, dimension: int) -> int | None:
        """The number of indices of a dimension, or None if not constant."""
        known = self.range_of(dimension)
        return None if known is None else known[1] - known[0] + 1

    def lies_as(self, other: TemplateOf, dimension: int) -> bool:
        """Does each node own the same indices of a dimension in both templates, as far as constants tell?"""
        if other is self:
            return True
        if self.formats is None or other.formats is None or self.onto is not other.onto:
            return False
        kinds = [[fmt.kind for fmt in template.formats or ()] for template in (self, other)]
        known = self.range_of(dimension)
        plain = self.formats[dimension].argument is None and other.formats[dimension].argument is None
        return kinds[0] == kinds[1] and plain and known is not None and known == other.range_of(dimension)

    def share(self, dimension: int) -> str:
        """Describe in words how a dimension is distributed."""
        kind = self.kind_of(dimension)
        if kind == "*" or self.onto is None:
            return "whole on each node"
        nodes = self.nodes_of(dimension)
        return f"{kind} over {self.onto.name}" + (f", {nodes} nodes" if nodes else "")

    def has_width(self, dimension: int) -> bool:
        """Is the dimension distributed with a given width, as in block(width)?"""
        return bool(self.formats and self.formats[dimension].argument)

    def kind_of(self, dimension: int) -> str:
        """The distribution of a dimension: `*`, block, cyclic or gblock."""
        return self.formats[dimension].kind if self.formats else "*"


@dataclass
class DistributedArray(Declared):
    """An aligned array. `dimensions[d]` is the template's dimension and the offset, or None for `*`."""

    variable: Variable | None = None
    template: TemplateOf | None = None
    dimensions: list[tuple[int, str] | None] = field(default_factory=list)
    widths: list[Width] = field(default_factory=list)
    shadow_place: Place | None = None
    last_directive: int = 0
    fixed_at: int | None = None

    @property
    def waits(self) -> bool:
        """Is the template still open when the program starts, so that a template_fix must follow?"""
        return self.template is not None and self.template.opened

    @property
    def memory(self) -> str:
        """The pointer to the array's memory, from which functions make a pointer of the array's shape."""
        assert self.variable is not None
        if self.variable.pointee is not None:
            return self.name
        return f"{self.symbol}__arg" if self.variable.parameter else f"{self.symbol}__m"

    def spoken(self, dimension: int) -> int:
        """The number by which the program's language counts a dimension."""
        assert self.variable is not None
        return len(self.dimensions) - dimension if self.variable.column_major else dimension

    def kind_of(self, dimension: int) -> str:
        """The distribution of a dimension of the array: `*`, block, cyclic or gblock."""
        aligned = self.dimensions[dimension]
        assert self.template is not None
        return "*" if aligned is None else self.template.kind_of(aligned[0])

    def shadow(self, dimension: int) -> tuple[str, str]:
        """The shadow's layers below and above, as C text; -1 for a full shadow."""
        if not self.widths:
            return "0", "0"
        width = self.widths[dimension]
        if width.full:
            return "-1", "-1"
        return (width.lower.text if width.lower else "0"), (width.upper.text if width.upper else "0")

    def shadow_values(self, dimension: int) -> tuple[int | None, int | None]:
        """The shadow's layers below and above, as numbers; None where they are not constant."""
        if not self.widths:
            return 0, 0
        width = self.widths[dimension]
        if width.full:
            return -1, -1
        return _value(width.lower), _value(width.upper)

    def extent(self, dimension: int) -> int | None:
        """The elements in a rank's memory along a dimension; None if unknown or not equal on all ranks."""
        assert self.variable is not None
        assert self.template is not None
        size = self.variable.sizes[dimension]
        lower, upper = self.shadow_values(dimension)
        if lower is None or upper is None:
            return None
        if lower < 0:
            return size
        aligned = self.dimensions[dimension]
        kind = self.kind_of(dimension)
        if aligned is None or kind == "*":
            return None if size is None else size + lower + upper
        total, nodes = self.template.size_of(aligned[0]), self.template.nodes_of(aligned[0])
        if kind != "block" or self.template.has_width(aligned[0]) or total is None or nodes is None:
            return None
        return -(-total // nodes) + lower + upper


@dataclass(frozen=True)
class LoopOver:
    """The iterations of a distributed loop: those for which a node owns index plus `offset` in a dimension.

    `lower` and `upper` are the further iterations that a node executes below and above; None if not constant.
    """

    of: TemplateOf | NodeArray
    dimension: int
    offset: str
    lower: int | None
    upper: int | None


def _value(expr: Expr | None) -> int | None:
    return expr.value if expr else None


_Kind = TypeVar("_Kind", bound=Declared)


class Scopes:
    """All declarations, found by name and place."""

    sentinel = "#pragma xmp"  # how directives begin

    def __init__(self) -> None:
        self._all: list[Declared] = []

    def add(self, declared: Declared) -> None:
        """Add a declaration. Raises Refused if the scope already has one of this name."""
        for other in self._all:
            if (
                other.name == declared.name
                and other.scope == declared.scope
                and other.function is declared.function
            ):
                note = (other.place, f"'{other.name}' is declared here")
                raise Refused(declared.place, f"'{declared.name}' is already declared", note)
        self._all.append(declared)

    def find(self, name: str, function: Function | None, offset: int) -> Declared | None:
        """The declaration that a name refers to at an offset of a function, or outside functions; or None."""
        seen = [
            declared
            for declared in self._all
            if declared.name == name
            and (
                declared.function is None
                or (declared.function is function and declared.scope.start <= offset < declared.scope.end)
            )
        ]
        return max(
            seen, key=lambda declared: (declared.function is not None, declared.scope.start), default=None
        )

    def get(self, kind: type[_Kind], name: Name, function: Function | None, offset: int) -> _Kind:
        """The declaration that a name refers to, of one kind. Raises Refused if there is none."""
        declared = self.find(name.text, function, offset)
        if isinstance(declared, kind):
            return declared
        words = {"NodeArray": "node array", "TemplateOf": "template", "DistributedArray": "distributed array"}
        wanted = words[kind.__name__]
        if declared is not None:
            is_now = words[type(declared).__name__]
            note = (declared.place, f"'{name.text}' is declared here")
            raise Refused(name.place, f"'{name.text}' is a {is_now}, not a {wanted}", note)
        directive = {"node array": "nodes", "template": "template", "distributed array": "align"}[wanted]
        raise Refused(
            name.place, f"there is no {wanted} '{name.text}'; declare it with '{self.sentinel} {directive}'"
        )

    def templates(self) -> list[TemplateOf]:
        """All templates."""
        return [declared for declared in self._all if isinstance(declared, TemplateOf)]

    def arrays(self) -> list[DistributedArray]:
        """All distributed arrays."""
        return [declared for declared in self._all if isinstance(declared, DistributedArray)]

    def of_variable(self, variable: Variable) -> DistributedArray | None:
        """The distributed array that a variable is, or None."""
        return next((array for array in self.arrays() if array.variable is variable), None)
