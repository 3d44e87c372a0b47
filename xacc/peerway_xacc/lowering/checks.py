"""Decides which subscripts of distributed arrays are checked at run time.

A subscript needs no check if it is the index of a distributed loop, plus or minus a constant, and constants
prove that the element is in the node's memory: a check would keep the loop from being vectorised. All others
are checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from peerway_xacc.analysis import loop_nest, ranges, values
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapping import DistributedArray, LoopOver, TemplateOf
from peerway_xacc.frontend.source import Range, Use, Variable
from peerway_xacc.frontend.tokens import Span, names_in, scan
from peerway_xacc.lowering import shapes
from peerway_xacc.lowering.unit import Unit


@dataclass(frozen=True)
class _Distributed:
    """A distributed loop, its index variable, and the dimension that it goes over."""

    loop: For
    index: Variable
    over: LoopOver


_SIGNED = ("int", "long", "long int", "long long", "long long int")
_LOCALS = 4  # how many variables deep initial values are followed


class Checks:
    """Knows the distributed loops of a file, and decides for each subscript."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._loops: list[_Distributed] = []
        for start, over in unit.loops.over.items():
            for statement in unit.syntax.around(unit.file, start):
                if statement.start == start and statement.kind == "for":
                    loop = loop_nest.read(unit, statement)
                    index = unit.syntax.variable(loop.header.index, unit.file, loop.body.start)
                    if index is not None and self._keeps(loop, index):
                        self._loops.append(_Distributed(loop, index, over))

    def _keeps(self, loop: For, index: Variable) -> bool:
        """Does the index keep its value during an iteration?

        Another check finds assignments in the loop's body. A called function may change an index at file
        scope, or one whose address is taken.
        """
        function = self._unit.syntax.function_at(self._unit.file, loop.statement.start)
        assert function is not None
        calls = any(
            mark.kind == "call" and loop.body.start <= mark.start < loop.body.end for mark in function.marks
        )
        return not any(use.address for use in index.uses) and not (index.file_scope and calls)

    def needs(self, array: DistributedArray, dimension: int, use: Use, inside: Range) -> bool:
        """Must this subscript of a distributed dimension be checked?"""
        start = use.range.start
        is_foreign = any(region.start <= start < region.end for region in self._unit.compute.foreign)
        if use.in_sizeof or is_foreign:  # another compiler's code may run where no error can be reported
            return False
        return not any(
            self._proves(distributed, array, dimension, inside)
            for distributed in self._loops
            if distributed.loop.body.start <= start < distributed.loop.body.end
        )

    def crossed(self, array: DistributedArray, dimension: int, use: Use, inside: Range) -> bool:
        """Does the subscript's index run over another dimension of the template than its own?

        Then only some nodes have the element.
        """
        aligned = array.dimensions[dimension]
        assert aligned is not None
        assert array.template is not None
        if array.shadow_values(dimension)[0] == -1 or array.template.nodes_of(aligned[0]) == 1:
            return False
        for distributed in self._loops:
            over, start = distributed.over, use.range.start
            if not distributed.loop.body.start <= start < distributed.loop.body.end:
                continue
            values_of = self._values(distributed, inside)
            other = over.of is array.template and over.dimension != aligned[0]
            if other and values_of is not None and values_of.of_index:
                return True
        return False

    def reach(
        self, array: DistributedArray, dimension: int, use: Use, inside: Range
    ) -> dict[int, int] | None:
        """How many elements a subscript reaches beyond the one that an iteration owns, by the loop's offset.

        Empty if the element is the node's own whatever the loops do; None if that is not known. A directive
        may change any variable that is not declared const.
        """
        for distributed in self._loops:
            if not distributed.loop.body.start <= use.range.start < distributed.loop.body.end:
                continue
            values_of = self._values(distributed, inside, declared_const=True)
            if values_of is None:
                continue
            if not values_of.of_index:
                if self._owns_all(array, dimension, values_of):
                    return {}
                continue
            ends = self._ends(distributed, array, dimension, values_of)
            if ends is not None and distributed.over.lower == distributed.over.upper == 0:
                return {distributed.loop.statement.start: max(-ends[0], ends[1], 0)}
        return None

    def _owns_all(self, array: DistributedArray, dimension: int, values_of: ranges.Range) -> bool:
        """Does every node own the elements with these constant subscripts?"""
        assert array.variable is not None
        assert array.template is not None
        aligned, size = array.dimensions[dimension], array.variable.sizes[dimension]
        alone = aligned is None or array.template.nodes_of(aligned[0]) == 1
        return alone and size is not None and values_of.low >= 0 and values_of.high < size

    def _proves(
        self, distributed: _Distributed, array: DistributedArray, dimension: int, inside: Range
    ) -> bool:
        """Is the element in memory in each iteration of the loop?"""
        over, template = distributed.over, array.template
        assert template is not None
        values_of = self._values(distributed, inside)
        if values_of is None or not isinstance(over.of, TemplateOf):
            return False
        if not values_of.of_index:
            # only nodes of the array execute the loop
            shared = over.of is template and template.kind_of(over.dimension) != "*"
            return shared and self._on_each_node(array, dimension, values_of)
        return self._follows(distributed, array, dimension, values_of)

    def _on_each_node(self, array: DistributedArray, dimension: int, values_of: ranges.Range) -> bool:
        """Are the elements with these constant subscripts in the memory of every node of the array?"""
        assert array.variable is not None
        assert array.template is not None
        size, aligned = array.variable.sizes[dimension], array.dimensions[dimension]
        lower, upper = array.shadow_values(dimension)
        assert aligned is not None
        if size is None or lower is None or upper is None:
            return False
        if lower < 0:
            return values_of.low >= 0 and values_of.high < size
        whole = array.template.nodes_of(aligned[0]) == 1 and array.kind_of(dimension) != "cyclic"
        return whole and values_of.low >= -lower and values_of.high < size + upper

    def _follows(
        self, distributed: _Distributed, array: DistributedArray, dimension: int, values_of: ranges.Range
    ) -> bool:
        """Are these subscripts, relative to the index, within the memory of the iteration's node?"""
        ends = self._ends(distributed, array, dimension, values_of)
        if ends is None:
            return False
        if not self._within(distributed, array, dimension):
            return False
        first, last = ends
        lower, upper = array.shadow_values(dimension)
        if lower is None or upper is None or array.kind_of(dimension) == "cyclic" or lower < 0:
            return first == last == 0
        return -lower <= first and last <= upper

    def _ends(
        self, distributed: _Distributed, array: DistributedArray, dimension: int, values_of: ranges.Range
    ) -> tuple[int, int] | None:
        """The first and the last element of these subscripts, relative to the one that an iteration owns.

        The subscripts are relative to the index. None if the array does not lie as the loop goes.
        """
        unit, over = self._unit, distributed.over
        aligned, template = array.dimensions[dimension], array.template
        if aligned is None or template is None or not isinstance(over.of, TemplateOf):
            return None
        if over.dimension != aligned[0] or not template.lies_as(over.of, over.dimension):
            return None
        alignment, on = values.offset(unit, aligned[1]), values.offset(unit, over.offset)
        if alignment is None or on is None or over.lower is None or over.upper is None:
            return None
        return values_of.low + alignment - on - over.lower, values_of.high + alignment - on + over.upper

    def _values(
        self, distributed: _Distributed, inside: Range, *, declared_const: bool = False
    ) -> ranges.Range | None:
        """The range of a subscript in the loop; None if unknown.

        `declared_const`: variables that only seem to keep their values count as unknown.
        """
        names = self._names(distributed, inside.start, _LOCALS, declared_const)
        return ranges.range_of(self._unit.text.text[inside.start : inside.end], names)

    def _names(self, distributed: _Distributed, at: int, depth: int, declared_const: bool) -> ranges.Names:
        """The meaning of names at an offset in the loop."""
        unit, index = self._unit, distributed.index

        def range_of(name: str) -> ranges.Range | None:
            variable = unit.syntax.variable(name, unit.file, at)
            if variable is index:
                return ranges.Range(0, 0, of_index=True) if at >= distributed.loop.body.start else None
            if variable is not None:
                if declared_const and not variable.constant:
                    return None
                return self._of_constant(distributed, variable, depth, declared_const)
            number = unit.syntax.constants.get(name)
            return None if number is None else ranges.Range(number, number)

        return ranges.Names(
            range_of, lambda name: values.macro(unit, name), values.ends(unit, distributed.loop),
            signed=index.spelling in _SIGNED,
        )  # fmt: skip

    def _of_constant(
        self, distributed: _Distributed, variable: Variable, depth: int, declared_const: bool
    ) -> ranges.Range | None:
        """The range of a variable that keeps its initial value, perhaps depending on the index; or None."""
        if depth == 0 or variable.file != self._unit.file or variable.spelling not in _SIGNED:
            return None
        if variable.parameter or not variable.initialised or not _constant(variable):
            return None
        function = self._unit.syntax.function_at(self._unit.file, distributed.loop.statement.start)
        assert function is not None
        until = len(self._unit.text.text) if variable.file_scope else function.body.end
        value_of = _initial(scan(self._unit.text.text, variable.declarator.start, until))
        if value_of is None:
            return None
        text = self._unit.text.text[value_of.start : value_of.end]
        names = self._names(distributed, value_of.start, depth - 1, declared_const)
        return ranges.range_of(text, names)

    def _within(self, distributed: _Distributed, array: DistributedArray, dimension: int) -> bool:
        """Does each iteration of the loop own an element of the array?

        If the array is as large as the template, it does: a node owns nothing beyond the template.
        """
        assert array.variable is not None
        assert array.template is not None
        size = array.variable.sizes[dimension]
        aligned = array.dimensions[dimension]
        assert aligned is not None
        alignment = values.offset(self._unit, aligned[1])
        on = values.offset(self._unit, distributed.over.offset)
        bounds = array.template.range_of(aligned[0])
        if alignment is None or on is None:
            return False
        if size is None:
            return alignment == 0 and self._same_size(array, dimension, aligned[0])
        if bounds is not None and bounds[0] - alignment >= 0 and bounds[1] - alignment < size:
            return True
        ends = values.ends(self._unit, distributed.loop)
        return ends is not None and ends[0] + on >= alignment and ends[1] + on - alignment < size

    def _same_size(self, array: DistributedArray, dimension: int, of_template: int) -> bool:
        """Are the sizes of array and template the same text, of names that keep their values?"""
        unit, variable = self._unit, array.variable
        assert variable is not None
        assert array.template is not None
        bounds = array.template.bounds[of_template]
        if bounds is None or bounds.first_value != 0 or variable.pointee is not None:
            return False
        size = shapes.sizes_of(unit, variable)[dimension]
        spellings = [_spelled(f"({size}) - 1"), _spelled(f"{size} - 1")]
        names = names_in(size) - set(unit.texts.defines)
        return _spelled(bounds.last) in spellings and all(
            _constant(unit.syntax.variable(name, unit.file, array.last_directive)) for name in names
        )


def _initial(spans: list[Span]) -> Range | None:
    """The range of the initial value after `=` in a declarator, given the tokens that begin with it."""
    depth = start = 0
    for number, span in enumerate(spans):
        depth += (span.text in "([{") - (span.text in ")]}")
        if start == 0 and span.text == "=" and depth == 0:
            start = number + 1
        elif depth == 0 and span.text in (",", ";"):
            return Range(spans[start].start, spans[number - 1].end) if 0 < start < number else None
    return None


def _spelled(text: str) -> list[str]:
    return [span.text for span in scan(text)]


def _constant(variable: Variable | None) -> bool:
    """Does a variable keep the value that its declaration, or the caller, gave it?"""
    if variable is None or not variable.scalar:
        return False
    seen = not variable.file_scope or variable.static
    return variable.constant or (seen and not any(use.written or use.address for use in variable.uses))


@lru_cache(maxsize=1)
def checks_of(unit: Unit) -> Checks:
    """The checks of a file; call it only once all loops are lowered."""
    return Checks(unit)
